"""TieredRows: the one reader that users' reads go through. Caches, then the file; counters of each."""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import torch
from numpy.typing import ArrayLike

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.read_request import Out, ReadRequest
from gnn_ibp.row_type import RowType

CACHE_TIERS = ("cache", "host")
DISK = "disk"

Counters = dict[str, int | float | None]
Stats = dict[str, Counters]


@dataclass
class TierCounters:
    """What one tier served. The misses of a tier are the lookups of the next; the last one has none.

    logical_bytes: of the rows decoded; encoded_bytes: as they are stored; physical_bytes: what was moved for
    them: the same in memory, pages on a disk. seconds: of all calls, which may overlap in threads; caches are
    served in one pass, whose time stands at the first.
    """

    lookups: int = 0
    hits: int = 0
    misses: int = 0
    logical_bytes: int = 0
    encoded_bytes: int = 0
    physical_bytes: int = 0
    seconds: float = 0.0

    def add(self, other: "TierCounters") -> None:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


_COUNTS = [field.name for field in fields(TierCounters)]


class TieredRows:
    """Rows of a feature file, through up to two caches. Any number of threads may read.

    caches: in the order in which they are asked, named "cache" and "host" in `stats`; empty ones count too.
    """

    def __init__(self, caches: Sequence[RowCache], file: FeatureFile) -> None:
        if len(caches) > len(CACHE_TIERS):
            raise ValueError(f"{len(caches)} caches came, at most {len(CACHE_TIERS)} are possible")
        self.caches = tuple(caches)
        self.file = file
        self._sources = [cache.source for cache in caches]
        self._names = (*CACHE_TIERS[: len(caches)], DISK)
        self._counters = {name: TierCounters() for name in self._names}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        return self.file.num_rows

    @property
    def row_type(self) -> RowType:
        return self.file.row_type

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None = None
    ) -> None:
        """Writes row ids[i] to out[i], or to out[at[i]]; see `FeatureFile.read` for arguments and errors.

        A read that fails is not counted.
        """
        self.read_checked(ReadRequest.checked(ids, out, at, self.num_rows, self.row_type))

    def read_checked(self, request: ReadRequest) -> None:
        """`read` for a reader that has checked the arguments itself."""
        used = [source for source in self._sources if source]
        num_hits, encoded_bytes = [0] * len(self._sources), [0] * len(self._sources)
        start = time.perf_counter()
        missing = request
        if used and len(request.ids):
            gathered = ops.gather_decode(request.ids, used, request.out, request.at)
            missing = ReadRequest(gathered.missing.ids, request.out, gathered.missing.at)
            served = [k for k, source in enumerate(self._sources) if source]
            for k, hits, num_bytes in zip(served, gathered.hits, gathered.encoded_bytes, strict=True):
                num_hits[k], encoded_bytes[k] = hits, num_bytes
        cached = time.perf_counter()
        disk = self.file.read_checked(missing)
        end = time.perf_counter()

        tiers: list[TierCounters] = []
        lookups, seconds = len(request.ids), cached - start
        for hits, num_bytes in zip(num_hits, encoded_bytes, strict=True):
            tiers.append(self._tier(lookups, hits, num_bytes, num_bytes, seconds))
            lookups, seconds = lookups - hits, 0.0
        tiers.append(self._tier(lookups, lookups, disk.encoded_bytes, disk.physical_bytes, end - cached))
        with self._lock:
            for name, tier in zip(self._names, tiers, strict=True):
                self._counters[name].add(tier)

    def _tier(self, lookups: int, hits: int, encoded: int, physical: int, seconds: float) -> TierCounters:
        logical = hits * self.file.row_bytes
        return TierCounters(lookups, hits, lookups - hits, logical, encoded, physical, seconds)

    def stats(self) -> Stats:
        """Per tier what `TierCounters` counts, since the beginning, and hit_rate: None before a lookup."""
        with self._lock:
            return {name: _with_rate(asdict(counters)) for name, counters in self._counters.items()}


def subtract(after: Stats, before: Stats) -> Stats:
    """What happened between two `stats()` of the same reader."""
    return {
        name: _with_rate({key: _count(tier, key) - _count(before[name], key) for key in _COUNTS})
        for name, tier in after.items()
    }


def total(stats: Sequence[Stats]) -> Stats:
    """The sum of the `stats()` of several readers, tier by tier."""
    sums: Stats = {}
    for name in (*CACHE_TIERS, DISK):
        tiers = [one[name] for one in stats if name in one]
        if tiers:
            sums[name] = _with_rate({key: sum(_count(tier, key) for tier in tiers) for key in _COUNTS})
    return sums


def _count(tier: Counters, name: str) -> int | float:
    count = tier[name]
    assert count is not None, "only rates are None"
    return count


def _with_rate(counters: dict[str, int | float]) -> Counters:
    rate = counters["hits"] / counters["lookups"] if counters["lookups"] else None
    first = {name: counters[name] for name in ("lookups", "hits", "misses")}
    return {**first, "hit_rate": rate, **counters}
