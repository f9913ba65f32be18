"""TieredRows on a device: bad ids, places and outputs, damaged rows: the errors of the CPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from device_readers import HOST, HOT, LAYOUTS, NONE, NUM_ROWS, SOME, check_sums, ids_of, opened, read, slots
from simt_cuda import SimtCuda
from some_rows import numbered_file, same_bits

from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.errors import FormatError
from gnn_ibp.format import ROWS_AT
from gnn_ibp.rows import PAD_BYTES
from gnn_ibp.tiers import TieredRows


@pytest.mark.parametrize("bad", [-1, NUM_ROWS, 2**31 + 5, 2**40, -(2**63)])
@pytest.mark.parametrize("where", [0, 33, 69])
def test_a_bad_id_is_the_same_error_wherever_it_is_found(tmp_path: Path, bad: int, where: int) -> None:
    reader, rows, _ = opened(tmp_path)
    ids = ids_of(70)
    ids[where] = bad
    ids[60] = -7 if where < 60 else ids[60]
    messages = []
    for given in (ids, ids.tolist(), torch.from_numpy(ids)):
        with pytest.raises(IndexError) as caught:
            read(reader, given)
        messages.append(str(caught.value))
    assert messages == [f"ids[{where}] is {bad}, the valid range is 0 to 299"] * 3
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, torch.tensor([5, 6])), rows[[5, 6]]), "and the next read is well"


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([0.5]), TypeError, "float32, want integers"),
        (torch.tensor([True]), TypeError, "bool, want integers; a mask becomes ids by torch"),
        (torch.tensor([[1]]), ValueError, r"\(1, 1\), want one dimension"),
        (torch.tensor([1, 2]), ValueError, "out has 1 rows, there are 2 ids"),
        ([0.5], TypeError, "float64, want integers"),
    ],
)
def test_what_are_no_ids_is_refused(tmp_path: Path, ids: Any, error: type[Exception], message: str) -> None:
    reader, _, cuda = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read(ids, torch.empty(1, 20))
    assert cuda.launches == []


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        ([0, 3], IndexError, "at has places from 0 to 3, out has rows 0 to 2"),
        ([-1, 0], IndexError, "at has places from -1 to 0, out has rows 0 to 2"),
        ([0], ValueError, r"at has shape \(1,\), there are 2 ids"),
        ([[0, 1]], ValueError, r"at has shape \(1, 2\)"),
        ([0.0, 1.0], TypeError, r"at has dtype .*float(32|64), integers are wanted"),
        ([True, False], TypeError, "bool, integers are wanted"),
    ],
)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_bad_places_are_refused_wherever_they_are(
    tmp_path: Path, at: Any, error: type[Exception], message: str, as_tensor: bool
) -> None:
    reader, _, _ = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read([1, 2], torch.empty(3, 20), torch.tensor(at) if as_tensor else np.array(at))
    check_sums(reader.stats(), 0)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((2, 20), np.float32), TypeError, "torch tensor on cpu, got ndarray"),
        (torch.empty(2, 20, dtype=torch.float64), TypeError, "float64, the rows have float32"),
        (torch.empty(2, 19), ValueError, r"\(2, 19\), \(num_rows, 20\) is wanted"),
        (torch.empty(2, 40)[:, ::2], ValueError, "not contiguous"),
        (torch.empty(2, 20, device="meta"), ValueError, "out is on meta"),
    ],
    ids=range(5),
)
def test_bad_out_is_refused(tmp_path: Path, out: Any, error: type[Exception], message: str) -> None:
    reader, _, cuda = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read([1, 2], out)
    assert cuda.launches == []


@pytest.mark.parametrize("host", ["some", "all condensed", "all"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tier", [0, 1])
def test_a_damaged_row_in_memory_is_named(tmp_path: Path, tier: int, layout: str, host: str) -> None:
    reader, rows, _ = opened(tmp_path, SOME, HOST[host], layout)
    source = reader.caches[tier].device_source
    assert source is not None
    held = slots(reader.caches[tier])
    if tier == 1:
        held = np.where(slots(reader.caches[0]) >= 0, -1, held)
    victim, well = [int(id_) for id_ in np.flatnonzero(held >= 0) if id_ % 5][:2]  # every fifth is stored raw
    slot = int(held[victim])
    if source.bases is None:
        begin = 80 * slot
    else:
        assert source.sizes is not None
        sizes = source.sizes.numpy()[:slot].astype(int) * 4
        begin = int((-(-sizes // source.align) * source.align).sum())
    source.data[PAD_BYTES + begin : PAD_BYTES + begin + 4] = 0  # no chunk participates: the row does not fit
    message = f"row {victim} is damaged: its stored bytes are no encoded row"
    for ids in ([well, victim], torch.tensor([well, victim])):
        with pytest.raises(FormatError, match=message):
            read(reader, ids)
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, [well]), rows[[well]])


def test_a_damaged_row_in_ordinary_memory_is_named(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cannot be page-locked"):
        reader, _, _ = opened(tmp_path, SOME, HOST["some"], cuda=SimtCuda(pin_bytes=0))
    source = reader.caches[1].source
    assert source is not None
    held, index = slots(reader.caches[1]), source.rows.index
    assert index is not None
    victim = int(np.flatnonzero((held >= 0) & (held < 32) & (np.arange(NUM_ROWS) % 5 > 0))[3])
    begin = PAD_BYTES + int(index.aligned_sizes(slice(0, int(held[victim]))).sum())
    source.rows.data[begin : begin + 4] = 0
    with pytest.warns(UserWarning), pytest.raises(FormatError, match=f"^row {victim} is damaged"):
        read(reader, [victim, 3])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_row_on_disk_is_named_with_its_file(tmp_path: Path, layout: str) -> None:
    reader, rows, _ = opened(tmp_path, NONE, 0, layout)
    begin = 7 * 80 if layout == "in-place" else int(reader.file.stored_sizes(np.arange(7)).sum())
    path = tmp_path / "x.ibp"
    data = bytearray(path.read_bytes())
    data[ROWS_AT + begin : ROWS_AT + begin + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    for ids in ([3, 7], torch.tensor([3, 7])):
        with pytest.raises(FormatError, match=r"x\.ibp: block 0 .* row 7 is not well-formed"):
            read(reader, ids)
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, [3, 6]), rows[[3, 6]])


def test_a_cut_file_is_an_error_for_rows_of_the_disk_alone(tmp_path: Path) -> None:
    reader, rows, _ = opened(tmp_path, SOME, 0)
    with (tmp_path / "x.ibp").open("r+b") as file:
        file.truncate(ROWS_AT)
    with pytest.raises(FormatError, match="cut short"):
        read(reader, np.arange(NUM_ROWS))
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, HOT[:SOME]), rows[HOT[:SOME]])
    for _ in range(9):  # more failures than there are staging buffers
        with pytest.raises(FormatError, match="cut short"):
            read(reader, HOT[SOME : SOME + 1])


def test_memory_of_a_device_that_runs_out_says_so(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda(device_bytes=10_000)
    reader = TieredRows(device_caches(cuda, file, HOT, 10_000, 0), file, cuda)
    with pytest.raises(MemoryError, match=r"bytes of device memory wanted, \d+ are free"):
        read(reader, ids_of(4000))


def test_a_cache_on_a_device_wants_the_device(tmp_path: Path) -> None:
    reader, _, _ = opened(tmp_path)
    with pytest.raises(ValueError, match="a cache lies on a device"):
        TieredRows(reader.caches, reader.file)
