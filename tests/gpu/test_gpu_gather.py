"""Rows decoded on a GPU are those that were written, whatever their dtype, layout and tier."""

from pathlib import Path
from typing import Any

import pytest
import torch
from device_rows import BUDGETS, KINDS, Kind, empty, same_bits, some_ids, through, write

pytestmark = pytest.mark.filterwarnings("ignore:.*decoded by the CPU", "ignore:.*holds no row")


USED = {
    "device": ["cache"],
    "host": ["host"],
    "device and host": ["cache", "host"],
    "all three": ["cache", "host", "disk"],
    "disk": ["disk"],
}


@pytest.mark.parametrize(
    "kind, layout", [(kind, layout) for kind in KINDS for layout in kind.layouts], ids=str
)
def test_every_tier_gives_what_was_written(
    cuda: Any, simulated: bool, tmp_path: Path, kind: Kind, layout: str
):
    num_rows = 300 if simulated else max(2000, min(50_000, (16 << 20) // kind.row_bytes))
    num_ids = 100 if simulated else 2 * num_rows
    file, rows = write(tmp_path / "x.ibp", kind, num_rows, layout)
    ids = torch.from_numpy(some_ids(num_rows, num_ids))
    for budget in BUDGETS:
        reader = through(cuda, file, budget)
        out = empty(cuda, reader, num_ids)
        reader.read(cuda.upload(ids), out)
        assert same_bits(out, rows[ids]), budget
        stats = reader.stats()
        assert stats["cache"]["lookups"] == num_ids
        assert stats["cache"]["misses"] == stats["host"]["lookups"]
        assert stats["host"]["misses"] == stats["disk"]["hits"]
        if file.row_bytes >= 256:  # the tables of shorter rows take as much as they do
            assert [tier for tier in stats if stats[tier]["hits"]] == USED[budget], budget


@pytest.mark.parametrize("num_ids", [0, 1, 2, 31, 32, 33, 1000])
def test_any_number_of_ids_goes_to_any_place(cuda: Any, simulated: bool, tmp_path: Path, num_ids: int):
    file, rows = write(tmp_path / "x.ibp", KINDS[2], 200 if simulated else 5000)
    ids = torch.from_numpy(some_ids(len(rows), num_ids))
    at = torch.randperm(num_ids + 5, generator=torch.Generator().manual_seed(0))[:num_ids]
    reader = through(cuda, file, "all three")
    out = empty(cuda, reader, num_ids + 5)
    wanted = out.cpu()
    wanted[at] = rows[ids]
    reader.read(ids, out, at)
    assert same_bits(out, wanted)


def test_read_of_ids_on_the_cpu_and_of_int32_gives_the_same(cuda: Any, tmp_path: Path):
    file, rows = write(tmp_path / "x.ibp", KINDS[3], 100)
    ids = torch.from_numpy(some_ids(100, 40))
    reader = through(cuda, file, "device and host")
    for given in (ids, ids.int(), ids.numpy(), ids.tolist(), cuda.upload(ids.int())):
        out = empty(cuda, reader, 40)
        reader.read(given, out)
        assert same_bits(out, rows[ids])


@pytest.mark.parametrize("offset_bytes", [4, 8, 12])
def test_out_may_begin_at_any_multiple_of_the_chunks(cuda: Any, tmp_path: Path, offset_bytes: int):
    file, rows = write(tmp_path / "x.ibp", KINDS[2], 100)
    reader = through(cuda, file, "device and host")
    num_bytes = 10 * file.row_bytes
    memory = cuda.empty(offset_bytes + num_bytes + 64)
    memory.fill_(0xA5)
    out = reader.row_type.over(memory[offset_bytes : offset_bytes + num_bytes], 10)
    reader.read(torch.arange(10), out)
    assert same_bits(out, rows[:10])
    assert (memory[:offset_bytes].cpu() == 0xA5).all()
    assert (memory[offset_bytes + num_bytes :].cpu() == 0xA5).all()
