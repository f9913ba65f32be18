"""A sampled neighbourhood: one CSR that serves every layer of the model by prefixes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from torch import Tensor


@dataclass(frozen=True)
class Layer:
    """One bipartite layer: the mean over `indices[indptr[i]:indptr[i + 1]]` gives destination i.

    indptr: int64 (num_dst + 1,); indices: int64 (num_edges,), positions among the first `num_src` nodes.
    The destinations are the first `num_dst` of the sources.
    """

    indptr: Tensor
    indices: Tensor
    num_src: int
    num_dst: int


@dataclass(frozen=True)
class Sample:
    """The in-neighbourhood of some seed nodes.

    node_ids: int64 (num_nodes,), in order of discovery, seeds first (repeated seeds stay repeated).
    indptr:   int64 (num_dst + 1,), over all nodes but those of the last hop.
    indices:  int64 (num_edges,), positions in `node_ids`.
    e_id:     int64 (num_edges,), positions of the edges in the graph's `indices`.
    num_sampled_nodes: new nodes per hop, the seeds first; one more entry than there are hops.
    num_sampled_edges: edges per hop.
    """

    node_ids: Tensor
    indptr: Tensor
    indices: Tensor
    e_id: Tensor
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]

    def apply(self, move: Callable[[Tensor], Tensor]) -> "Sample":
        """The same sample, each of its tensors as `move` gives it, such as on another device."""
        return replace(
            self,
            node_ids=move(self.node_ids),
            indptr=move(self.indptr),
            indices=move(self.indices),
            e_id=move(self.e_id),
        )

    @property
    def shape(self) -> "SampleShape":
        return SampleShape(tuple(self.num_sampled_nodes), tuple(self.num_sampled_edges))

    @property
    def num_seeds(self) -> int:
        return self.num_sampled_nodes[0]

    @property
    def layers(self) -> list[Layer]:
        """Bipartite layers as a model applies them: the first reads all nodes, the last gives the seeds."""
        layers: list[Layer] = []
        num_dst, num_edges = 0, 0
        for new_dst, new_edges, new_src in zip(
            self.num_sampled_nodes, self.num_sampled_edges, self.num_sampled_nodes[1:], strict=False
        ):
            num_dst += new_dst
            num_edges += new_edges
            layers.append(
                Layer(self.indptr[: num_dst + 1], self.indices[:num_edges], num_dst + new_src, num_dst)
            )
        return layers[::-1]


@dataclass(frozen=True)
class SampleShape:
    """How large a sample is; or several are at most, with their hops.

    nodes_per_hop: new nodes, the seeds first. edges_per_hop: one entry less.
    """

    nodes_per_hop: tuple[int, ...]
    edges_per_hop: tuple[int, ...]

    @property
    def num_nodes(self) -> int:
        return sum(self.nodes_per_hop)

    @property
    def num_dst(self) -> int:
        """All nodes but those of the last hop."""
        return sum(self.nodes_per_hop[:-1])

    @property
    def num_edges(self) -> int:
        return sum(self.edges_per_hop)

    @property
    def nbytes(self) -> int:
        """Of the tensors of a `Sample`."""
        return 8 * (self.num_nodes + self.num_dst + 1 + 2 * self.num_edges)

    @property
    def layers(self) -> list[tuple[int, int]]:
        """(num_src, num_dst) of each layer, as a model applies them."""
        reached = list(accumulate(self.nodes_per_hop))
        return [(src, dst) for dst, src in pairwise(reached)][::-1]

    def largest(self, other: "SampleShape") -> "SampleShape":
        """Hop by hop the larger one."""
        nodes = map(max, self.nodes_per_hop, other.nodes_per_hop)
        return SampleShape(tuple(nodes), tuple(map(max, self.edges_per_hop, other.edges_per_hop)))

    def times(self, percent: int) -> "SampleShape":
        """So many hundredths of it, rounded up."""
        nodes = (-(-n * percent // 100) for n in self.nodes_per_hop)
        return SampleShape(tuple(nodes), tuple(-(-n * percent // 100) for n in self.edges_per_hop))
