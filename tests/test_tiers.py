"""TieredRows: the same rows whatever the caches, and counters that add up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from some_rows import STORED, in_threads, numbered_file, same_bits

from gnn_ibp.cache import RowCache
from gnn_ibp.errors import FormatError
from gnn_ibp.format import ROWS_AT
from gnn_ibp.tiers import Stats, TieredRows, subtract

NUM_ROWS = 300
KEYS = [
    "lookups",
    "hits",
    "misses",
    "hit_rate",
    "logical_bytes",
    "encoded_bytes",
    "physical_bytes",
    "pcie_bytes",
    "seconds",
]


def tiered(folder: Path, *hot: list[int], stored: str = "condensed") -> tuple[TieredRows, np.ndarray]:
    """Rows behind one cache per list of hot ids."""
    file, rows = numbered_file(folder / "x.ibp", NUM_ROWS, stored=stored)
    return TieredRows([RowCache.fill(file, ids, 1 << 20) for ids in hot], file), rows


def check_sums(stats: Stats, num_lookups: int) -> None:
    lookups = num_lookups
    for name, tier in stats.items():
        assert list(tier) == KEYS
        assert tier["lookups"] == lookups, name
        assert tier["hits"] + tier["misses"] == lookups
        assert tier["logical_bytes"] == tier["hits"] * 80
        assert tier["hit_rate"] == (tier["hits"] / lookups if lookups else None)
        lookups = tier["misses"]
    assert lookups == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.integers(0, NUM_ROWS - 1)),
    hot=st.lists(st.lists(st.integers(0, NUM_ROWS - 1), max_size=40), max_size=2),
    stored=st.sampled_from(STORED),
)
def test_rows_do_not_depend_on_the_caches(
    tmp_path: Path, ids: list[int], hot: list[list[int]], stored: str
) -> None:
    reader, rows = tiered(tmp_path, *hot, stored=stored)
    out = np.zeros((len(ids), 20), np.float32)
    reader.read(ids, out)
    assert same_bits(out, rows[ids])
    check_sums(reader.stats(), len(ids))
    in_first = sum(id in hot[0] for id in ids) if hot else 0
    if hot:
        assert reader.stats()["cache"]["hits"] == in_first
    if len(hot) == 2:
        assert reader.stats()["host"]["hits"] == sum(id in hot[1] and id not in hot[0] for id in ids)


def test_places_and_tensors_are_taken(tmp_path: Path) -> None:
    reader, rows = tiered(tmp_path, [5, 6, 7])
    out = torch.full((5, 20), 7.0)
    reader.read(torch.tensor([5, 100, 6], dtype=torch.int32), out, torch.tensor([4, 0, 2]))
    expected = np.full((5, 20), 7, np.float32)
    expected[[4, 0, 2]] = rows[[5, 100, 6]]
    assert same_bits(out.numpy(), expected)


def test_counters_are_exact(tmp_path: Path) -> None:
    reader, _ = tiered(tmp_path, [5, 6, 7])
    ids = np.array([5, 5, 9, 10, 7])
    sizes = reader.file.stored_sizes(ids)
    reader.read(ids, np.empty((5, 20), np.float32))
    stats = reader.stats()
    assert list(stats) == ["cache", "disk"]
    cache, disk = stats["cache"], stats["disk"]
    assert (cache["lookups"], cache["hits"], cache["misses"], cache["hit_rate"]) == (5, 3, 2, 0.6)
    assert (disk["lookups"], disk["hits"], disk["misses"], disk["hit_rate"]) == (2, 2, 0, 1.0)
    assert cache["encoded_bytes"] == cache["physical_bytes"] == sizes[[0, 1, 4]].sum()
    assert disk["encoded_bytes"] == sizes[[2, 3]].sum()
    assert disk["physical_bytes"] == 4096
    assert cache["seconds"] > 0
    assert disk["seconds"] > 0


def test_nothing_was_looked_up_yet(tmp_path: Path) -> None:
    reader, _ = tiered(tmp_path, [1], [2])
    stats = reader.stats()
    assert list(stats) == ["cache", "host", "disk"]
    check_sums(stats, 0)
    reader.read([], np.empty((0, 20), np.float32))
    check_sums(reader.stats(), 0)
    assert all(tier["hit_rate"] is None for tier in reader.stats().values())


def test_two_snapshots_subtract_to_what_was_between(tmp_path: Path) -> None:
    reader, _ = tiered(tmp_path, [5, 6, 7])
    out = np.empty((3, 20), np.float32)
    reader.read([5, 6, 9], out)
    before = reader.stats()
    reader.read([5, 8, 9], out)
    between = subtract(reader.stats(), before)
    check_sums(between, 3)
    assert between["cache"]["hits"] == 1
    assert before["cache"]["lookups"] == 3
    assert subtract(before, before)["cache"]["hit_rate"] is None
    assert subtract(before, {}) == before


def test_empty_cache_is_counted_and_never_in_the_way(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    reader = TieredRows([RowCache.fill(file, [1], 0), RowCache.fill(file, [1], 1 << 20)], file)
    out = np.empty((3, 20), np.float32)
    reader.read([1, 2, 1], out)
    assert same_bits(out, rows[[1, 2, 1]])
    stats = reader.stats()
    check_sums(stats, 3)
    assert [stats[name]["hits"] for name in ("cache", "host", "disk")] == [0, 2, 1]


def test_cached_rows_never_touch_the_file(tmp_path: Path) -> None:
    reader, rows = tiered(tmp_path, list(range(NUM_ROWS)))
    data = bytearray((tmp_path / "x.ibp").read_bytes())
    data[ROWS_AT:] = bytes(len(data) - ROWS_AT)
    (tmp_path / "x.ibp").write_bytes(data)
    out = np.empty_like(rows)
    reader.read(np.arange(NUM_ROWS), out)
    assert same_bits(out, rows)
    assert reader.stats()["disk"]["lookups"] == 0


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([0, NUM_ROWS], IndexError),
        ([-1], IndexError),
        ([2**40], IndexError),
        ([0.5], TypeError),
        ([True], TypeError),
    ],
)
def test_bad_ids_are_refused_before_any_work(tmp_path: Path, ids: list[Any], error: type[Exception]) -> None:
    reader, _ = tiered(tmp_path, [0])
    out = np.full((len(ids), 20), 7, np.float32)
    with pytest.raises(error):
        reader.read(ids, out)
    assert (out == 7).all()
    check_sums(reader.stats(), 0)


def test_failed_read_is_not_counted(tmp_path: Path) -> None:
    reader, _ = tiered(tmp_path, [0])
    with (tmp_path / "x.ibp").open("r+b") as file:
        file.truncate(ROWS_AT)
    with pytest.raises(FormatError, match="cut short"):
        reader.read([0, 299], np.empty((2, 20), np.float32))
    check_sums(reader.stats(), 0)


def test_three_caches_are_refused(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 10)
    with pytest.raises(ValueError, match="3 caches"):
        TieredRows([RowCache.fill(file, [1], 0)] * 3, file)


def test_many_threads_get_their_rows_and_are_all_counted(tmp_path: Path) -> None:
    reader, rows = tiered(tmp_path, list(range(0, NUM_ROWS, 3)), list(range(0, NUM_ROWS, 2)))
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            ids = rng.integers(0, NUM_ROWS, 200)
            out = torch.empty(200, 20)
            reader.read(ids, out)
            if not np.array_equal(out[:, 0], ids) or not same_bits(out.numpy(), rows[ids]):
                wrong.append(seed)

    in_threads(work, 8)
    assert wrong == []
    check_sums(reader.stats(), 8 * 50 * 200)
