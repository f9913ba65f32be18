"""Which rows a run caches, hottest first."""

from pathlib import Path

import numpy as np
from torch import Tensor

from gnn_ibp.graph import Graph
from gnn_ibp.hotset import Sampler, count_visits, degree_hot_set, visited_then_degree
from gnn_ibp.npy import read_npy
from gnn_ibp.rows import AnyIds
from gnn_ibp.train.config import Config

PRESAMPLED_BATCHES = 200
"""At most so many minibatches are sampled to see which rows are hot: 200,000 seeds tell enough."""


def hot_rows(config: Config, graph: Graph, sampler: Sampler, train_ids: Tensor, most: int) -> AnyIds | None:
    """At most `most` ids for the cache, as --hot-set says, hottest first; None for none."""
    if config.no_cache or config.hot_set == "none" or not most:
        return None
    if config.hot_set == "degree":
        return degree_hot_set(graph)[:most]
    if config.hot_set == "presample":  # what it never saw comes after, where there is room
        visits = count_visits(
            sampler,
            train_ids,
            config.batch_size,
            max_batches=PRESAMPLED_BATCHES,
            num_nodes=graph.num_nodes,
        )
        return visited_then_degree(visits, graph)[:most]
    ids: AnyIds = read_npy(Path(config.hot_set), (np.int64, np.int32))[:most]
    return ids
