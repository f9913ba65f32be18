"""Reads are queued on the caller's stream: they see what it made before, and it sees what they made."""

from pathlib import Path
from typing import Any

import pytest
import torch
from device_rows import KINDS, empty, same_bits, some_ids, through, write

NUM_ROWS = 500


def delay(cuda: Any) -> None:
    """Keeps the current stream busy for about a tenth of a second, so that a missing wait is seen."""
    if cuda.device.type == "cuda":
        torch.cuda._sleep(200_000_000)


@pytest.mark.parametrize("budget", ["device", "host", "all three", "disk"])
def test_read_on_a_side_stream_is_ordered_with_it(cuda: Any, simulated: bool, tmp_path: Path, budget: str):
    num_ids = 50 if simulated else 20_000
    file, rows = write(tmp_path / "x.ibp", KINDS[3], NUM_ROWS)
    reader = through(cuda, file, budget)
    wanted = torch.from_numpy(some_ids(NUM_ROWS, num_ids))
    out, copied = empty(cuda, reader, num_ids), empty(cuda, reader, num_ids)
    ids = cuda.upload(torch.zeros_like(wanted))
    late = cuda.upload(wanted)
    ready = cuda.event()
    with cuda.stream():
        ready.join()
        delay(cuda)
        ids.copy_(late)  # a read that does not wait for its own stream sees zeros
        reader.read(ids, out)
        copied.copy_(out)
        done = cuda.event()
    done.join()
    assert same_bits(copied, rows[wanted])


def test_read_waits_neither_for_the_default_stream_nor_disturbs_it(
    cuda: Any, simulated: bool, tmp_path: Path
):
    file, rows = write(tmp_path / "x.ibp", KINDS[3], NUM_ROWS)
    reader = through(cuda, file, "device and host")
    ids = torch.from_numpy(some_ids(NUM_ROWS, 100))
    side = cuda.stream()
    with side:
        for _ in range(2):  # compiles, and has its memory: taking some from the driver may wait for all
            out = empty(cuda, reader, 100)
            reader.read(ids, out)
        cuda.event().wait()
    delay(cuda)
    busy = cuda.event()
    with side:
        out = empty(cuda, reader, 100)
        reader.read(ids, out)  # returns when its own counts are there
        done = cuda.event()
        done.wait()
    if not simulated:
        assert not busy._event.query(), "the read waited for the default stream"
    assert same_bits(out, rows[ids])


def test_reads_of_many_threads_on_streams_of_their_own_do_not_mix(cuda: Any, simulated: bool, tmp_path: Path):
    from concurrent.futures import ThreadPoolExecutor

    rounds, num_ids = (2, 20) if simulated else (20, 5000)
    file, rows = write(tmp_path / "x.ibp", KINDS[3], NUM_ROWS)
    reader = through(cuda, file, "all three")

    def work(number: int) -> bool:
        stream, good = cuda.stream(), True
        for round_ in range(rounds):
            ids = torch.from_numpy(some_ids(NUM_ROWS, num_ids, seed=100 * number + round_))
            with stream:
                out = empty(cuda, reader, num_ids)
                reader.read(cuda.upload(ids), out)
                good &= same_bits(out, rows[ids])
        return good

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    stats = reader.stats()
    assert stats["cache"]["lookups"] == 8 * rounds * num_ids
    assert sum(stats[tier]["hits"] for tier in ("cache", "host", "disk")) == 8 * rounds * num_ids
