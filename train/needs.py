"""What a training run needs of memory: measured where it can be, computed for the rest."""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from torch import Tensor

from gnn_ibp.budget import used_memory
from gnn_ibp.cache import FILL_ROW_BYTES
from gnn_ibp.dataset import Dataset
from gnn_ibp.device_cache import FILL_DEVICE_ROW_BYTES
from gnn_ibp.feature_file import index_bytes
from gnn_ibp.hotset import choosing_bytes
from gnn_ibp.loader import loading_bytes, uploading_bytes
from gnn_ibp.sample import SampleShape
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.staging import BUFFER_BYTES, NUM_BUFFERS
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


def largest_minibatch(sampler: NeighborSampler, nodes: Mapping[str, Tensor], batch_size: int) -> SampleShape:
    """The shape that minibatches do not exceed: that of a few from each split, and a margin."""
    shapes = [
        sampler.sample(seeds, epoch=epoch).shape
        for ids in nodes.values()
        if len(ids)
        for epoch, seeds in enumerate(_some_seeds(ids, batch_size))
    ]
    return reduce(SampleShape.largest, shapes).times(MARGIN_PERCENT)


def _some_seeds(ids: Tensor, batch_size: int) -> Sequence[Tensor]:
    rng = np.random.default_rng(0)
    size = min(batch_size, len(ids))
    return [ids[rng.choice(len(ids), size, replace=False)] for _ in range(MEASURED_BATCHES)]


def needs_of_run(
    ds: Dataset,
    nodes: Mapping[str, Tensor],
    model: GraphSAGE,
    shape: SampleShape,
    *,
    prefetch: int,
    threads: int,
    hot_rows: bool,
    on_device: bool,
    device_cache: int,
    checkpoints: bool,
) -> Needs:
    """To be asked when labels and splits are in memory, and nothing else of the data set.

    hot_rows: whether rows will be chosen for a cache. on_device: the model trains on one, which has a cache
    of `device_cache` bytes. checkpoints: whether they are written.
    """
    x, num_nodes = ds.features["x"], ds.num_nodes
    labels = labels_bytes(ds, nodes)
    indices = ds.indices_bytes
    if on_device:
        minibatches, training = uploading_bytes(shape, prefetch, threads), model.weight_bytes
    else:
        minibatches = loading_bytes(shape, x.row_type, prefetch, threads)
        training = model.training_bytes(shape, x.row_type)
    if checkpoints:
        training += writing_bytes(model)
    return Needs(
        program=max(0, used_memory() - labels) + THREADS_BYTES,
        labels=labels,
        index=sum(index_bytes(info.num_rows, info.row_type.row_bytes) for info in ds.features.values()),
        indptr=8 * (num_nodes + 1),
        indices=indices,
        staging=2 * NUM_BUFFERS * BUFFER_BYTES if on_device else 0,
        minibatches=minibatches,
        model=training,
        num_rows=x.num_rows,
        row_bytes=-(-x.stored_bytes // max(1, x.num_rows)),
        choosing=choosing_bytes(num_nodes) if hot_rows else 0,
        hot_id_bytes=4 if num_nodes <= 1 << 31 else 8,
        filling_row=FILL_DEVICE_ROW_BYTES if on_device else FILL_ROW_BYTES,
        device_cache=device_cache,
    )


def labels_bytes(ds: Dataset, nodes: Mapping[str, Tensor]) -> int:
    """Of labels and splits, of their labelled nodes, and of an order of them that an epoch draws."""
    held = 8 * ds.num_nodes + sum(ids.nbytes for ids in (*ds.split.values(), *nodes.values()))
    return held + 2 * max(ids.nbytes for ids in nodes.values())
