"""GraphSAGE (Hamilton et al., 2017) with mean aggregation, on bipartite layers.

A layer computes h_dst = lin_l(mean of the in-neighbors' h) + lin_r(own h), between layers ReLU and dropout.
Parameters are named as in `torch_geometric.nn.models.GraphSAGE`, which loads a saved `state_dict`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from gnn_ibp import ops
from gnn_ibp.sample import Layer
from gnn_ibp.train.normalize import Affine, Normalize


class GraphSAGE(nn.Module):
    """`num_layers` layers, `in_dim` -> `hidden` -> ... -> `num_classes`, behind a fixed normalization.

    dropout: the share of hidden values dropped while training, rounded to 1/65536.
    """

    def __init__(
        self,
        in_dim: int,
        hidden: int,
        num_layers: int,
        num_classes: int,
        dropout: float = 0.0,
        normalize: Normalize | None = None,
    ) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is {dropout}, it must be at least 0 and below 1")
        if num_layers < 1:
            raise ValueError(f"num_layers is {num_layers}, it must be at least 1")
        dims = [in_dim] + [hidden] * (num_layers - 1) + [num_classes]
        self.convs = nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(dims))
        self.normalize = normalize or Normalize()
        self.shape = {
            "in_dim": in_dim,
            "hidden": hidden,
            "num_layers": num_layers,
            "num_classes": num_classes,
        }
        self.drop = min(round(dropout * 65536), 65535)

    def forward(self, x: Tensor, layers: Sequence[Layer], dropout_keys: Sequence[int] = ()) -> Tensor:
        """Scores (num seeds, num_classes) from the features of all sampled nodes.

        x: (num_nodes, ...), any dtype; it is not written to.
        layers: as `Sample.layers` gives them, the first reads x.
        dropout_keys: one 64-bit key per layer but the last, needed while training with dropout.
        """
        h, affine = self.normalize.prepare(x)
        for k, (conv, layer) in enumerate(zip(self.convs, layers, strict=True)):
            h = conv(h[: layer.num_src], layer, affine)
            affine = None
            if k + 1 < len(self.convs):
                drop = self.drop if self.training else 0
                h = ReLUDropout.apply(h, dropout_keys[k] if drop else 0, drop)  # type: ignore[no-untyped-call]
        return h


class SAGEConv(nn.Module):
    """One layer: lin_l of the neighbors' mean plus lin_r of the node's own row."""

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.lin_l = nn.Linear(in_dim, out_dim)
        self.lin_r = nn.Linear(in_dim, out_dim, bias=False)

    def forward(self, x: Tensor, layer: Layer, affine: Affine | None = None) -> Tensor:
        """(num_dst, out_dim) from x (num_src, in_dim), read as (x - shift) * scale where affine is given."""
        both = MeanAndOwn.apply(x, layer, affine)  # type: ignore[no-untyped-call]
        weight = torch.cat([self.lin_l.weight, self.lin_r.weight], dim=1)  # one product of twice the depth
        return nn.functional.linear(both, weight, self.lin_l.bias)

    def give(self, x: Tensor) -> Tensor:
        """What each row adds to the mean of others. The layer is mean(give(neighbors)) + keep(own row)."""
        return nn.functional.linear(x, self.lin_l.weight)

    def keep(self, x: Tensor) -> Tensor:
        """What each row adds to its own result."""
        return nn.functional.linear(x, self.lin_r.weight, self.lin_l.bias)


class MeanAndOwn(Function):
    """(num_src, dim) -> (num_dst, 2 * dim): the mean of a destination's neighbors, then its own row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: Layer, affine: Affine | None) -> Tensor:
        ctx.layer, ctx.num_src = layer, len(x)
        out = torch.empty(layer.num_dst, 2 * x.shape[1])
        ops.mean_and_own(x, layer.indptr, layer.indices, affine, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        grad_out = grads[0].contiguous()
        grad_x = torch.empty(ctx.num_src, grad_out.shape[1] // 2)
        ops.mean_and_own_grad(grad_out, ctx.layer.indptr, ctx.layer.indices, grad_x)
        return grad_x, None, None


class ReLUDropout(Function):
    """ReLU and dropout in place, in one pass; the result alone tells the gradient where to flow."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, key: int, drop: int) -> Tensor:
        ops.relu_dropout(h, key, drop)
        ctx.mark_dirty(h)
        ctx.save_for_backward(h)
        ctx.drop = drop
        return h

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        grad_in = torch.empty_like(out)
        ops.relu_dropout_grad(out, grads[0].contiguous(), ctx.drop, grad_in)
        return grad_in, None, None
