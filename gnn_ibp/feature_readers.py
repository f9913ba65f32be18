"""FeatureReaders: the readers of a data set's features, opened on a device, or for this process alone."""

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.budget import parse_bytes
from gnn_ibp.cache import RowCache
from gnn_ibp.cuda import Cuda
from gnn_ibp.dataset import Dataset
from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.device.word import Device, device_word, open_device
from gnn_ibp.errors import unknown_name
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.graph import Graph
from gnn_ibp.hotset import degree_hot_set
from gnn_ibp.rows import AnyIds
from gnn_ibp.tiers import Stats, TieredRows, total

HOT_SETS: dict[str, Callable[[Graph], AnyIds]] = {"degree": degree_hot_set}
"""Hot sets that the graph alone tells, by name."""


@dataclass(frozen=True)
class ReaderSettings:
    """What `FeatureStore` was asked for; see there. Opened in another process they mean the same."""

    device: Device = "cpu"
    cache_bytes: int | str = "auto"
    host_bytes: int | str = "auto"
    hot_set: str | Tensor | AnyIds | None = "degree"
    raw: bool = False

    def __post_init__(self) -> None:
        parse_bytes(self.cache_bytes)
        parse_bytes(self.host_bytes)
        if isinstance(self.hot_set, str) and self.hot_set not in HOT_SETS:
            raise ValueError(
                f"{unknown_name('hot set', self.hot_set, HOT_SETS)}; or give ids, "
                "such as gnn_ibp.presample(…)"
            )


class FeatureReaders:
    """One `TieredRows` per feature, opened at the first use; from many threads.

    `x` is read through caches as the settings say, every other feature from its file, on the device of the
    settings. Worker processes leave the device alone, where it could not be used, and do not multiply memory:
    what a DataLoader's worker opens, or any child forked while the device was in use, reads the files into
    CPU memory. Readers on the CPU that were open before a fork go on in the child, caches included. A pickled
    object carries the settings, nothing that is open.

    Raises what `open_device` raises, and ValueError where there are host_bytes and no device beside them.
    """

    def __init__(self, dataset: Dataset, settings: ReaderSettings) -> None:
        self.dataset = dataset
        self.settings = settings
        self._start()
        if self.cuda is None and not in_worker() and _wants_bytes(settings.host_bytes):
            found = "" if device_word(settings.device) == "cpu" else "no GPU was found, and "
            raise ValueError(
                f"host_bytes is {settings.host_bytes!r}: {found}on the CPU there is no host tier beside the "
                "cache, give the memory to cache_bytes"
            )

    def _start(self) -> None:
        self._lock = ForkLock()
        self._readers: dict[str, TieredRows] = {}
        self._cuda: Cuda | None = None
        self._opened = False
        self._files_only = False

    @property
    def cuda(self) -> Cuda | None:
        """The device that rows are read to; None for the CPU."""
        with self._lock:
            if self._files_only or in_worker():
                return None
            if not self._opened:
                self._cuda, self._opened = open_device(self.settings.device), True
                if self._cuda is not None:
                    _DEVICES.add(self)
                    _watch_forks()
            return self._cuda

    def open(self, name: str) -> TieredRows:
        """The reader of a feature. Raises KeyError where there is none of this name."""
        with self._lock:
            if name not in self._readers:
                file = self.dataset.feature_file(name, raw=self.settings.raw and name == "x")
                caches = self._caches(file) if name == "x" else self._no_caches(file)
                self._readers[name] = TieredRows(caches, file, self.cuda)
            return self._readers[name]

    def stats(self) -> Stats:
        """The sum of the counters of all readers, tier by tier."""
        with self._lock:
            readers = list(self._readers.values())
        return total([reader.stats() for reader in readers])

    def __getstate__(self) -> dict[str, Any]:
        settings = replace(self.settings, device=device_word(self.settings.device))
        return {"dataset": self.dataset, "settings": settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _caches(self, file: FeatureFile) -> list[RowCache]:
        settings, cuda = self.settings, self.cuda
        if self._files_only or in_worker():
            return self._no_caches(file)
        if cuda is None:
            cache_bytes = parse_bytes(settings.cache_bytes)
            return [RowCache.fill(file, self._hot_ids(cache_bytes), cache_bytes)]
        cache_bytes = parse_bytes(settings.cache_bytes, cuda.free_bytes)
        host_bytes = parse_bytes(settings.host_bytes)
        return device_caches(cuda, file, self._hot_ids(cache_bytes + host_bytes), cache_bytes, host_bytes)

    def _no_caches(self, file: FeatureFile) -> list[RowCache]:
        """As many as x has: the misses of one tier are then the lookups of the next for all features."""
        num_caches = 1 if self.cuda is None else 2
        return [RowCache.empty(file.codec) for _ in range(num_caches)]

    def _hot_ids(self, budget_bytes: int) -> Tensor | AnyIds:
        hot_set = self.settings.hot_set
        if hot_set is None or budget_bytes == 0:
            return np.empty(0, np.int64)
        if not isinstance(hot_set, str):
            return hot_set
        loaded: Graph | None = vars(self.dataset).get("graph")  # else it need not stay in memory for one look
        return HOT_SETS[hot_set](loaded or self.dataset.mapped_graph())

    def _leave_device(self) -> None:
        """In a child that was forked: what is on the device is the parent's, and must not even be freed."""
        _PARENTS.append((self._readers, self._cuda))
        self._start()
        self._files_only = True


def in_worker() -> bool:
    """Whether this process is a worker of a DataLoader."""
    return torch.utils.data.get_worker_info() is not None


_DEVICES: weakref.WeakSet[FeatureReaders] = weakref.WeakSet()
"""All that hold something on a device."""

_PARENTS: list[Any] = []
"""What a forked child inherited of it, kept until the child ends."""


def _after_fork_in_child() -> None:
    for readers in list(_DEVICES):
        readers._leave_device()
    _DEVICES.clear()


@cache
def _watch_forks() -> None:
    """From the first device on, once."""
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _wants_bytes(size: int | str) -> bool:
    """Whether a size was asked for, other than "auto" and 0."""
    return parse_bytes(size, free=lambda: 0) > 0
