"""TieredRows: the one reader that users' reads go through. Caches, then the file; counters of each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import torch
from numpy.typing import ArrayLike

from gnn_ibp.cache import RowCache
from gnn_ibp.cuda import Cuda
from gnn_ibp.device.copied_tiers import CopiedTiers
from gnn_ibp.device.device_decoder import decodes
from gnn_ibp.device.device_tiers import DeviceTiers
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.host_tiers import HostTiers, Served
from gnn_ibp.read_request import Out
from gnn_ibp.row_type import RowType

CACHE_TIERS = ("cache", "host")
DISK = "disk"

Counters = dict[str, int | float | None]
Stats = dict[str, Counters]


@dataclass
class TierCounters:
    """What one tier served. The misses of a tier are the lookups of the next; the last one has none.

    logical_bytes: of the rows decoded; encoded_bytes: as they are stored; physical_bytes: what was moved for
    them: the same in memory, 32-byte sectors where a device reads host memory, pages on a disk.
    pcie_bytes: of the sectors that crossed the bus to a device: of host rows, and of staged rows of the disk.
    seconds: of all calls, which may overlap in threads; caches are served in one pass, whose time stands at
    the first.
    """

    lookups: int = 0
    hits: int = 0
    misses: int = 0
    logical_bytes: int = 0
    encoded_bytes: int = 0
    physical_bytes: int = 0
    pcie_bytes: int = 0
    seconds: float = 0.0

    def add(self, other: "TierCounters") -> None:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


_COUNTS = [field.name for field in fields(TierCounters)]


class TieredRows:
    """Rows of a feature file, through up to two caches. Any number of threads may read.

    caches: in the order in which they are asked, named "cache" and "host" in `stats`; empty ones count too.
    cuda: rows are wanted on its device; `gnn_ibp.device.device_cache.device_caches` makes the caches then.
    """

    def __init__(self, caches: Sequence[RowCache], file: FeatureFile, cuda: Cuda | None = None) -> None:
        if len(caches) > len(CACHE_TIERS):
            raise ValueError(f"{len(caches)} caches came, at most {len(CACHE_TIERS)} are possible")
        self.caches = tuple(caches)
        self.file = file
        self.cuda = cuda
        self._tiers = _tiers(caches, file, cuda)
        self._names = (*CACHE_TIERS[: len(caches)], DISK)
        self._counters = {name: TierCounters() for name in self._names}
        self._lock = ForkLock()

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

        With a device `out` is a tensor there, and `ids` and `at` may be; kernels check ids that are, with the
        same IndexError. The rows are written in the order of the current stream: what is queued there
        afterwards finds them. A read that fails is not counted.
        """
        self._count(self._tiers.read(ids, out, at))

    def _count(self, served: Sequence[Served]) -> None:
        lookups = sum(tier.num_rows for tier in served)
        with self._lock:
            for name, tier in zip(self._names, served, strict=True):
                misses = lookups - tier.num_rows
                logical_bytes = tier.num_rows * self.file.row_bytes
                moved = (tier.encoded_bytes, tier.physical_bytes, tier.pcie_bytes)
                counts = TierCounters(lookups, tier.num_rows, misses, logical_bytes, *moved, tier.seconds)
                self._counters[name].add(counts)
                lookups = misses

    def stats(self) -> Stats:
        """Per tier what `TierCounters` counts, since the beginning, and hit_rate: None before a lookup."""
        with self._lock:
            return {name: _with_rate(asdict(counters)) for name, counters in self._counters.items()}


def _tiers(
    caches: Sequence[RowCache], file: FeatureFile, cuda: Cuda | None
) -> HostTiers | DeviceTiers | CopiedTiers:
    """Who reads the rows."""
    if cuda is None:
        if any(cache.device_source for cache in caches):
            raise ValueError("a cache lies on a device, which is not given as cuda")
        return HostTiers(caches, file)
    if not decodes(file.codec):
        return CopiedTiers(HostTiers(caches, file), file, cuda)
    return DeviceTiers(caches, file, cuda)


def subtract(after: Stats, before: Stats) -> Stats:
    """What happened between two `stats()` of the same reader; a tier not there before had no lookups."""
    nothing: Counters = dict.fromkeys(_COUNTS, 0)
    return {
        name: _with_rate({key: _count(tier, key) - _count(before.get(name, nothing), key) for key in _COUNTS})
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
