"""RowCache: the hottest rows that fit, never more memory than asked for, exact rows."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from some_rows import STORED, numbered_file, numbered_rows, same_bits, unit_codec

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.rows import GROUP, PAD_BYTES, Bytes

NUM_ROWS = 500


def held(cache: RowCache) -> list[int]:
    """Ids by slot."""
    assert cache.source and cache.source.slot_of is not None
    slot_of = cache.source.slot_of
    ids = np.flatnonzero(slot_of >= 0)
    by_slot = np.empty(len(ids), np.int64)
    by_slot[slot_of[ids]] = ids
    return by_slot.tolist()


def gather(cache: RowCache, ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), 80), np.uint8)
    assert cache.source
    gathered = ops.gather_decode(ids, [cache.source], out)
    assert gathered.hits == [len(ids)]
    return out.view(np.float32)


def bytes_needed(file: FeatureFile, hot: list[int]) -> int:
    """What design asks of a cache of exactly these rows, added up one by one."""
    slab = 2 * PAD_BYTES + sum(-(-int(size) // 16) * 16 for size in file.stored_sizes(np.array(hot)))
    return 4 * file.num_rows + slab + -(-len(hot) // 8) + 8 * -(-len(hot) // GROUP) + 2 * len(hot)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("num_hot", [1, 2, 31, 32, 33, 300, NUM_ROWS])
def test_budget_of_exactly_some_rows_holds_these(tmp_path: Path, stored: str, num_hot: int) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS, stored=stored)
    hot = np.random.default_rng(4).permutation(NUM_ROWS)
    budget = bytes_needed(file, hot[:num_hot].tolist())
    cache = RowCache.fill(file, hot, budget)
    assert held(cache) == hot[:num_hot].tolist()
    assert cache.nbytes == budget
    assert same_bits(gather(cache, hot[:num_hot]), rows[hot[:num_hot]])
    if num_hot > 1:
        smaller = RowCache.fill(file, hot, budget - 1)
        assert held(smaller) == hot[: num_hot - 1].tolist()


@pytest.mark.parametrize("stored", STORED)
def test_no_budget_is_ever_exceeded(tmp_path: Path, stored: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, stored=stored)
    taken = 0

    def allocate(num_bytes: int) -> Bytes:
        nonlocal taken
        taken += num_bytes
        return np.empty(num_bytes, np.uint8)

    for budget in range(2300, 40_000, 1237):
        taken = 0
        cache = RowCache.fill(file, np.arange(NUM_ROWS), budget, allocate=allocate)
        assert cache.nbytes == taken <= budget
        assert cache.num_rows in range(1, NUM_ROWS) or budget > 30_000


def test_more_budget_than_rows_takes_only_what_it_needs(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cache = RowCache.fill(file, np.arange(NUM_ROWS), 1 << 40)
    assert cache.num_rows == NUM_ROWS
    assert cache.nbytes == bytes_needed(file, list(range(NUM_ROWS)))
    assert same_bits(gather(cache, np.arange(NUM_ROWS)), rows)


def test_encoding_makes_room_for_more_rows(tmp_path: Path) -> None:
    rows = np.full((NUM_ROWS, 20), 0.75, np.float32)
    codec = IBPCodec.fit(rows)
    write_feature_file(tmp_path / "x.ibp", rows, codec)
    cache = RowCache.fill(FeatureFile(tmp_path / "x.ibp"), np.arange(NUM_ROWS), 8000)
    assert cache.num_rows > 2 * cache.num_rows_if_raw > 0


def test_no_budget_and_no_hot_ids_are_empty_and_silent(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cache in (RowCache.fill(file, np.arange(NUM_ROWS), 0), RowCache.fill(file, [], 10_000)):
            assert (cache.num_rows, cache.nbytes, cache.num_rows_if_raw) == (0, 0, 0)
            assert cache.source is None


@pytest.mark.parametrize("budget", [1, 1999, 2000, 2140])
def test_budget_too_small_for_a_row_warns_once_with_the_numbers(tmp_path: Path, budget: int) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with pytest.warns(UserWarning, match=rf"{budget:,} bytes.*2,000 bytes.*500 rows") as warned:
        cache = RowCache.fill(file, np.arange(NUM_ROWS), budget)
    assert len(warned) == 1
    assert (cache.num_rows, cache.nbytes) == (0, 0)


def test_repeated_hot_ids_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnn_ibp.slots._FIRST_STEP", 3)
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    hot = torch.tensor([9, 3, 9, 3, 7, 9, 1, 400, 7, 0], dtype=torch.int32)
    cache = RowCache.fill(file, hot, 10_000)
    assert held(cache) == [9, 3, 7, 1, 400, 0]


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with pytest.raises(IndexError, match=r"ids\[1\] is 500"):
        RowCache.fill(file, [0, 500], 10_000)
    with pytest.raises(ValueError, match="budget_bytes is -1"):
        RowCache.fill(file, [0], -1)
    with pytest.raises(ValueError, match="align is 10"):
        RowCache.fill(file, [0], 10_000, align=10)


@pytest.mark.parametrize("stored", STORED)
def test_damage_is_met_while_filling(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "x.ibp"
    numbered_file(path, NUM_ROWS, stored=stored)
    data = bytearray(path.read_bytes())
    data[ROWS_AT + 4096 + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"x\.ibp: block 1 \(rows "):
        RowCache.fill(FeatureFile(path), np.arange(NUM_ROWS), 1 << 20)


def test_only_blocks_with_hot_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    _, rows = numbered_file(path, 2000)
    data = bytearray(path.read_bytes())
    data[ROWS_AT + 4096 * 4] ^= 1
    path.write_bytes(data)
    hot = np.concatenate([np.arange(40), np.arange(1900, 2000)])
    cache = RowCache.fill(FeatureFile(path), hot, 1 << 20)
    assert same_bits(gather(cache, hot), rows[hot])


def test_rows_without_bytes_can_be_cached(tmp_path: Path) -> None:
    write_feature_file(tmp_path / "x.ibp", np.empty((50, 0), np.float32), IBPCodec.raw(0))
    cache = RowCache.fill(FeatureFile(tmp_path / "x.ibp"), np.arange(50), 1000)
    assert cache.num_rows == 50


def test_wide_rows_keep_their_wide_index(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (3, 70_001), np.uint8)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.raw(70_001))
    cache = RowCache.fill(FeatureFile(tmp_path / "x.ibp"), [2, 0], 1 << 20)
    assert cache.source
    out = np.empty((2, 70_001), np.uint8)
    ops.gather_decode(np.array([0, 2]), [cache.source], out)
    assert np.array_equal(out, rows[[0, 2]])


def test_slab_has_zeros_between_rows(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 40)
    cache = RowCache.fill(
        file, np.arange(40), 1 << 20, allocate=lambda num_bytes: np.full(num_bytes, 0xAA, np.uint8)
    )
    packed = unit_codec().encode(numbered_rows(40))
    expected = b"".join(packed.row(i) + bytes(-len(packed.row(i)) % 16) for i in range(40))
    assert cache.source
    assert cache.source.rows.data.tobytes() == bytes(PAD_BYTES) + expected + bytes(PAD_BYTES)
