"""FeatureFile: exact rows for any dtype and shape, wherever they go; clear errors."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from some_rows import (
    STORED,
    all_rows,
    byte_codec,
    fitted_codec,
    in_threads,
    layout_of,
    numbered_file,
    numbered_rows,
    same_bits,
)

from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT
from gnn_ibp.read_request import ReadRequest
from gnn_ibp.row_type import DTYPES, RowType


def bits(rows: torch.Tensor) -> bytes:
    return rows.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype_and_shape_comes_back_bit_for_bit(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], stored: str
) -> None:
    row_type = RowType(dtype, shape)
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, (70, row_type.row_bytes), np.uint8)
    if dtype == "bool":
        data &= 1
    data[10:40] = data[10]
    rows = row_type.from_bytes(data)
    codec, layout = fitted_codec(rows, stored), layout_of(stored)
    write_feature_file(tmp_path / "x.ibp", rows, codec, layout=layout, block_bytes=256)
    file = FeatureFile.open(tmp_path / "x.ibp")
    assert (file.dtype, file.row_shape, file.num_rows) == (dtype, shape, 70)
    assert file.torch_dtype == rows.dtype
    assert bits(all_rows(file)) == bits(rows)
    assert bits(torch.cat(list(file.decoded_blocks()))) == bits(rows)
    assert file.verify() == []


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("shape", [(0, 4), (0,), (9, 0), (0, 0), (40, 3, 0)], ids=str)
def test_no_rows_and_no_columns_are_legal(tmp_path: Path, shape: tuple[int, ...], stored: str) -> None:
    rows = torch.zeros(shape)
    write_feature_file(tmp_path / "x.ibp", rows, fitted_codec(rows, stored), layout=layout_of(stored))
    file = FeatureFile(tmp_path / "x.ibp")
    assert file.num_rows == shape[0]
    assert file.saved == 0.0
    assert file.verify() == []
    assert all_rows(file).shape == rows.shape
    assert sum(len(block) for block in file.decoded_blocks()) == shape[0]


@pytest.mark.parametrize("stored", STORED)
def test_long_rows_take_the_wide_index(tmp_path: Path, stored: str) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (3, 70_001), np.uint8)
    rows[1] = 7
    codec, constant_bytes = byte_codec(70_001, 7, stored), 140 if stored == "version 2" else 8751
    write_feature_file(tmp_path / "x.ibp", rows, codec, layout=layout_of(stored), block_bytes=10_000)
    file = FeatureFile(tmp_path / "x.ibp")
    assert file.stored_sizes(np.array([2, 1, 0])).tolist() == [70_001, constant_bytes, 70_001]
    assert np.array_equal(all_rows(file).numpy(), rows)
    assert np.array_equal(torch.cat(list(file.decoded_blocks())).numpy(), rows)
    assert file.verify() == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.integers(0, 499)), stored=st.sampled_from(STORED), seed=st.integers(0, 99))
def test_any_ids_give_their_rows_wherever_they_go(
    tmp_path: Path, ids: list[int], stored: str, seed: int
) -> None:
    path = tmp_path / f"{stored}.ibp"
    file, rows = (
        (FeatureFile(path), numbered_rows(500)) if path.exists() else numbered_file(path, stored=stored)
    )
    at = np.random.default_rng(seed).permutation(len(ids) + 3)[: len(ids)]
    out = np.full((len(ids) + 3, 20), 7, np.float32)
    expected = out.copy()
    expected[at] = rows[ids]
    file.read(ids, out, at)
    assert same_bits(out, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_ids_of_any_integer_width(tmp_path: Path, dtype: type[Any]) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 100)
    ids = np.array([99, 0, 50, 50], dtype)
    out = np.empty((4, 20), np.float32)
    file.read(ids, out)
    assert same_bits(out, rows[[99, 0, 50, 50]])


def test_large_reads_are_sorted_and_coalesced(tmp_path: Path) -> None:
    """More rows than the small sort takes, over many extents, with repeats."""
    file, rows = numbered_file(tmp_path / "x.ibp", 20_000)
    ids = np.random.default_rng(3).integers(0, 20_000, 30_000)
    request = ReadRequest.checked(ids, np.empty((30_000, 20), np.float32), None, 20_000, file.row_type)
    moved = file.read_checked(request)
    assert request.out.tobytes() == rows[ids].tobytes()
    assert moved.encoded_bytes == int(file.stored_sizes(ids).sum())
    every_page = -(-file.stored_bytes // 4096) * 4096
    assert every_page * 0.9 <= moved.physical_bytes <= every_page * 1.1
    assert moved.physical_bytes % 4096 == 0


@pytest.mark.parametrize("stored", STORED)
def test_one_row_moves_its_page(tmp_path: Path, stored: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 500, stored=stored)
    out = np.empty((1, 80), np.uint8)
    moved = file.read_checked(ReadRequest(np.array([1]), out, None))
    assert moved.physical_bytes == 4096
    assert moved.encoded_bytes == file.stored_sizes(np.array([1]))[0] < 80


BAD_IDS = [
    (np.array([0, -1]), IndexError, r"ids\[1\] is -1"),
    (np.array([0, 5, 100]), IndexError, r"ids\[2\] is 100.*0 to 99"),
    (np.array([2**31 + 1]), IndexError, r"ids\[0\] is 2147483649"),
    (np.array([2**63 + 1], np.uint64), IndexError, r"ids\[0\]"),
    (np.array([True, False]), TypeError, "bool"),
    (np.array([0.0, 1.0]), TypeError, "float64"),
    (np.array([[0, 1]]), ValueError, "one dimension"),
    (torch.tensor([1.5]), TypeError, "float32"),
    (torch.tensor([3, -5], dtype=torch.int32), IndexError, r"ids\[1\] is -5"),
]


@pytest.mark.parametrize(("ids", "error", "message"), BAD_IDS, ids=lambda value: str(value)[:20])
def test_bad_ids_are_one_error_and_nothing_is_written(
    tmp_path: Path, ids: Any, error: type[Exception], message: str
) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 100)
    out = np.full((len(ids), 20), 7, np.float32)
    with pytest.raises(error, match=message):
        file.read(ids, out)
    assert (out == 7).all()


def read_only() -> np.ndarray:
    out = np.empty((2, 20), np.float32)
    out.flags.writeable = False
    return out


BAD_OUTS = [
    (np.empty((2, 19), np.float32), ValueError, r"\(2, 19\), \(num_rows, 20\)"),
    (np.empty((3, 20), np.float32), ValueError, "3 rows, there are 2 ids"),
    (np.empty((2, 20, 1), np.float32), ValueError, "shape"),
    (np.empty(40, np.float32), ValueError, "shape"),
    (np.empty((2, 20), np.float64), TypeError, "float64, the rows have float32"),
    (np.empty((2, 20), ">f4"), TypeError, ">f4"),
    (torch.empty(2, 20, dtype=torch.bfloat16), TypeError, "bfloat16"),
    (np.empty((20, 2), np.float32).T, ValueError, "contiguous"),
    (torch.empty(2, 40)[:, ::2], ValueError, "contiguous"),
    (read_only(), ValueError, "read-only"),
    (torch.empty(2, 20, device="meta"), ValueError, "meta"),
    ([[0.0] * 20] * 2, TypeError, "list"),
]


@pytest.mark.parametrize(("out", "error", "message"), BAD_OUTS, ids=range(len(BAD_OUTS)))
def test_bad_out_is_refused(tmp_path: Path, out: Any, error: type[Exception], message: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 100)
    with pytest.raises(error, match=message):
        file.read([1, 2], out)


BAD_PLACES = [
    ([0], ValueError, r"\(1,\)"),
    ([0, 3], IndexError, "0 to 2"),
    ([0, -1], IndexError, "-1"),
    ([0.0, 1.0], TypeError, "float64"),
    ([True, False], TypeError, "bool"),
    ([[0, 1]], ValueError, "shape"),
    (np.array([0, 2**64 - 1], np.uint64), IndexError, "18446744073709551615"),
]


@pytest.mark.parametrize(("at", "error", "message"), BAD_PLACES, ids=range(len(BAD_PLACES)))
def test_bad_places_are_refused_and_nothing_is_written(
    tmp_path: Path, at: Any, error: type[Exception], message: str
) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 100)
    out = np.full((3, 20), 7, np.float32)
    with pytest.raises(error, match=message):
        file.read([1, 2], out, at)
    assert (out == 7).all()


def test_read_only_folder_moved_elsewhere_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    _, rows = numbered_file(tmp_path / "a" / "x.ibp", 100)
    folder = (tmp_path / "a").rename(tmp_path / "b")
    (folder / "x.ibp").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert same_bits(all_rows(FeatureFile(folder / "x.ibp")).numpy(), rows)
        assert [path.name for path in folder.iterdir()] == ["x.ibp"]
    finally:
        folder.chmod(0o755)


def test_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.ibp"):
        FeatureFile(tmp_path / "nothing.ibp")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        FeatureFile(tmp_path)


def test_file_cut_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 500)
    os.truncate(tmp_path / "x.ibp", ROWS_AT + 8192)
    out = np.empty((2, 20), np.float32)
    file.read([0, 1], out)
    with pytest.raises(
        FormatError, match=f"cut short: {file.file_bytes} bytes expected, 12288 are there.*499"
    ):
        file.read([0, 499], out)
    with pytest.raises(FormatError, match="cut short"):
        list(file.decoded_blocks())
    assert [damage.block for damage in file.verify()] == list(range(2, file.num_blocks))


def test_io_error_names_file_and_rows(tmp_path: Path) -> None:
    """A descriptor that cannot be read stands in for a failing disk."""
    file, _ = numbered_file(tmp_path / "x.ibp", 100)
    os.dup2(os.open(tmp_path / "y", os.O_WRONLY | os.O_CREAT), file._file.fileno())
    with pytest.raises(OSError, match=r"reading rows 3 to 4.*x\.ibp"):
        file.read([3, 4], np.empty((2, 20), np.float32))
    with pytest.raises(OSError, match="block 0"):
        list(file.encoded_blocks())
    assert "cannot be read" in str(file.verify()[0])


def test_closed_file_says_so(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 100)
    with file:
        pass
    with pytest.raises(ValueError, match=r"x\.ibp is closed"):
        file.read([1], np.empty((1, 20), np.float32))


def test_pickled_file_is_opened_again(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 100)
    data = pickle.dumps(file)
    assert len(data) < 500
    assert same_bits(all_rows(pickle.loads(data)).numpy(), rows)


def test_forked_child_reads_with_the_parents_file(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 500)
    all_rows(file)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if same_bits(all_rows(file).numpy(), rows) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert same_bits(all_rows(file).numpy(), rows)


@pytest.mark.parametrize("stored", STORED)
def test_many_threads_get_their_own_rows(tmp_path: Path, stored: str) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 3000, stored=stored)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        out = np.empty((800, 20), np.float32)
        for _ in range(20):
            ids = rng.integers(0, 3000, 800)
            file.read(ids, out)
            if not np.array_equal(out[:, 0], ids) or not same_bits(out, rows[ids]):
                wrong.append(seed)

    in_threads(work, 8)
    assert wrong == []


@pytest.mark.parametrize("stored", STORED)
def test_wanted_rows_come_without_reading_other_blocks(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "x.ibp"
    file, _ = numbered_file(path, 2000, stored=stored)
    data = bytearray(path.read_bytes())
    for block in [0, 1, 2, *range(8, file.num_blocks)]:
        data[ROWS_AT + block * 4096] ^= 1
    path.write_bytes(data)
    file = FeatureFile(path)
    per_block = 4096 * 2000 // file.stored_bytes
    ids = np.arange(per_block * 9 // 2, per_block * 13 // 2)
    seen = [block for block in file.encoded_blocks(ids)]
    found = np.concatenate([block.first_row + np.arange(block.rows.num_rows) for block in seen])
    assert np.isin(ids, found).all()
    assert len(found) <= len(ids) + 64


def test_file_descriptors_do_not_leak(tmp_path: Path) -> None:
    numbered_file(tmp_path / "x.ibp", 100)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        all_rows(FeatureFile(tmp_path / "x.ibp"))
    with pytest.raises(FormatError):
        FeatureFile(Path(__file__))
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
