"""A GraphSAGE layer in torch's own operators, for devices that our kernels do not serve.

The same function as `SageLayer`, up to rounding; the same values are dropped. Every operator has one
result for one input, forward and backward, on CUDA as well: the gradient of a mean over bags is summed over
sorted indices (of the modes of `embedding_bag`, torch lists "max" alone as not deterministic), and nothing
else gathers or scatters.
"""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from gnn_ibp.sample import Layer
from gnn_ibp.train.dropout import STEPS, kept
from gnn_ibp.train.normalize import Affine
from gnn_ibp.train.precision import Precision, product
from gnn_ibp.train.sage_layer import Activation


def plain_layer(
    x: Tensor,
    weight_l: Tensor,
    bias: Tensor,
    weight_r: Tensor,
    layer: Layer,
    affine: Affine | None,
    activation: Activation | None,
    precision: Precision,
) -> Tensor:
    """activation(lin_l(mean of the neighbors) + lin_r(own row) + bias): (num_src, dim) -> (num_dst, out_dim).

    Arguments as those of `SageLayer`; all tensors are on one device.
    """
    if affine:
        shift, factor = affine
        x = (x - shift) * factor
    out = product(neighbor_mean(x, layer.indptr, layer.indices), weight_l, bias, precision)
    out = out + product(x[: layer.num_dst], weight_r, None, precision)
    return relu_dropout(out, activation) if activation else out


def neighbor_mean(x: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
    """Row i is the mean of the rows of `x` that indices[indptr[i] : indptr[i + 1]] names, 0 where none.

    x: (n, dim) of floats; indptr, indices: int64; the result is (len(indptr) - 1, dim).
    """
    if not len(indices) or not x.shape[1]:
        return x.new_zeros(len(indptr) - 1, x.shape[1])
    return embedding_bag(indices, x, indptr, mode="mean", include_last_offset=True)


def relu_dropout(h: Tensor, activation: Activation) -> Tensor:
    """ReLU, then dropout: the values that stay are those of `ops.relu_dropout`."""
    if not activation.drop:
        return h.relu()
    keep = kept(activation.key, activation.drop, h.numel(), h.device).view(h.shape)
    return torch.where(keep, h.relu() * (STEPS / (STEPS - activation.drop)), 0)
