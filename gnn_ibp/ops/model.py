"""What a GraphSAGE layer does besides its product: means over neighbors, ReLU with dropout, and gradients.

Tensors are float32 on the CPU and hold no gradient history. Results do not depend on the number of threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp import _kernels


def neighbor_mean(x: Tensor, indptr: NDArray[np.int64], indices: NDArray[Any], out: Tensor) -> None:
    """out[i] = mean of the rows of `x` named by indices[indptr[i] : indptr[i + 1]], 0 where there are none.

    x: (n, dim); indices: int32 or int64; out: (len(indptr) - 1, dim). Raises IndexError for an index that is
    not a row of x.
    """
    _check_shape("out", out, (len(indptr) - 1, x.shape[1]))
    if len(indices) and (indices.min() < 0 or indices.max() >= len(x)):
        raise IndexError(f"indices go from {indices.min()} to {indices.max()}, x has {len(x)} rows")
    _kernels.neighbor_mean(x.numpy(), indptr, indices, out.numpy())


def mean_and_own(
    x: Tensor, indptr: Tensor, indices: Tensor, affine: tuple[Tensor, Tensor] | None, out: Tensor
) -> None:
    """out[i] = [mean of the neighbors' rows of `x` | x[i]].

    affine: (shift, factor), each (dim,): x is read as (x - shift) * factor.
    x: (num_src, dim); indptr: int64 (num_dst + 1,); indices: int64; out: (num_dst, 2 * dim).
    """
    _check_shape("out", out, (len(indptr) - 1, 2 * x.shape[1]))
    shift, factor = (t.numpy() for t in affine) if affine else (None, None)
    _kernels.mean_and_own(x.numpy(), indptr.numpy(), indices.numpy(), shift, factor, out.numpy())


def mean_and_own_grad(grad_out: Tensor, indptr: Tensor, indices: Tensor, grad_x: Tensor) -> None:
    """The gradient of `mean_and_own` (without affine) with respect to x, into `grad_x` (num_src, dim).

    Takes `transposed_bytes` meanwhile.
    """
    _check_shape("grad_out", grad_out, (len(indptr) - 1, 2 * grad_x.shape[1]))
    _kernels.mean_and_own_grad(grad_out.numpy(), indptr.numpy(), indices.numpy(), grad_x.numpy())


def transposed_bytes(num_src: int, num_edges: int) -> int:
    """What `mean_and_own_grad` takes for the edges by source."""
    return 8 * (num_src + 2 + num_edges)


def relu_dropout(h: Tensor, key: int, drop: int) -> None:
    """ReLU and dropout in place: about `drop` of 65536 elements become 0, told by (key, position)."""
    _kernels.relu_dropout(h.numpy(), key, drop)


def relu_dropout_grad(out: Tensor, grad_out: Tensor, drop: int, grad_in: Tensor) -> None:
    """The gradient of `relu_dropout`, told by its result `out`, into `grad_in`; all of one shape."""
    _check_shape("grad_out", grad_out, tuple(out.shape))
    _kernels.relu_dropout_grad(out.numpy(), grad_out.numpy(), drop, grad_in.numpy())


def _check_shape(name: str, tensor: Tensor, wanted: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != wanted:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, it must have {wanted}")
