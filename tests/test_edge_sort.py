"""Edges sorted by their destinations: the same bytes whatever the memory, and wherever runs lie."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sorted_edges import sorted_edges

from gnn_ibp.edges import csc_output, run_files
from gnn_ibp.edges.csc_output import CscPaths
from gnn_ibp.edges.edge_sort import write_csc
from gnn_ibp.edges.edge_sort_plan import MIN_RECORDS, EdgeSortPlan
from gnn_ibp.edges.edge_stream import ArrayEdges
from gnn_ibp.journal import Journal
from gnn_ibp.stages import Stages

GIB = 1 << 30


class SmallPlan(EdgeSortPlan):
    """A plan with so few buckets and so little memory that everything happens with a few edges."""

    forced: dict[str, int]
    held = property(lambda self: self.forced.get("held", False))  # type: ignore[assignment]
    shift = property(lambda self: self.forced["shift"])  # type: ignore[assignment]
    run_records = property(lambda self: self.forced["run_records"])  # type: ignore[assignment]
    load_records = property(lambda self: self.forced["load_records"])  # type: ignore[assignment]


def small_plan(edges: ArrayEdges, num_nodes: int, forced: dict[str, int], **changes: Any) -> EdgeSortPlan:
    plan = SmallPlan(num_nodes, edges.num_edges, False, False, True, 0)
    object.__setattr__(plan, "forced", forced)
    for name, value in changes.items():
        object.__setattr__(plan, name, value)
    return plan


def sort_into_files(edges: ArrayEdges, plan: EdgeSortPlan, folder: Path) -> dict[str, np.ndarray]:
    perm = folder / "perm.npy" if plan.ranked else None
    paths = CscPaths(folder / "indptr.npy", folder / "indices.npy", perm)
    num_edges = write_csc(edges, plan, paths, folder, Journal(folder, {}), Stages())
    arrays = {path.stem: np.load(path) for path in (paths.indptr, paths.indices, perm) if path}
    assert num_edges == len(arrays["indices"])
    return arrays


def check_equal(edges: ArrayEdges, plan: EdgeSortPlan, folder: Path) -> None:
    arrays = sorted_edges(edges, plan.num_nodes, plan.undirected, plan.dedup)
    for name in sort_into_files(edges, plan, folder):
        np.save(folder / "expected.npy", arrays[name])
        assert (folder / f"{name}.npy").read_bytes() == (folder / "expected.npy").read_bytes()


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[ArrayEdges, int]:
    num_nodes = draw(st.integers(1, 40))
    few = draw(st.integers(1, num_nodes))  # hubs and parallel edges
    ends = st.lists(st.tuples(st.integers(0, num_nodes - 1), st.integers(0, few - 1)), max_size=120)
    pairs = np.array(draw(ends), draw(st.sampled_from([np.int32, np.int64]))).reshape(-1, 2)
    if draw(st.booleans()):
        pairs = pairs[:, ::-1]
    return ArrayEdges(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])), num_nodes


@given(
    edge_lists(),
    st.fixed_dictionaries(
        {
            "shift": st.integers(0, 6),
            "run_records": st.integers(2, 40),
            "load_records": st.integers(1, 40),
            "held": st.booleans(),
        }
    ),
    st.sampled_from([(False, False), (False, True), (True, True)]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_wherever_runs_lie_and_however_short_they_are_edges_are_sorted(
    graph: tuple[ArrayEdges, int], forced: dict[str, int], directions: tuple[bool, bool], ranked: bool
) -> None:
    undirected, dedup = directions
    edges, num_nodes = graph
    plan = small_plan(edges, num_nodes, forced, undirected=undirected, dedup=dedup, ranked=ranked)
    with TemporaryDirectory() as folder, patch("os.fsync"):
        check_equal(edges, plan, Path(folder))


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("dedup", [False, True])
def test_a_destination_with_more_edges_than_fit_is_sorted_in_parts(
    tmp_path: Path, held: bool, ranked: bool, dedup: bool
) -> None:
    rng = np.random.default_rng(0)
    src = np.concatenate([rng.integers(0, 10_000, 3000), np.full(2000, 7)])
    edges = ArrayEdges(src, np.full(5000, 4321))
    forced = {"shift": 4, "run_records": 700, "load_records": 90, "held": held}
    check_equal(edges, small_plan(edges, 10_000, forced, dedup=dedup, ranked=ranked), tmp_path)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("undirected", "ranked"), [(False, False), (True, True)])
def test_a_plan_of_its_own_making_gives_the_same(
    tmp_path: Path, undirected: bool, ranked: bool, held: bool
) -> None:
    rng = np.random.default_rng(1)
    edges = ArrayEdges(*(rng.random((2, 2_000_000)) ** 3 * 300_000).astype(np.int32))
    plan = EdgeSortPlan(300_000, edges.num_edges, undirected, undirected, ranked, 0)
    plan = replace(plan, memory_bytes=plan.smallest_memory_bytes)
    if held:
        plan = replace(plan, memory_bytes=plan.smallest_memory_bytes + plan._held_bytes)
    assert plan.held == held and plan.num_buckets > 10 and MIN_RECORDS <= plan.load_records < plan.num_records
    check_equal(edges, plan, tmp_path)


def test_the_first_edge_that_names_no_node_is_told_with_its_position(tmp_path: Path) -> None:
    src, dst = np.arange(100) % 10, np.arange(100) % 7
    dst[[77, 91]] = 10, -3
    edges = ArrayEdges(src, dst)
    plan = small_plan(edges, 10, {"shift": 1, "run_records": 16, "load_records": 8})
    with pytest.raises(IndexError, match=r"edge 77 is \(7, 10\), the 10 nodes have ids from 0 to 9"):
        sort_into_files(edges, plan, tmp_path)


class StopsAfter:
    """Edges that end with an error after some blocks, when they are read for the first time."""

    def __init__(self, edges: ArrayEdges, num_blocks: int) -> None:
        self.src, self.dst, self._left = edges.src, edges.dst, num_blocks
        self.num_edges, self.dtype = edges.num_edges, edges.dtype
        self.starts: list[int] = []

    def blocks(self, first: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.starts.append(first)
        for at in range(first, self.num_edges, 10):
            if len(self.starts) == 1 and at >= 10 * self._left:
                raise KeyboardInterrupt
            yield self.src[at : at + 10], self.dst[at : at + 10]


@pytest.mark.parametrize(("held", "held_then"), [(False, False), (False, True), (True, False), (True, True)])
def test_an_interrupted_sort_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool, held_then: bool
) -> None:
    monkeypatch.setattr(run_files, "CHECKPOINT_EDGES", 40)
    monkeypatch.setattr(csc_output, "CHECKPOINT_RECORDS", 50)
    edges = ArrayEdges(*np.random.default_rng(2).integers(0, 64, (2, 500)))
    forced = {"shift": 2, "run_records": 32, "load_records": 48, "held": held}
    changes = {"undirected": True, "dedup": True}
    stopping = StopsAfter(edges, 30)
    with pytest.raises(KeyboardInterrupt):
        sort_into_files(stopping, small_plan(edges, 64, forced, **changes), tmp_path)  # type: ignore[arg-type]

    def full_disk(self: Any, *_: Any) -> None:
        if self.bucket > 8:
            raise OSError(28, "No space left on device")
        append(self, *_)

    append = csc_output.CscFiles.append
    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(csc_output.CscFiles, "append", full_disk)
        sort_into_files(stopping, small_plan(edges, 64, forced, **changes), tmp_path)  # type: ignore[arg-type]
    assert stopping.starts[1] in (range(1) if held else range(200, 300))
    state = Journal(tmp_path, {}).get(csc_output.STAGE)
    assert state and 0 < state["bucket"] <= 9
    forced |= {"load_records": 11, "held": held_then}  # with another budget
    buckets = list[int]()

    def noted(self: Any, *_: Any) -> None:
        buckets.append(self.bucket)
        append(self, *_)

    monkeypatch.setattr(csc_output.CscFiles, "append", noted)
    check_equal(stopping, small_plan(edges, 64, forced, **changes), tmp_path)  # type: ignore[arg-type]
    assert buckets[0] == state["bucket"]
    assert stopping.starts[2:] == ([0] if held or held_then else [])  # unless the runs were there


def test_nothing_is_written_behind_a_write_that_failed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csc_output, "CHECKPOINT_RECORDS", 1)
    edges = ArrayEdges(*np.random.default_rng(3).integers(0, 64, (2, 500)))
    plan = small_plan(edges, 64, {"shift": 2, "run_records": 32, "load_records": 80})
    append, buckets = csc_output.CscFiles.append, list[int]()

    def fails_once(self: Any, *sorted_edges: Any) -> None:
        buckets.append(self.bucket)
        if len(buckets) == 3:
            time.sleep(0.3)  # the next group is waiting behind this one then
            raise OSError(5, "Input/output error")
        append(self, *sorted_edges)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr(csc_output.CscFiles, "append", fails_once)
        sort_into_files(edges, plan, tmp_path)
    state = Journal(tmp_path, {}).get(csc_output.STAGE)
    assert state and state["bucket"] == buckets[2] and len(buckets) == 3
    check_equal(edges, plan, tmp_path)


def test_a_full_disk_is_told_of_a_graph_too_small_for_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csc_output.CscFiles, "append", full_disk)
    edges = ArrayEdges(np.array([0, 1]), np.array([1, 1]))
    with pytest.raises(OSError, match="No space"):
        sort_into_files(edges, EdgeSortPlan(2, 2, False, False, False, GIB), tmp_path)


PAPERS = EdgeSortPlan(111_059_956, 1_615_685_872, True, True, False, 14 * GIB)


def test_more_than_two_to_the_31_edges_are_counted_in_64_bits() -> None:
    assert PAPERS.num_records == 3_231_371_744 and PAPERS.file_bytes == 8 * PAPERS.num_records
    assert PAPERS.index_dtype == np.int32 and not PAPERS.records.wide
    assert 1000 < PAPERS.num_buckets <= 4096
    assert PAPERS.num_buckets << PAPERS.shift >= PAPERS.num_nodes
    wide = replace(PAPERS, num_nodes=(1 << 32) + 5)
    assert wide.records.wide and wide.index_dtype == np.int64 and (1 << wide.shift) <= 1 << 20
    assert (wide.num_nodes - 1) >> wide.shift == wide.num_buckets - 1
    assert replace(PAPERS, num_nodes=(1 << 31) + 1).index_dtype == np.int64
    for ranked in (False, True):  # only ranks count edges
        assert replace(PAPERS, num_edges=(1 << 31) + 1, ranked=ranked).records.wide == ranked


@pytest.mark.parametrize("wide", [False, True])
def test_the_highest_positions_and_ids_survive_a_sort(wide: bool) -> None:
    num_nodes, num_edges = (1 << 37, 1 << 34) if wide else (1 << 32, 1 << 31)
    far, first = num_nodes - 6, num_edges - 3
    records = replace(PAPERS, num_nodes=num_nodes, num_edges=num_edges, ranked=True).records
    assert records.wide == wide
    src, dst = np.array([5, 3, 5]) + far, np.array([1, 1, 1]) + far
    packed = np.empty(6 * records.record_bytes, np.uint8)
    records.pack(src, dst, num_nodes, first, True, packed)
    view = packed.view(records.dtype)
    assert view["rank"][::2].tolist() == [first, first + 1, first + 2]
    assert (view["rank"][1::2] >> (63 if wide else 31)).tolist() == [1, 1, 1]
    shift = 3
    given = packed.view(records.dtype)[::2].copy().view(np.uint8)
    scratch, indices = np.empty(3 * records.tail_bytes, np.uint8), np.empty(3, np.int64)
    perm, counts = np.empty(3, np.int64), np.zeros(8, np.int64)
    kept = records.sort(given, np.array([[0, 3]]), far, shift, True, scratch, indices, perm, counts)
    assert kept == 2 and counts.tolist() == [0, 2, 0, 0, 0, 0, 0, 0]
    assert (indices[:2] - far).tolist() == [3, 5] and perm[:2].tolist() == [first + 1, first]
