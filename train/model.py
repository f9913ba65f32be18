"""GraphSAGE (Hamilton et al., 2017) with mean aggregation, on bipartite layers.

A layer computes h_dst = lin_l(mean of the in-neighbors' h) + lin_r(own h), between layers ReLU and dropout.
Parameters are named as in `torch_geometric.nn.models.GraphSAGE`, which loads a saved `state_dict`.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import get_args

from torch import Tensor, nn

from gnn_ibp.row_type import RowType
from gnn_ibp.sample import Layer, SampleShape
from gnn_ibp.train.normalize import Affine, Normalize
from gnn_ibp.train.plain_layer import plain_layer
from gnn_ibp.train.precision import OPERAND_BYTES, Precision, product
from gnn_ibp.train.sage_layer import Activation, Memory, SageLayer, layer_bytes

SCORE_COPIES = 5
"""The scores, what the loss makes of them, and their gradients."""

WEIGHT_COPIES = 12
"""The weights, gradients, Adam's two averages and its work, side by side for the products, the best ones."""


class GraphSAGE(nn.Module):
    """`num_layers` layers, `in_dim` -> `hidden` -> ... -> `num_classes`, behind a fixed normalization.

    dropout: the share of hidden values dropped while training, rounded to 1/65536.
    precision: of the products, while training and after it; weights are float32.
    """

    def __init__(
        self,
        in_dim: int,
        hidden: int,
        num_layers: int,
        num_classes: int,
        dropout: float = 0.0,
        normalize: Normalize | None = None,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is {dropout}, it must be at least 0 and below 1")
        if precision not in get_args(Precision):
            raise ValueError(
                f"precision is {precision!r}, it must be one of {', '.join(get_args(Precision))}"
            )
        if num_layers < 1:
            raise ValueError(f"num_layers is {num_layers}, it must be at least 1")
        dims = [in_dim] + [hidden] * (num_layers - 1) + [num_classes]
        self.convs = nn.ModuleList(SAGEConv(a, b, precision) for a, b in pairwise(dims))
        self.precision = precision
        self.normalize = normalize or Normalize()
        self.shape = {
            "in_dim": in_dim,
            "hidden": hidden,
            "num_layers": num_layers,
            "num_classes": num_classes,
        }
        self.drop = min(round(dropout * 65536), 65535)

    @property
    def sage_convs(self) -> "list[SAGEConv]":
        return [conv for conv in self.convs if isinstance(conv, SAGEConv)]

    def training_bytes(self, shape: SampleShape, x_type: RowType) -> int:
        """Host memory that training takes on the CPU, at most, beside the minibatches.

        shape: of the largest minibatch. x_type: of its features.
        """
        num_edges = list(accumulate(shape.edges_per_hop))[::-1]
        convs = zip(self.sage_convs, shape.layers, num_edges, strict=True)
        layers = sum(
            layer_bytes(*layer, edges, conv.dims, with_grad=k > 0, precision=self.precision)
            for k, (conv, layer, edges) in enumerate(convs)
        )
        copies = (x_type.dtype != "float32") + 2 * (self.normalize.kind == "row")
        x_copies = copies * 4 * shape.num_nodes * self.shape["in_dim"]
        scores = 4 * shape.nodes_per_hop[0] * self.shape["num_classes"]
        weights = WEIGHT_COPIES * self.weight_bytes + OPERAND_BYTES[self.precision] * self.weight_bytes // 4
        return layers + x_copies + SCORE_COPIES * scores + weights

    @property
    def weight_bytes(self) -> int:
        return sum(weight.nbytes for weight in self.parameters())

    def release(self) -> None:
        """Gives back the memory that the layers keep from minibatch to minibatch."""
        for conv in self.sage_convs:
            conv.memory.clear()

    def forward(self, x: Tensor, layers: Sequence[Layer], dropout_keys: Sequence[int] = ()) -> Tensor:
        """Scores (num seeds, num_classes) from the features of all sampled nodes.

        x: (num_nodes, ...), any dtype; it is not written to.
        layers: as `Sample.layers` gives them, the first reads x.
        dropout_keys: one 64-bit key per layer but the last, needed while training with dropout.
        """
        h, affine = self.normalize.prepare(x)
        last = len(self.convs) - 1
        for k, (conv, layer) in enumerate(zip(self.sage_convs, layers, strict=True)):
            drop = self.drop if self.training else 0
            activation = Activation(dropout_keys[k] if drop else 0, drop) if k < last else None
            h = conv(h, layer, affine if k == 0 else None, activation)
        return h


def has_kernels(x: Tensor) -> bool:
    """Whether our kernels compute with tensors on the device of `x`; otherwise torch's operators do."""
    return x.device.type == "cpu"


class SAGEConv(nn.Module):
    """One layer: lin_l of the neighbors' mean plus lin_r of the node's own row."""

    def __init__(self, in_dim: int, out_dim: int, precision: Precision = "float32") -> None:
        super().__init__()
        self.out_dim = out_dim
        self.precision = precision
        self.memory = Memory()
        self.lin_l = nn.Linear(in_dim, out_dim)
        self.lin_r = nn.Linear(in_dim, out_dim, bias=False)

    def forward(
        self, x: Tensor, layer: Layer, affine: Affine | None = None, activation: Activation | None = None
    ) -> Tensor:
        """(num_dst, out_dim) from x (num_src, in_dim), read as `affine` says; see `SageLayer`."""
        weights = self.lin_l.weight, self.lin_l.bias, self.lin_r.weight
        if not has_kernels(x):
            return plain_layer(x, *weights, layer, affine, activation, self.precision)
        how = affine, activation, self.memory, self.precision
        out: Tensor = SageLayer.apply(x, *weights, layer, *how)  # type: ignore[no-untyped-call]
        return out

    @property
    def dims(self) -> tuple[int, int]:
        """Of a row that comes in, and of one that comes out."""
        return self.lin_l.in_features, self.out_dim

    def give(self, x: Tensor) -> Tensor:
        """What each row adds to the mean of others. The layer is mean(give(neighbors)) + keep(own row)."""
        return product(x, self.lin_l.weight, None, self.precision)

    def keep(self, x: Tensor) -> Tensor:
        """What each row adds to its own result."""
        return product(x, self.lin_r.weight, self.lin_l.bias, self.precision)
