"""What is wrong with a read on a GPU is told as on the CPU, and the device goes on working."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from device_rows import KINDS, Kind, empty, same_bits, through, write

from gnn_ibp.errors import FormatError

NUM_ROWS = 200
BAD = [[-1], [NUM_ROWS], [0, 1, 2**40], [*range(100), -(2**63), NUM_ROWS]]


@pytest.mark.parametrize("ids", BAD, ids=str)
@pytest.mark.parametrize("budget", ["device", "host", "all three", "disk"])
def test_bad_ids_are_the_same_index_error_on_either_side(
    cuda: Any, tmp_path: Path, budget: str, ids: list[int]
):
    file, rows = write(tmp_path / "x.ibp", KINDS[2], NUM_ROWS)
    reader = through(cuda, file, budget)
    bad = torch.tensor(ids)
    with pytest.raises(IndexError) as on_cpu:
        file.read(bad, torch.empty(len(ids), rows.shape[1]))
    for given in (bad, cuda.upload(bad)):
        with pytest.raises(IndexError) as on_device:
            reader.read(given, empty(cuda, reader, len(ids)))
        assert str(on_device.value) == str(on_cpu.value)
    assert reader.stats()["cache"]["lookups"] == 0

    out = empty(cuda, reader, 3)
    reader.read(cuda.upload(torch.tensor([5, 0, 199])), out)
    assert same_bits(out, rows[[5, 0, 199]])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.num_columns in (128, 602, 1433)], ids=str)
def test_damaged_host_row_is_named_and_others_are_right(cuda: Any, tmp_path: Path, kind: Kind):
    file, rows = write(tmp_path / "x.ibp", kind, NUM_ROWS)
    reader = through(cuda, file, "host")
    host = reader.caches[1].device_source
    encoded = file.encoded(torch.arange(NUM_ROWS).numpy())
    damaged = int(encoded.nonzero()[0][3])
    out = empty(cuda, reader, 1)
    reader.read([damaged], out)
    size = int(file.stored_sizes(np.array([damaged]))[0])
    begin = find(host.data, size, file, damaged)
    host.data[begin : begin + size] = 0xFF
    with pytest.raises(FormatError, match=str(damaged)):
        reader.read([0, damaged, 1], empty(cuda, reader, 3))
    out = empty(cuda, reader, 2)
    reader.read([0, 1], out)
    assert same_bits(out, rows[:2])


def find(slab: torch.Tensor, num_bytes: int, file: Any, row: int) -> int:
    """Where in the slab the row begins: its slot is its id, all rows before it lie there at 32 bytes each."""
    sizes = file.stored_sizes(torch.arange(row).numpy())
    begin = 64 + int((-(-sizes // 32) * 32).sum())
    assert begin + num_bytes < slab.numel()
    return begin
