"""Normalize: the fixed step between the stored features and the model; nothing of it is trained."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Affine = tuple[Tensor, Tensor]
"""(shift, factor): a value v of a column is read as (v - shift) * factor."""

KINDS = ("standard", "row", "none")


class Normalize(nn.Module):
    """Turns stored rows of any dtype into float32 (num_rows, dim) as the model wants them.

    kind: "standard" = each column less `mean`, divided by `scale`; "row" = each row divided by its L1 norm,
    rows of zeros as they are; "none" = values as they are.
    mean, scale: float32 (dim,) or the shape of a row, for "standard" only; scale has no zeros.
    """

    mean: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        kind: str = "none",
        mean: NDArray[np.float32] | Tensor | None = None,
        scale: NDArray[np.float32] | Tensor | None = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}, it must be one of {', '.join(KINDS)}")
        given = mean is not None and scale is not None
        if given != (kind == "standard"):
            raise ValueError(f"normalization {kind!r} {'takes no' if given else 'needs'} mean and scale")
        self.kind = kind
        # Not part of the state_dict: the weights load into PyG's model, which has no such layer.
        self.register_buffer("mean", _vector(mean), persistent=False)
        self.register_buffer("scale", _vector(scale), persistent=False)

    def prepare(self, x: Tensor) -> tuple[Tensor, Affine | None]:
        """Rows as float32 (num_rows, dim), and what of the normalization is left to do as they are read.

        `x` is not written to; float32 rows come back as they are unless kind is "row".
        """
        x = x.reshape(len(x), math.prod(x.shape[1:])).to(torch.float32)
        if self.kind == "row":
            norms = x.abs().sum(1, keepdim=True)
            x = x / torch.where(norms > 0, norms, 1)
        if self.mean is None or self.scale is None:
            return x, None
        return x, (self.mean, 1 / self.scale)

    def forward(self, x: Tensor) -> Tensor:
        """Normalized rows, float32 (num_rows, dim)."""
        x, affine = self.prepare(x)
        return (x - affine[0]) * affine[1] if affine else x


def _vector(values: NDArray[np.float32] | Tensor | None) -> Tensor | None:
    return None if values is None else torch.as_tensor(values, dtype=torch.float32).flatten().clone()
