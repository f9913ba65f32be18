"""gather_decode: every wanted row from the first source that has it, and an exact account of it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.ops import Source
from gnn_ibp.rows import PAD_BYTES, EncodedRows, RowIndex

NUM_ROWS = 1000


def id_rows(num_rows: int = NUM_ROWS, num_columns: int = 16) -> NDArray[np.uint8]:
    """Rows that hold their id, some of which stay raw."""
    rng = np.random.default_rng(1)
    rows = np.zeros((num_rows, num_columns), np.uint32)
    rows[:, 0] = np.arange(num_rows)
    dense = rng.random(num_rows) < 0.2
    rows[dense, 1:] = rng.integers(0, 2**32, (dense.sum(), num_columns - 1))
    rows[~dense, 1] = rng.integers(0, 9, (~dense).sum())
    return rows.view(np.uint8)


def cached(
    codec: IBPCodec, rows: NDArray[np.uint8], ids: NDArray[np.int64], in_place: bool = False
) -> Source:
    slot_of = np.full(len(rows), -1, np.int32)
    slot_of[ids] = np.arange(len(ids))
    return Source(ops.encode_rows(codec, rows[ids], 16, in_place), slot_of, codec)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("in_place", [False, True])
def test_rows_come_from_the_first_source_that_has_them(num_threads: int, in_place: bool) -> None:
    rows = id_rows()
    codec, other_codec = IBPCodec.fit(rows), IBPCodec.fit(rows, chunk_bits=16)
    rng = np.random.default_rng(2)
    first, second = rng.permutation(NUM_ROWS)[:300], rng.permutation(NUM_ROWS)[:300]
    wrong = rows.copy()
    wrong[first] = 0  # what the second source holds of these ids must never be seen
    sources = [cached(codec, rows, first, in_place), cached(other_codec, wrong, second, in_place)]
    ids = rng.integers(0, NUM_ROWS, 20_000)
    at = rng.permutation(len(ids) + 5)[: len(ids)]
    out = np.full((len(ids) + 5, rows.shape[1]), 0xAB, np.uint8)
    threads = ops.num_threads()
    try:
        ops.set_num_threads(num_threads)
        gathered = ops.gather_decode(ids, sources, out, at)
    finally:
        ops.set_num_threads(threads)

    in_first = np.isin(ids, first)
    in_second = np.isin(ids, second) & ~in_first
    missing = ~in_first & ~in_second
    expected = np.full_like(out, 0xAB)
    expected[at[~missing]] = rows[ids[~missing]]
    assert np.array_equal(out, expected)
    assert np.array_equal(gathered.missing.ids, ids[missing])
    assert np.array_equal(gathered.missing.at, at[missing])
    assert gathered.hits == [in_first.sum(), in_second.sum()]
    assert gathered.encoded_bytes == [
        ops.stored_sizes(codec, rows)[ids[in_first]].sum(),
        ops.stored_sizes(other_codec, rows)[ids[in_second]].sum(),
    ]


def test_without_at_rows_lie_in_the_order_of_ids() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    ids = np.array([5, 999, 5, 0])
    out = np.zeros((6, rows.shape[1]), np.uint8)
    gathered = ops.gather_decode(ids, [Source(codec.encode(rows).rows, None, codec)], out)
    assert np.array_equal(out[:4], rows[ids])
    assert not out[4:].any()
    assert len(gathered.missing.ids) == 0


def test_without_sources_everything_is_missing() -> None:
    ids = np.array([3, 1, 3])
    gathered = ops.gather_decode(ids, [], np.zeros((3, 8), np.uint8))
    assert gathered.missing.ids.tolist() == [3, 1, 3]
    assert gathered.missing.at.tolist() == [0, 1, 2]
    assert (gathered.hits, gathered.encoded_bytes) == ([], [])


def test_empty_and_one_row_caches_only_change_who_is_missing() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    ids = np.arange(100)
    for held in ([], [7]):
        out = np.zeros((100, rows.shape[1]), np.uint8)
        gathered = ops.gather_decode(ids, [cached(codec, rows, np.array(held, np.int64))], out)
        assert gathered.hits == [len(held)]
        assert gathered.missing.ids.tolist() == [i for i in range(100) if i not in held]
        assert np.array_equal(out[held], rows[held])


def test_no_ids_and_rows_without_bytes_are_legal() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    source = Source(codec.encode(rows).rows, None, codec)
    assert ops.gather_decode(np.empty(0, np.int64), [source], np.zeros((0, 64), np.uint8)).hits == [0]
    empty = IBPCodec.raw(0)
    source = Source(empty.encode(np.zeros((4, 0), np.uint8)).rows, None, empty)
    assert ops.gather_decode(np.array([3, 1]), [source], np.zeros((2, 0), np.uint8)).hits == [2]


def test_rows_too_long_for_16_bit_sizes_are_found() -> None:
    rows = np.zeros((70, 70_000), np.uint8)
    rows[::2] = np.random.default_rng(3).integers(0, 256, rows[::2].shape)
    codec = IBPCodec.fit(rows, chunk_bits=8)
    encoded = ops.encode_rows(codec, rows, align=4)
    assert encoded.index is not None
    assert encoded.index.sizes.dtype == np.uint32
    out = np.zeros_like(rows)
    ops.decode_all(codec, encoded, out)
    assert np.array_equal(out, rows)


def damaged(rows: EncodedRows, data: NDArray[np.uint8]) -> EncodedRows:
    return replace(rows, data=data)


def test_damaged_row_is_named_and_others_can_be_read() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    slots = np.arange(NUM_ROWS)[::-1].copy()
    source = cached(codec, rows, slots)
    encoded = np.flatnonzero(source.rows.encoded())[[5, 50]]
    data = source.rows.data.copy()
    index = source.rows.index
    assert index is not None
    starts = np.cumsum(index.aligned_sizes()) - index.aligned_sizes()
    data[PAD_BYTES + starts[encoded]] ^= 0xFF  # participation bits
    source = replace(source, rows=damaged(source.rows, data))
    bad = slots[encoded]
    out = np.zeros_like(rows)
    with pytest.raises(FormatError, match=f"row {bad.min()} is damaged"):
        ops.gather_decode(np.arange(NUM_ROWS), [source], out)
    good = np.setdiff1d(np.arange(NUM_ROWS), bad)
    ops.gather_decode(good, [source], out, good)
    assert np.array_equal(out[good], rows[good])


def test_index_that_points_outside_of_the_slab_is_damage() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    encoded = codec.encode(rows).rows
    assert encoded.index is not None
    out = np.zeros((1, rows.shape[1]), np.uint8)
    for bases, sizes in [
        (encoded.index.bases + np.uint64(2**63), encoded.index.sizes),
        (encoded.index.bases + np.uint64(2**64 - 64), encoded.index.sizes),
        (encoded.index.bases, np.full_like(encoded.index.sizes, 0xFFFF)),
        (encoded.index.bases, np.zeros_like(encoded.index.sizes)),
    ]:
        index = RowIndex(bases, sizes, encoded.index.unit, encoded.index.align)
        source = Source(replace(encoded, index=index), None, codec)
        with pytest.raises(FormatError, match="row 999 is damaged"):
            ops.gather_decode(np.array([999]), [source], out)


def test_slot_beyond_the_rows_is_damage() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    source = cached(codec, rows, np.arange(10))
    assert source.slot_of is not None
    source.slot_of[3] = 10
    with pytest.raises(FormatError, match="row 3 is damaged"):
        ops.gather_decode(np.arange(10), [source], np.zeros((10, rows.shape[1]), np.uint8))


def test_out_is_checked_before_anything_is_written() -> None:
    rows = id_rows()
    codec = IBPCodec.fit(rows)
    source = Source(codec.encode(rows).rows, None, codec)
    out = np.zeros((3, rows.shape[1]), np.uint8)
    with pytest.raises(ValueError, match="out has 3 rows, there are 4 ids"):
        ops.gather_decode(np.arange(4), [source], out)
    with pytest.raises(IndexError, match=r"at\[1\] is 3, out has 3 rows"):
        ops.gather_decode(np.arange(2), [source], out, np.array([0, 3]))
    with pytest.raises(IndexError, match=r"at\[0\] is -1"):
        ops.gather_decode(np.arange(2), [source], out, np.array([-1, 0]))
    with pytest.raises(ValueError, match="width"):
        ops.gather_decode(np.arange(2), [source], np.zeros((3, 8), np.uint8))
    with pytest.raises(TypeError):
        ops.gather_decode(np.arange(2), [source], out.astype(np.int8))  # type: ignore[arg-type]
    assert not out.any()
