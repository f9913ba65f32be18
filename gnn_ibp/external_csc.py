"""Edges to CSC through files, within a given memory: what `build_csc` gives, byte for byte."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.edge_runs import EdgeRuns
from gnn_ibp.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edge_stream import EdgeStream
from gnn_ibp.futures import finish_oldest
from gnn_ibp.growing_file import GrowingArray
from gnn_ibp.journal import Journal
from gnn_ibp.progress import progress
from gnn_ibp.rows import Bytes
from gnn_ibp.stages import Stages

Ids = NDArray[np.int64]

CHECKPOINT_RECORDS = 1 << 26
"""So many may have to be sorted again after a kill."""

STAGE = "sorted edges"

_RANK = (1 << 63) - 1  # without the bit of reverse edges
_MAX_PARTS = 1 << 12


@dataclass(frozen=True)
class CscPaths:
    """indptr, indices: .npy files. perm: where each edge stood in the stream; None where nobody asks."""

    indptr: Path
    indices: Path
    perm: Path | None


def write_csc(
    edges: EdgeStream, plan: EdgeSortPlan, paths: CscPaths, work: Path, journal: Journal, stages: Stages
) -> int:
    """Sorts `edges` into the files of `paths`; returns how many there are. `work` takes the runs meanwhile.

    Goes on from what the journal tells; the runs stay for that until `remove_runs`. Raises IndexError naming
    the first edge with an end that does not exist, OSError for a full disk.
    """
    runs = EdgeRuns(work, plan, journal)
    runs.write(edges, stages)
    with stages.measure("sort edges") as stage, _Output(paths, plan, journal) as output:
        num_records = _Sort(runs, plan, output).run()
        stage.num_bytes = num_records * plan.records.record_bytes
        stage.num_edges = num_records // (1 + plan.undirected)
        return output.finish()


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


class _Output:
    """The files that come out, and how far they are."""

    def __init__(self, paths: CscPaths, plan: EdgeSortPlan, journal: Journal) -> None:
        state = journal.get(STAGE) or {"bucket": 0, "num_edges": 0}
        self._plan, self._journal = plan, journal
        self.bucket, self.num_edges = state["bucket"], state["num_edges"]
        num_nodes = min(self.bucket << plan.shift, plan.num_nodes)
        int64 = np.dtype(np.int64)
        self._indptr = GrowingArray(paths.indptr, int64, num_nodes + 1 if num_nodes else 0)
        if not num_nodes:
            self._indptr.append(np.zeros(1, np.int64))
        indices_dtype = np.dtype(np.int32 if plan.index_bytes == 4 else np.int64)
        self._indices = GrowingArray(paths.indices, indices_dtype, self.num_edges)
        self._perm = GrowingArray(paths.perm, int64, self.num_edges) if paths.perm else None
        self._num_synced = self._num_seen = 0

    def append(self, indices: NDArray[Any], perm: Ids | None) -> None:
        """Adds edges, the next in order."""
        self._indices.append(indices)
        if self._perm:
            assert perm is not None
            self._perm.append(perm)

    def end_group(self, group: _Group, counts: Ids) -> None:
        """All edges of a group are there; counts: of each of its nodes. `counts` is used up."""
        nodes_left = self._plan.num_nodes - (group.first << self._plan.shift)
        counts = counts[: min(nodes_left, len(counts))]
        np.cumsum(counts, out=counts)
        counts += self.num_edges
        self._indptr.append(counts)
        self.num_edges = self._indices.num_values
        self.bucket = group.last
        self._num_seen += group.num_records
        if self._num_seen - self._num_synced >= CHECKPOINT_RECORDS:
            self._num_synced = self._num_seen
            for array in filter(None, (self._indptr, self._indices, self._perm)):
                array.sync()
            self._journal.put(STAGE, bucket=self.bucket, num_edges=self.num_edges)

    def finish(self) -> int:
        """Completes the files; returns the number of edges."""
        for array in filter(None, (self._indptr, self._indices, self._perm)):
            array.finish()
        return int(self.num_edges)

    def __enter__(self) -> "_Output":
        return self

    def __exit__(self, *_: object) -> None:
        for array in filter(None, (self._indptr, self._indices, self._perm)):
            array.close()


class _Sorted(NamedTuple):
    """What comes out of a sort: sources, and where they stood."""

    indices: Any
    perm: Ids | None

    def first(self, count: int) -> "_Sorted":
        return _Sorted(self.indices[:count], None if self.perm is None else self.perm[:count])


class _Sort:
    """Sorts group after group; the next one is read, and the last one written, meanwhile."""

    def __init__(self, runs: EdgeRuns, plan: EdgeSortPlan, output: _Output) -> None:
        self._runs, self._plan, self._output = runs, plan, output
        records, size = plan.records, plan.load_records
        self._buffers = [np.empty(size * records.record_bytes, np.uint8) for _ in range(2)]
        self._scratch = np.empty(size * records.tail_bytes, np.uint8)
        self._rooms = [self._room(size) for _ in range(2)]

    def _room(self, size: int) -> _Sorted:
        indices: Any = np.empty(size, np.int32 if self._plan.index_bytes == 4 else np.int64)
        return _Sorted(indices, np.empty(size, np.int64) if self._plan.ranked else None)

    def run(self) -> int:
        """Sorts what is not sorted yet; returns how many records that were."""
        totals = self._runs.totals()
        first = self._output.bucket
        groups = list(self._groups(totals))
        with (
            ThreadPoolExecutor(1, "read-edges") as reader,
            ThreadPoolExecutor(1, "write-edges") as writer,
            progress("sorting edges", int(totals.sum()), "edges") as bar,
        ):
            bar.update(int(totals[:first].sum()))
            loading: list[Future[Ids] | None] = [None, None]
            writing = deque[Future[None]]()
            for i, group in enumerate(groups):
                for ahead in groups[i : i + 2]:  # this one, at the start, and the next
                    slot = (i + (ahead is not group)) % 2
                    if loading[slot] is None and ahead.num_records <= self._plan.load_records:
                        buffer = self._buffers[slot]
                        loading[slot] = reader.submit(self._runs.load, ahead.first, ahead.last, buffer)
                loaded, loading[i % 2] = loading[i % 2], None
                if loaded:
                    starts = loaded.result()
                    finish_oldest(writing, 1)  # one may be under way, from the other room
                    room, counts = self._rooms[i % 2], self._no_counts(group)
                    found = self._sort(self._buffers[i % 2], starts, group.first, room, counts)
                    before = writing[-1] if writing else None
                    writing.append(writer.submit(self._write, before, group, found, counts))
                else:
                    finish_oldest(writing, 0)
                    counts = self._no_counts(group)
                    self._sort_in_parts(group, self._buffers[i % 2], counts)
                    self._output.end_group(group, counts)
                bar.update(group.num_records)
            finish_oldest(writing, 0)
        return int(totals[first:].sum())

    def _write(self, before: Future[None] | None, group: _Group, found: _Sorted, counts: Ids) -> None:
        if before:
            before.result()  # where that failed nothing may follow: the journal would tell of a gap
        self._output.append(*found)
        self._output.end_group(group, counts)

    def _no_counts(self, group: _Group) -> Ids:
        return np.zeros((group.last - group.first) << self._plan.shift, np.int64)

    def _groups(self, totals: Ids) -> Iterator[_Group]:
        """As many buckets as fit; one that does not fit is a group of its own."""
        first = self._output.bucket
        while first < len(totals):
            ends = np.cumsum(totals[first : first + self._plan.load_buckets])
            fitting = int(np.searchsorted(ends, self._plan.load_records, "right"))
            last = first + max(1, fitting)
            yield _Group(first, last, int(ends[last - first - 1]))
            first = last

    def _sort(self, records: Bytes, starts: Ids, first_bucket: int, room: _Sorted, counts: Ids) -> _Sorted:
        """Sorts buckets into `room`; returns what of it is filled."""
        plan = self._plan
        kept = plan.records.sort(
            records,
            starts,
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
            self._output.append(*self._sort(buffer, np.array([0, at]), group.first, self._rooms[0], counts))

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
            perm = (records["rank"] & _RANK).astype(np.int64) if self._plan.ranked else None
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
