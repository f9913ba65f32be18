"""A sampled neighbourhood: one CSR that serves every layer of the model by prefixes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

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
