"""What a training run needs of memory: measured where it can be, computed for the rest."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from torch import Tensor

from gnn_ibp.budget import used_memory
from gnn_ibp.cache import FILL_ROW_BYTES
from gnn_ibp.dataset import Dataset
from gnn_ibp.device.device_cache import FILL_DEVICE_ROW_BYTES
from gnn_ibp.device.staging import BUFFER_BYTES, NUM_BUFFERS
from gnn_ibp.feature_file import index_bytes
from gnn_ibp.hotset import choosing_bytes
from gnn_ibp.loader import loading_bytes, uploading_bytes
from gnn_ibp.row_type import RowType
from gnn_ibp.sample import Sample, SampleShape
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.checkpoint_file import writing_bytes
from gnn_ibp.train.memory_plan import Needs
from gnn_ibp.train.model import GraphSAGE

THREADS_BYTES = 96 << 20
"""What threads that are not started yet, and libraries that are not used yet, take later.

32 threads that read files keep a buffer of 1 MiB each; the rest is their stacks, and what products need.
"""

MARGIN_PERCENT = 115
"""Minibatches are planned for so many hundredths of the largest that was measured."""

MEASURED_BATCHES = 3
"""Minibatches of each split that are sampled before anything is planned."""


class BatchNeeds(NamedTuple):
    """Those of `Needs` that follow from how large minibatches are."""

    minibatches: int
    model: int


def largest_minibatch(sampler: NeighborSampler, nodes: Mapping[str, Tensor], batch_size: int) -> SampleShape:
    """The shape that minibatches do not exceed: that of a few from each split, and a margin."""
    shapes = [
        sampler.sample(seeds, epoch=epoch).shape
        for ids in nodes.values()
        if len(ids)
        for epoch, seeds in enumerate(_some_seeds(ids, batch_size))
    ]
    return reduce(SampleShape.largest, shapes).times(MARGIN_PERCENT)


class WatchedSampler:
    """Draws as `sampler` does, and keeps the shape that nothing it drew exceeds."""

    def __init__(self, sampler: NeighborSampler) -> None:
        self._sampler = sampler
        self.shape: SampleShape | None = None
        """None where nothing was drawn."""

    def sample(self, seeds: Tensor, *, epoch: int = 0, batch: int = 0) -> Sample:
        sample = self._sampler.sample(seeds, epoch=epoch, batch=batch)
        self.shape = sample.shape.largest(self.shape or sample.shape)
        return sample


def _some_seeds(ids: Tensor, batch_size: int) -> Sequence[Tensor]:
    rng = np.random.default_rng(0)
    size = min(batch_size, len(ids))
    return [ids[rng.choice(len(ids), size, replace=False)] for _ in range(MEASURED_BATCHES)]


def needs_of_run(
    ds: Dataset,
    nodes: Mapping[str, Tensor],
    batches: BatchNeeds,
    *,
    raw: bool,
    hot_rows: bool,
    on_device: bool,
    device_cache: int,
) -> Needs:
    """To be asked when labels and splits are in memory, and nothing else of the data set.

    raw: rows are read, and cached, as they are. hot_rows: whether rows will be chosen for a cache.
    on_device: the model trains on one, which has a cache of `device_cache` bytes.
    """
    x, num_nodes = ds.features["x"], ds.num_nodes
    labels = labels_bytes(ds, nodes)
    return Needs(
        program=max(0, used_memory() - labels) + THREADS_BYTES,
        labels=labels,
        index=sum(index_bytes(info.num_rows, info.row_type.row_bytes) for info in ds.features.values()),
        indptr=8 * (num_nodes + 1),
        indices=ds.indices_bytes,
        staging=2 * NUM_BUFFERS * BUFFER_BYTES if on_device else 0,
        minibatches=batches.minibatches,
        model=batches.model,
        num_rows=x.num_rows,
        row_bytes=x.row_type.row_bytes if raw else -(-x.stored_bytes // max(1, x.num_rows)),
        choosing=choosing_bytes(num_nodes) if hot_rows else 0,
        hot_id_bytes=4 if num_nodes <= 1 << 31 else 8,
        filling_row=FILL_DEVICE_ROW_BYTES if on_device else FILL_ROW_BYTES,
        device_cache=device_cache,
    )


def batch_needs(
    model: GraphSAGE,
    row_type: RowType,
    shape: SampleShape,
    *,
    prefetch: int,
    threads: int,
    on_device: bool,
    checkpoints: bool,
) -> BatchNeeds:
    """What minibatches of this shape take, and the model that they go through.

    checkpoints: whether they are written.
    """
    writing = writing_bytes(model) if checkpoints else 0
    if on_device:
        return BatchNeeds(uploading_bytes(shape, prefetch, threads), model.weight_bytes + writing)
    minibatches = loading_bytes(shape, row_type, prefetch, threads)
    return BatchNeeds(minibatches, model.training_bytes(shape, row_type) + writing)


def labels_bytes(ds: Dataset, nodes: Mapping[str, Tensor]) -> int:
    """Of labels and splits, of their labelled nodes, and of an order of them that an epoch draws."""
    held = 8 * ds.num_nodes + sum(ids.nbytes for ids in (*ds.split.values(), *nodes.values()))
    return held + 2 * max(ids.nbytes for ids in nodes.values())
