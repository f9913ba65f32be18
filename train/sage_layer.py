"""SageLayer: one GraphSAGE layer, forward and backward, in kernels and two products, in kept memory."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gnn_ibp import ops
from gnn_ibp.buffers import BufferPool, buffer_bytes
from gnn_ibp.row_type import RowType
from gnn_ibp.sample import Layer
from gnn_ibp.train.normalize import Affine
from gnn_ibp.train.precision import BLOCK_ROWS, OPERAND_BYTES, Precision, inner_product, put_product


@dataclass(frozen=True)
class Memory:
    """Where the large tensors of one layer live from minibatch to minibatch.

    Results of 30 to 100 MB from fresh memory would be cleared by the system page by page, every time. A
    buffer that somebody still holds is not used again: another takes its place.
    """

    both: BufferPool = field(default_factory=lambda: BufferPool(1))
    out: BufferPool = field(default_factory=lambda: BufferPool(1))
    grad: BufferPool = field(default_factory=lambda: BufferPool(1))

    def clear(self) -> None:
        """Gives back what is not in use."""
        for pool in (self.both, self.out, self.grad):
            pool.clear()

    def __reduce__(self) -> tuple[type["Memory"], tuple[()]]:
        return Memory, ()  # a copied or pickled model begins with none


def layer_bytes(
    num_src: int, num_dst: int, num_edges: int, dims: tuple[int, int], with_grad: bool, precision: Precision
) -> int:
    """Of the buffers in a `Memory` after one layer, and of the work in one block or of one gradient.

    dims: of a row that comes in, and of one that comes out. with_grad: x takes a gradient.
    """
    in_dim, out_dim = dims
    rows = [(num_dst, 2 * in_dim), (num_dst, out_dim)] + [(num_src, in_dim)] * with_grad
    kept = sum(buffer_bytes(RowType("float32", (dim,)), num_rows) for num_rows, dim in rows)
    block = min(num_dst, BLOCK_ROWS) * OPERAND_BYTES[precision] * (2 * in_dim + out_dim)
    return kept + block + with_grad * ops.transposed_bytes(num_src, num_edges)


@dataclass(frozen=True)
class Activation:
    """ReLU, then dropout: `drop` of 65536 values, told by a 64-bit key. drop = 0 drops none."""

    key: int
    drop: int


class SageLayer(Function):
    """activation(lin_l(mean of the neighbors) + lin_r(own row) + bias): (num_src, dim) -> (num_dst, out_dim).

    Arguments: x, weight_l, bias, weight_r, then layer, affine (how x is read; then it takes no gradient),
    activation or None, memory, precision of the products.

    Both products are one of twice the depth over [mean | own]. Backward works in the memory of forward: the
    gradient before the activation overwrites the result, the gradient of [mean | own] overwrites it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight_l: Tensor,
        bias: Tensor,
        weight_r: Tensor,
        layer: Layer,
        affine: Affine | None,
        activation: Activation | None,
        memory: Memory,
        precision: Precision,
    ) -> Tensor:
        both = _empty(memory.both, layer.num_dst, 2 * x.shape[1])
        ops.mean_and_own(x, layer.indptr, layer.indices, affine, both)
        weight = torch.cat([weight_l, weight_r], dim=1)
        out = _empty(memory.out, layer.num_dst, len(weight))
        put_product(out, both, weight.t(), bias, precision)
        if activation:
            ops.relu_dropout(out, activation.key, activation.drop)
        ctx.save_for_backward(both, weight, out)
        ctx.num_src, ctx.layer, ctx.activation, ctx.memory = len(x), layer, activation, memory
        ctx.precision = precision
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        both, weight, out = ctx.saved_tensors
        grad = grad_out.contiguous()
        if ctx.activation:
            ops.relu_dropout_grad(out, grad, ctx.activation.drop, out)
            grad = out
        dim = both.shape[1] // 2
        grad_weight = inner_product(grad, both, ctx.precision)
        grad_x = None
        if ctx.needs_input_grad[0]:
            put_product(both, grad, weight, None, ctx.precision)
            grad_x = _empty(ctx.memory.grad, ctx.num_src, dim)
            ops.mean_and_own_grad(both, ctx.layer.indptr, ctx.layer.indices, grad_x)
        for changed in (both, out):
            torch.autograd.graph.increment_version(changed)  # a second backward is an error, not nonsense
        return grad_x, grad_weight[:, :dim], grad.sum(0), grad_weight[:, dim:], *[None] * 5


def _empty(pool: BufferPool, num_rows: int, dim: int) -> Tensor:
    return pool.empty(RowType("float32", (dim,)), num_rows)
