"""Lookup: what a read on a device finds out besides its rows: counts, and which ids are missing."""

import threading

import torch
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.cuda import Cuda, Event
from gnn_ibp.device.locked_memory import LockedMemory
from gnn_ibp.ops.device import COUNT_WORDS, GatherCounts


class Lookup:
    """Memory for the counts and lists of one read of up to `num_ids` ids.

    counts, missing_ids, missing_at: int64, for the kernel. It writes the lists to host memory itself where
    that is page-locked: waiting once then suffices for both.
    """

    def __init__(self, cuda: Cuda, memory: LockedMemory, num_ids: int) -> None:
        self.num_ids = num_ids
        self.fetched: Event | None = None
        """While the device may still write to the memory: passed when it does not."""
        self._cuda = cuda
        host = memory.take(8 * (COUNT_WORDS + 2 * num_ids))
        words = host.bytes.view(torch.int64)
        self._host_counts, self._host_lists = words[:COUNT_WORDS], words[COUNT_WORDS:].view(2, num_ids)
        device = cuda.empty(8 * (COUNT_WORDS + (0 if host.locked else 2 * num_ids))).view(torch.int64)
        self.counts = device[:COUNT_WORDS]
        self._lists = self._host_lists if host.locked else device[COUNT_WORDS:].view(2, num_ids)

    @property
    def missing_ids(self) -> Tensor:
        return self._lists[0]

    @property
    def missing_at(self) -> Tensor:
        return self._lists[1]

    def fetch(self) -> Event:
        """Queues the way back of the counts; `found` and `missing` are valid when the event has passed."""
        self._cuda.copy(self._host_counts, self.counts)
        self.fetched = self._cuda.event()
        return self.fetched

    def found(self) -> GatherCounts:
        """What the kernel counted."""
        self.fetched = None
        return GatherCounts.from_words(self._host_counts.numpy())

    def missing(self, num_missing: int) -> ops.Missing:
        """The ids and places that the kernel listed; over the memory of the lookup."""
        host_ids, host_at = self._host_lists[:, :num_missing]
        if num_missing and self._lists is not self._host_lists:
            self._cuda.copy(host_ids, self.missing_ids[:num_missing])
            self._cuda.copy(host_at, self.missing_at[:num_missing])
            self._cuda.event().wait()
        return ops.Missing(host_ids.numpy(), host_at.numpy())


class Lookups:
    """Keeps lookups for the next reads: as many as were ever in use at once."""

    def __init__(self, cuda: Cuda, memory: LockedMemory) -> None:
        self._cuda = cuda
        self._memory = memory
        self._free: list[Lookup] = []
        self._lock = threading.Lock()

    def take(self, num_ids: int) -> Lookup:
        """One with room for so many ids, for use on the current stream."""
        with self._lock:
            lookup = self._free.pop() if self._free else None
        if lookup and lookup.fetched:  # that read was interrupted
            lookup.fetched.wait()
        if lookup is None or lookup.num_ids < num_ids:
            lookup = Lookup(self._cuda, self._memory, num_ids + num_ids // 8)  # minibatches differ in size
        self._cuda.share(lookup.counts, lookup.missing_ids)
        return lookup

    def give_back(self, lookup: Lookup) -> None:
        """For the next read."""
        with self._lock:
            self._free.append(lookup)
