"""The sampler in plain Python: the definition of what is drawn, which every backend must match."""

from collections.abc import Sequence

import torch

from gnn_ibp.graph import Graph
from gnn_ibp.sample import Sample

MASK = 2**64 - 1


def mix(key: int, *values: int) -> int:
    """Output number value + 1 of SplitMix64 seeded with `key`, and so on with the next value."""
    for value in values:
        z = (key + (value + 1) * 0x9E3779B97F4A7C15) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        key = z ^ z >> 31
    return key


def hash_ids(ids: Sequence[int]) -> int:
    """What stands for the batch number where only the seed ids are known."""
    return mix(len(ids), *ids)


def draw_places(key: int, degree: int, fanout: int, replace: bool) -> list[int]:
    """The places among its `degree` neighbours that the node with `key` draws."""

    def below(k: int, n: int) -> int:
        return mix(key, k) * n >> 64

    if fanout < 0 or (fanout >= degree and not replace):
        return list(range(degree))
    if replace:
        return [below(k, degree) for k in range(fanout)] if degree else []
    places: list[int] = []
    for k, last in enumerate(range(degree - fanout, degree)):
        place = below(k, last + 1)
        places.append(last if place in places else place)
    return places


def sample(graph: Graph, seeds: Sequence[int], fanouts: Sequence[int], replace: bool, key: int) -> Sample:
    """What `ops.sample_neighbors` gives, one edge at a time."""
    node_ids = list(seeds)
    local_of: dict[int, int] = {}
    for local, node in enumerate(node_ids):
        local_of.setdefault(node, local)
    indptr, indices, e_id = [0], list[int](), list[int]()
    num_nodes, num_edges = [len(node_ids)], list[int]()
    for fanout in fanouts:
        num_known, num_drawn = len(node_ids), len(e_id)
        for node in node_ids[len(indptr) - 1 : num_known]:
            begin, end = int(graph.indptr[node]), int(graph.indptr[node + 1])
            for place in draw_places(mix(key, node), end - begin, fanout, replace):
                src = int(graph.indices[begin + place])
                if src not in local_of:
                    local_of[src] = len(node_ids)
                    node_ids.append(src)
                e_id.append(begin + place)
                indices.append(local_of[src])
            indptr.append(len(indices))
        num_nodes.append(len(node_ids) - num_known)
        num_edges.append(len(e_id) - num_drawn)
    arrays = [torch.tensor(values, dtype=torch.int64) for values in (node_ids, indptr, indices, e_id)]
    return Sample(arrays[0], arrays[1], arrays[2], arrays[3], num_nodes, num_edges)
