"""Edges to CSC within a given memory: sorted in runs, which memory holds or files, and group after group."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.edges.csc_output import CscArrays, CscFiles, CscOutput, CscPaths
from gnn_ibp.edges.edge_runs import EdgeRuns, LoadedRuns
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edges.edge_stream import EdgeStream
from gnn_ibp.edges.run_files import RunFiles
from gnn_ibp.edges.run_memory import RunMemory
from gnn_ibp.futures import finish_oldest, worker
from gnn_ibp.journal import Journal
from gnn_ibp.progress import progress
from gnn_ibp.rows import Bytes
from gnn_ibp.stages import Stages

Ids = NDArray[np.int64]

_MAX_PARTS = 1 << 12


def write_csc(
    edges: EdgeStream, plan: EdgeSortPlan, paths: CscPaths, work: Path, journal: Journal, stages: Stages
) -> int:
    """Sorts `edges` into the files of `paths`; returns how many there are. `work` takes the runs meanwhile,
    unless memory holds them.

    Goes on from what the journal tells; the runs stay for that until `remove_runs`. Raises IndexError naming
    the first edge with an end that does not exist, OSError for a full disk.
    """
    runs = EdgeRuns(plan, RunMemory(plan) if plan.held else RunFiles(work, plan, journal))
    runs.write(edges, stages)
    with stages.measure("sort edges") as stage, CscFiles(paths, plan, journal) as output:
        num_records = _Sort(runs, plan, output).run()
        stage.num_bytes = num_records * plan.records.record_bytes
        stage.num_edges = num_records // (1 + plan.undirected)
        return output.finish()


def build_arrays(edges: EdgeStream, plan: EdgeSortPlan) -> CscArrays:
    """The same in memory, whatever it takes."""
    runs = EdgeRuns(plan, RunMemory(plan))
    runs.write(edges, Stages())
    arrays = CscArrays(plan)
    _Sort(runs, plan, arrays).run()
    return arrays


@dataclass(frozen=True)
class _Group:
    """Neighbouring buckets that are sorted together, `first` to `last - 1`."""

    first: int
    last: int
    num_records: int


@dataclass(frozen=True)
class _Box:
    """Edges with destinations first_dst to last_dst; of a single destination, from first_src to last_src."""

    first_dst: int
    last_dst: int
    first_src: int
    last_src: int
    num_records: int

    @property
    def by_source(self) -> bool:
        return self.first_dst == self.last_dst

    @property
    def ends(self) -> tuple[int, int]:
        """First and last of the ends by which it is divided."""
        return (self.first_src, self.last_src) if self.by_source else (self.first_dst, self.last_dst)

    def part(self, first: int, last: int, num_records: int) -> "_Box":
        if self.by_source:
            return replace(self, first_src=first, last_src=last, num_records=num_records)
        return replace(self, first_dst=first, last_dst=last, num_records=num_records)

    def select(self, records: NDArray[Any]) -> NDArray[Any]:
        """Those of `records`, structured, that are in it."""
        dst = records["dst"]
        inside = (dst >= self.first_dst) & (dst <= self.last_dst)
        if self.by_source:
            inside &= (records["src"] >= self.first_src) & (records["src"] <= self.last_src)
        return records[inside]


class _Sorted(NamedTuple):
    """What comes out of a sort: sources, and where they stood."""

    indices: Any
    perm: Ids | None

    def first(self, count: int) -> "_Sorted":
        return _Sorted(self.indices[:count], None if self.perm is None else self.perm[:count])


class _Sort:
    """Sorts group after group; the next one is read, and the last one written, meanwhile."""

    def __init__(self, runs: EdgeRuns, plan: EdgeSortPlan, output: CscOutput) -> None:
        self._runs, self._plan, self._output = runs, plan, output
        records, size = plan.records, plan.load_records
        self._buffers = [np.empty(size * records.record_bytes, np.uint8) for _ in range(2)]
        self._scratch = np.empty(size * records.tail_bytes, np.uint8)
        self._rooms = [self._room(size) for _ in range(2)]

    def _room(self, size: int) -> _Sorted:
        indices: Any = np.empty(size, self._plan.index_dtype)
        return _Sorted(indices, np.empty(size, np.int64) if self._plan.ranked else None)

    def run(self) -> int:
        """Sorts what is not sorted yet; returns how many records that were."""
        totals = self._runs.totals()
        first = self._output.bucket
        groups = list(self._groups(totals))
        with (
            worker("read-edges", len(groups) > 1) as reader,
            worker("write-edges", len(groups) > 1) as writer,
            progress("sorting edges", int(totals.sum()), "edges") as bar,
        ):
            bar.update(int(totals[:first].sum()))
            loading: list[Future[LoadedRuns] | None] = [None, None]
            writing = deque[Future[None]]()
            for i, group in enumerate(groups):
                for ahead in groups[i : i + 2]:  # this one, at the start, and the next
                    slot = (i + (ahead is not group)) % 2
                    if loading[slot] is None and ahead.num_records <= self._plan.load_records:
                        buffer = self._buffers[slot]
                        loading[slot] = reader.submit(self._runs.load, ahead.first, ahead.last, buffer)
                loaded, loading[i % 2] = loading[i % 2], None
                if loaded:
                    records = loaded.result()
                    finish_oldest(writing, 1)  # one may be under way, from the other room
                    room, counts = self._rooms[i % 2], self._no_counts(group)
                    found = self._sort(records, group.first, room, counts)
                    before = writing[-1] if writing else None
                    writing.append(writer.submit(self._write, before, group, found, counts))
                else:
                    finish_oldest(writing, 0)
                    counts = self._no_counts(group)
                    self._sort_in_parts(group, self._buffers[i % 2], counts)
                    self._end(group, counts)
                bar.update(group.num_records)
            finish_oldest(writing, 0)
        return int(totals[first:].sum())

    def _write(self, before: Future[None] | None, group: _Group, found: _Sorted, counts: Ids) -> None:
        if before:
            before.result()  # where that failed nothing may follow: the journal would tell of a gap
        self._output.append(*found)
        self._end(group, counts)

    def _end(self, group: _Group, counts: Ids) -> None:
        self._output.end_group(group.last, group.num_records, counts)

    def _no_counts(self, group: _Group) -> Ids:
        return np.zeros((group.last - group.first) << self._plan.shift, np.int64)

    def _groups(self, totals: Ids) -> Iterator[_Group]:
        """As many buckets as go together; one that is larger is a group of its own."""
        first = self._output.bucket
        while first < len(totals):
            ends = np.cumsum(totals[first : first + self._plan.group_buckets])
            fitting = int(np.searchsorted(ends, self._plan.group_records, "right"))
            last = first + max(1, fitting)
            yield _Group(first, last, int(ends[last - first - 1]))
            first = last

    def _sort(self, loaded: LoadedRuns, first_bucket: int, room: _Sorted, counts: Ids) -> _Sorted:
        """Sorts buckets into `room`; returns what of it is filled."""
        plan = self._plan
        kept = plan.records.sort(
            loaded.records,
            loaded.starts,
            first_bucket << plan.shift,
            plan.shift,
            plan.dedup,
            self._scratch,
            room.indices,
            room.perm,
            counts,
        )
        return room.first(kept)

    def _sort_in_parts(self, group: _Group, buffer: Bytes, counts: Ids) -> None:
        """A bucket that does not fit into memory, by smaller ranges of ends; it is read for every one."""
        first, nodes = group.first << self._plan.shift, 1 << self._plan.shift
        highest = self._plan.num_nodes - 1
        box = _Box(first, min(first + nodes - 1, highest), 0, highest, group.num_records)
        selected = buffer.view(self._plan.records.dtype)
        for part in self._parts(group.first, box):
            if part.num_records > self._plan.load_records:
                self._write_equal(group, part, counts)
                continue
            at = 0
            for records in self._records(group.first):
                found = part.select(records)
                selected[at : at + len(found)] = found
                at += len(found)
            part_records = LoadedRuns(buffer, np.array([[0, at]]))
            self._output.append(*self._sort(part_records, group.first, self._rooms[0], counts))

    def _parts(self, bucket: int, box: _Box) -> Iterator[_Box]:
        """The box in parts that fit, ascending; one of edges with the same ends may not."""
        first, last = box.ends
        if box.num_records <= self._plan.load_records or (box.by_source and first == last):
            yield box
            return
        shift = max(0, (last - first).bit_length() - (_MAX_PARTS - 1).bit_length())
        counts = np.zeros(((last - first) >> shift) + 1, np.int64)
        for records in self._records(bucket):
            ends = box.select(records)["src" if box.by_source else "dst"]
            counts += np.bincount((ends - first).astype(np.int64) >> shift, minlength=len(counts))
        at = 0
        while at < len(counts):
            ends = np.cumsum(counts[at:])
            until = at + max(1, int(np.searchsorted(ends, self._plan.load_records, "right")))
            part_last = min(last, first + (until << shift) - 1)
            part = box.part(first + (at << shift), part_last, int(ends[until - at - 1]))
            at = until
            if part.num_records:
                yield from self._parts(bucket, part)

    def _write_equal(self, group: _Group, box: _Box, counts: Ids) -> None:
        """More edges with the same ends than fit: they come in the order of their ranks already."""
        equal: Iterator[NDArray[Any]] = (box.select(records) for records in self._records(group.first))
        if self._plan.dedup:
            equal = iter([_first_of(equal, self._plan.ranked)])
        for records in equal:
            perm = self._plan.records.positions(records) if self._plan.ranked else None
            self._output.append(records["src"].astype(self._rooms[0].indices.dtype), perm)
            counts[box.first_dst - (group.first << self._plan.shift)] += len(records)

    def _records(self, bucket: int) -> Iterator[NDArray[Any]]:
        size = max(1, min(1 << 16, self._plan.load_records))
        for piece in self._runs.pieces(bucket, size):
            yield piece.view(self._plan.records.dtype)


def _first_of(equal: Iterator[NDArray[Any]], ranked: bool) -> NDArray[Any]:
    """(1,) that of the equal records that is kept: a given edge ranks before a reverse one."""
    first = next(records[:1] for records in equal if len(records)).copy()
    for records in equal:
        if ranked and len(records):
            first["rank"] = min(first["rank"][0], records["rank"].min())
    return first
