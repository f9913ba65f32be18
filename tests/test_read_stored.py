"""FeatureFile.read_stored: rows as they are stored, back to back, with the index that finds them."""

from pathlib import Path

import numpy as np
import pytest
from some_rows import STORED, byte_codec, fitted_codec, in_threads, layout_of, numbered_file, same_bits

from gnn_ibp import ops
from gnn_ibp.codec import fit_codec
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT
from gnn_ibp.rows import PAD_BYTES, EncodedRows, RowIndex

ALIGN = 32


def target_for(file: FeatureFile, num_rows: int) -> EncodedRows:
    """Room for so many rows, filled with bytes that are no rows."""
    row_room = -(-file.row_bytes // ALIGN) * ALIGN
    data = np.full(PAD_BYTES + num_rows * row_room + PAD_BYTES, 0xA5, np.uint8)
    bitmask = np.full(-(-num_rows // 8), 0xA5, np.uint8)
    index = RowIndex.unwritten(num_rows, file.codec.unit, ALIGN, file.row_bytes)
    return EncodedRows(data, bitmask, index, num_rows, file.row_bytes)


def as_stored(file: FeatureFile, ids: np.ndarray) -> EncodedRows:
    target = target_for(file, len(ids))
    file.read_stored(ids, target)
    return target


def decoded(file: FeatureFile, rows: EncodedRows) -> np.ndarray:
    out = np.empty((rows.num_rows, rows.row_bytes), np.uint8)
    ops.decode_all(file.codec, rows, out)
    return out


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("num_ids", [0, 1, 7, 8, 31, 32, 33, 500, 3000])
def test_rows_are_as_stored_and_where_the_index_says(tmp_path: Path, stored: str, num_ids: int) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 500, stored=stored)
    ids = np.random.default_rng(num_ids).integers(0, 500, num_ids)
    target = target_for(file, num_ids)
    moved = file.read_stored(ids, target)
    packed = file.codec.encode(rows[ids])
    expected = RowIndex.from_sizes(packed.rows.index.size_bytes(), 4, ALIGN, 80)  # type: ignore[union-attr]
    assert target.index is not None
    assert np.array_equal(target.index.bases, expected.bases)
    assert np.array_equal(target.index.sizes, expected.sizes)
    assert np.array_equal(target.bitmask, packed.rows.bitmask)
    slab = b"".join(packed.row(i) + bytes(-len(packed.row(i)) % ALIGN) for i in range(num_ids))
    assert target.data[PAD_BYTES:][: len(slab)].tobytes() == slab
    assert moved.encoded_bytes == packed.nbytes
    assert same_bits(decoded(file, target).view(np.float32), rows[ids])


@pytest.mark.parametrize("stored", STORED)
def test_a_large_read_is_spread_over_threads_and_stays_exact(tmp_path: Path, stored: str) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 20_000, stored=stored)
    ids = np.random.default_rng(3).integers(0, 20_000, 30_000)
    assert same_bits(decoded(file, as_stored(file, ids)).view(np.float32), rows[ids])


def test_several_threads_read_at_once(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 2000)
    right = []

    def work(seed: int) -> None:
        ids = np.random.default_rng(seed).integers(0, 2000, 1000)
        right.append(same_bits(decoded(file, as_stored(file, ids)).view(np.float32), rows[ids]))

    in_threads(work, 6)
    assert right == [True] * 6


@pytest.mark.parametrize("stored", STORED)
def test_wide_rows_have_a_wide_index(tmp_path: Path, stored: str) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (3, 70_001), np.uint8)
    write_feature_file(tmp_path / "x.ibp", rows, byte_codec(70_001, 7, stored), layout=layout_of(stored))
    file = FeatureFile(tmp_path / "x.ibp")
    assert np.array_equal(decoded(file, as_stored(file, np.array([2, 0, 2]))), rows[[2, 0, 2]])


@pytest.mark.parametrize("stored", STORED)
def test_rows_without_bytes_are_rows(tmp_path: Path, stored: str) -> None:
    none = np.empty((50, 0), np.float32)
    write_feature_file(tmp_path / "x.ibp", none, fitted_codec(none, stored), layout=layout_of(stored))
    rows = as_stored(FeatureFile(tmp_path / "x.ibp"), np.arange(40))
    assert rows.index is not None
    assert not rows.index.sizes.any()
    assert not rows.index.bases.any()
    assert not rows.bitmask.any()


@pytest.mark.parametrize("stored", ["condensed", "in-place"])
def test_a_damaged_row_is_named(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "x.ibp"
    file, _ = numbered_file(path, 500, stored=stored)
    data = bytearray(path.read_bytes())
    begin = ROWS_AT + (
        int(-(-file.stored_sizes(np.arange(7)) // 4 * 4).sum()) if stored != "in-place" else 560
    )
    data[begin : begin + 4] = b"\0\0\0\0"  # row 7 then announces full chunks
    path.write_bytes(data)
    target = target_for(file, 2)
    with pytest.raises(FormatError, match=r"x\.ibp: block 0 .* row 7 is not well-formed") as raised:
        file.read_stored(np.array([3, 7]), target)
    assert str(raised.value).endswith("payload of another size") == (stored == "condensed")
    file.read_stored(np.array([3, 6]), target)


def test_what_is_wrong_with_a_row_of_version_2_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    rows = np.random.default_rng(0).standard_normal((50, 128)).astype(np.float32)
    write_feature_file(path, rows, fit_codec(rows, version=2))
    data = bytearray(path.read_bytes())
    data[ROWS_AT : ROWS_AT + 40] = 40 * b"\xff"  # row 0 then has more fields than there is room for
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"x\.ibp: block 0 .* row 0 .*: the variable stream does not fit"):
        as_stored(FeatureFile(path), np.array([1, 0]))


def test_a_cut_file_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    file, _ = numbered_file(path, 500)
    with path.open("r+b") as opened:
        opened.truncate(ROWS_AT)
    with pytest.raises(FormatError, match=r"cut short.*rows 9 to 9"):
        as_stored(file, np.array([9]))


def test_a_slab_that_could_overflow_is_refused(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 500)
    target = target_for(file, 9)
    with pytest.raises(ValueError, match="data is too short"):
        file.read_stored(np.arange(10), target)
    assert (target.data == 0xA5).all()
