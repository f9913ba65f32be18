"""HostTiers: rows out of caches in ordinary memory, then the file, decoded by the CPU."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.read_request import Out, ReadRequest


@dataclass
class Served:
    """What one tier gave to a read; the bytes are explained at `gnn_ibp.tiers.TierCounters`."""

    num_rows: int = 0
    encoded_bytes: int = 0
    physical_bytes: int = 0
    pcie_bytes: int = 0
    seconds: float = 0.0

    def add(self, other: "Served") -> None:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


class HostTiers:
    """caches: all in ordinary memory. Any number of threads may read."""

    def __init__(self, caches: Sequence[RowCache], file: FeatureFile) -> None:
        self._file = file
        self._num_caches = len(caches)
        self._sources = {k: cache.source for k, cache in enumerate(caches) if cache.source}

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None
    ) -> list[Served]:
        """See `FeatureFile.read`. What each cache gave, and last the file."""
        return self.read_checked(ReadRequest.checked(ids, out, at, self._file.num_rows, self._file.row_type))

    def nothing(self) -> list[Served]:
        """What nobody was asked for."""
        return [Served() for _ in range(self._num_caches + 1)]

    def read_checked(self, request: ReadRequest) -> list[Served]:
        """`read` for a reader that has checked the arguments itself."""
        *served, _ = self.nothing()
        start = time.perf_counter()
        missing = request
        if self._sources and len(request.ids):
            gathered = ops.gather_decode(request.ids, [*self._sources.values()], request.out, request.at)
            missing = ReadRequest(gathered.missing.ids, request.out, gathered.missing.at)
            found = zip(self._sources, gathered.hits, gathered.encoded_bytes, strict=True)
            for k, num_rows, num_bytes in found:
                served[k] = Served(num_rows, num_bytes, num_bytes)
        cached = time.perf_counter()
        if served:
            served[0].seconds = cached - start
        disk = self._file.read_checked(missing)
        end = time.perf_counter()
        last = Served(len(missing.ids), disk.encoded_bytes, disk.physical_bytes, 0, end - cached)
        return [*served, last]
