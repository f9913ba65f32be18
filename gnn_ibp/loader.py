"""Minibatches of an epoch, prepared by threads while the model trains, handed over in order."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

import numpy as np
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.buffers import BufferPool, buffer_bytes
from gnn_ibp.cuda import Event
from gnn_ibp.device.side_streams import SideStreams
from gnn_ibp.feature_file import READ_LIST_BYTES
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.minibatch import MiniBatch
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import Ids
from gnn_ibp.sample import Sample, SampleShape

MAX_PREFETCH = 8
"""Minibatches that are prepared ahead by default at most: each takes its room on the device."""


class Sampler(Protocol):
    """What the loader needs of a sampler: `gnn_ibp.samplers.NeighborSampler`, or one of the user's own."""

    def sample(self, seeds: Tensor, *, epoch: int = 0, batch: int = 0) -> Sample:
        """The neighbourhood of `seeds`; what is drawn depends on the arguments alone."""
        ...


@dataclass(frozen=True)
class _Prepared:
    """A minibatch on its way to the consumer; `event` passes when the device has made all of it."""

    batch: MiniBatch
    event: Event | None


class Loader:
    """Iterates over minibatches of `seeds`; one pass is one epoch.

    Neighbourhoods are drawn on the CPU. With a store on a GPU every tensor of a minibatch is there: threads
    upload the neighbourhood and fetch the rows on streams of their own, and the stream that is current
    where a minibatch is taken waits for them, not the thread.

    Batches are the same for the same `seed`, whatever `prefetch` and `num_threads` are. Shuffling and
    sampling depend on the number of the epoch: 1 for the first pass, then one more for each, unless
    `set_epoch` says otherwise.

    Args:
        store: says on which device; where `x` and `y` come from.
        sampler: draws the neighbourhoods.
        seeds: int64 (num_seeds,), node ids.
        batch_size: seeds per minibatch; the last one may be smaller unless `drop_last`.
        shuffle: a new order of the seeds in each epoch.
        seed: of the order; the sampler has its own.
        prefetch: batches prepared ahead; 0 prepares each one when it is asked for, on the caller's thread
            and its current stream. By default 2, and on a GPU as many as there are processors, 2 to 8: it
            takes a batch in a fraction of the time in which one thread draws its neighbourhood.
        num_threads: threads that prepare batches, at most `prefetch`; by default as many as there are
            processors, at most `prefetch`.
        max_batches: an epoch ends after so many minibatches.
        buffers: memory for the rows, shared with other loaders; by default the loader has its own.

    Raises:
        IndexError: a seed is not a node.
        TypeError: a number is no int.
        ValueError: batch_size, prefetch, num_threads, max_batches or seed is out of range.
    """

    def __init__(
        self,
        store: FeatureStore,
        sampler: Sampler,
        seeds: Tensor,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        prefetch: int | None = None,
        num_threads: int | None = None,
        max_batches: int | None = None,
        buffers: BufferPool | None = None,
    ) -> None:
        if prefetch is None:
            prefetch = default_prefetch(store.cuda is not None)
        _check_number("batch_size", batch_size, 1)
        _check_number("prefetch", prefetch, 0)
        _check_number("num_threads", 1 if num_threads is None else num_threads, 1)
        _check_number("max_batches", 1 if max_batches is None else max_batches, 1)
        _check_number("seed", seed, 0)
        self.store = store
        self.sampler = sampler
        self.seeds = ops.check_ids(seeds, store.num_nodes)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.seed = seed
        self.prefetch = prefetch
        self.max_batches = max_batches
        self.num_threads = min(num_threads or ops.num_threads(), max(1, prefetch))
        self.seconds = {"sample": 0.0, "fetch": 0.0, "wait": 0.0}
        """Of the current or last pass: thread time spent sampling and fetching; time the consumer waited."""
        self._epoch = 1
        self._buffers = buffers or BufferPool(num_kept=batches_held(prefetch))
        self._streams = SideStreams()
        self._lock = ForkLock()

    def __len__(self) -> int:
        """Minibatches per epoch."""
        full, rest = divmod(len(self.seeds), self.batch_size)
        num_batches = full + (1 if rest and not self.drop_last else 0)
        return num_batches if self.max_batches is None else min(num_batches, self.max_batches)

    def set_epoch(self, epoch: int) -> None:
        """The number the next pass takes."""
        _check_number("epoch", epoch, 0)
        self._epoch = epoch

    def __iter__(self) -> Iterator[MiniBatch]:
        return self.batches(self._epoch)

    def batches(
        self, epoch: int, first: int = 0, more: Callable[[int], bool] | None = None
    ) -> Iterator[MiniBatch]:
        """The pass of number `epoch` from minibatch `first` on; nothing is done for those before.

        more: asked before each minibatch but the first is begun, with its number. Where it says no the pass
        ends with those that are under way, so that nothing was read for a minibatch that nobody gets.
        """
        _check_number("epoch", epoch, 0)
        self._epoch = epoch + 1
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        numbers: Iterable[int] = range(first, len(self))
        if more is not None:
            numbers = takewhile(lambda number: number == first or more(number), numbers)
        order = self._order(epoch)
        if self.prefetch == 0:
            return self._in_turn(order, epoch, numbers)
        return self._ahead(order, epoch, numbers)

    def _order(self, epoch: int) -> Ids:
        if not self.shuffle:
            return self.seeds
        generator = np.random.Generator(np.random.Philox(key=np.array([self.seed, epoch], np.uint64)))
        return generator.permutation(self.seeds)

    def _in_turn(self, order: Ids, epoch: int, numbers: Iterable[int]) -> Iterator[MiniBatch]:
        for number in numbers:
            start = time.perf_counter()
            batch = self._prepare(order, epoch, number)
            self._add_seconds("wait", start)
            yield batch

    def _ahead(self, order: Ids, epoch: int, numbers: Iterable[int]) -> Iterator[MiniBatch]:
        pending: deque[Future[_Prepared]] = deque()
        threads = ThreadPoolExecutor(self.num_threads, thread_name_prefix="gnn_ibp.Loader")
        try:
            for number in numbers:
                pending.append(threads.submit(self._prepare_aside, order, epoch, number))
                if len(pending) > self.prefetch:
                    yield self._next(pending)
            while pending:
                yield self._next(pending)
        finally:  # also when the consumer leaves early or a batch fails
            with suppress(RuntimeError):  # one of the threads, which cannot wait for itself, collects garbage
                threads.shutdown(wait=True, cancel_futures=True)
            cuda = self.store.cuda
            if pending and cuda is not None:  # what nobody takes may still be under way
                self._streams.wait(cuda)

    def _next(self, pending: deque[Future[_Prepared]]) -> MiniBatch:
        start = time.perf_counter()
        prepared = pending[0].result()
        pending.popleft()
        cuda = self.store.cuda
        if cuda is not None and prepared.event is not None:
            prepared.event.join()
            cuda.share(*prepared.batch.tensors)
        self._add_seconds("wait", start)
        return prepared.batch

    def _prepare_aside(self, order: Ids, epoch: int, number: int) -> _Prepared:
        """`_prepare` on a thread of ours, and on a stream of its own where there is a device."""
        cuda = self.store.cuda
        if cuda is None:
            return _Prepared(self._prepare(order, epoch, number), None)
        with self._streams.take(cuda):
            batch = self._prepare(order, epoch, number)
            return _Prepared(batch, cuda.event())

    def _prepare(self, order: Ids, epoch: int, number: int) -> MiniBatch:
        """The whole way of one minibatch: seeds, neighbourhood, features, labels."""
        start = time.perf_counter()
        seeds = ops.ids_tensor(order[number * self.batch_size : (number + 1) * self.batch_size])
        sample = self.sampler.sample(seeds, epoch=epoch, batch=number)
        start = self._add_seconds("sample", start)
        nodes, cuda, x = sample.node_ids, self.store.cuda, None
        if cuda is not None:
            sample = sample.apply(cuda.upload)
        if self.store.has("x"):
            x = self.store.read("x", sample.node_ids, self._buffers.empty if cuda is None else None)
        labels = self.store.labels(nodes)
        self._add_seconds("fetch", start)
        return MiniBatch(x, labels, sample)

    def _add_seconds(self, what: str, start: float) -> float:
        now = time.perf_counter()
        with self._lock:
            self.seconds[what] += now - start
        return now


def _check_number(name: str, number: object, least: int) -> None:
    if not isinstance(number, int | np.integer):
        raise TypeError(f"{name} is {number!r}, an int is wanted")
    if not least <= number < 1 << 64:
        raise ValueError(f"{name} is {number}, it must be at least {least} and below 2^64")


def default_prefetch(on_device: bool) -> int:
    """Minibatches that are prepared ahead where nobody says how many."""
    return max(2, min(ops.num_threads(), MAX_PREFETCH)) if on_device else 2


def batches_held(prefetch: int) -> int:
    """Minibatches that exist at a time: those prepared ahead, one handed over, one that is used."""
    return prefetch + 2


def loading_bytes(shape: SampleShape, row_type: RowType, prefetch: int, num_threads: int) -> int:
    """Host memory that a loader takes on the CPU for minibatches of this shape, at most.

    Each has its sample, its rows in a buffer, and labels; each thread what it samples with, and a list of
    the rows that it reads from the file.
    """
    batch = shape.nbytes + buffer_bytes(row_type, shape.num_nodes) + 8 * shape.num_nodes
    return batches_held(prefetch) * batch + _working_bytes(shape, prefetch, num_threads)


def uploading_bytes(shape: SampleShape, prefetch: int, num_threads: int) -> int:
    """Host memory that a loader takes where the minibatches lie on a device.

    A sample is copied into page-locked memory on its way, in pieces that torch keeps and rounds up to powers
    of two.
    """
    batch = shape.nbytes + 8 * shape.num_nodes
    return 3 * batches_held(prefetch) * batch + _working_bytes(shape, prefetch, num_threads)


def _working_bytes(shape: SampleShape, prefetch: int, num_threads: int) -> int:
    """Of the threads that prepare minibatches, and of the caller, which sampled to choose hot rows."""
    working = 1 + min(num_threads, max(1, prefetch))
    return working * (ops.sampling_bytes(shape) + READ_LIST_BYTES * shape.num_nodes)
