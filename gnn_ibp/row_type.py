"""What the rows of a feature are to a user: a dtype and a shape; to everything inside they are bytes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp.rows import Bytes

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}
"""Names of the dtypes that rows may have; torch's, and NumPy's where it has them."""


def dtype_name(dtype: torch.dtype | np.dtype[Any]) -> str:
    """The name of a torch or NumPy dtype, whether rows may have it or not."""
    return str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype.name


@dataclass(frozen=True)
class RowType:
    """dtype: a key of `DTYPES`. shape: of one row; () where a row is a single number."""

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise TypeError(f"rows cannot be of dtype {self.dtype!r}; possible: {', '.join(DTYPES)}")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"row shape {self.shape} has a negative size")

    @classmethod
    def of(cls, rows: torch.Tensor | NDArray[Any]) -> "RowType":
        """Of an array (num_rows, *row_shape). TypeError where rows cannot have its dtype."""
        if rows.ndim == 0:
            raise ValueError("rows need at least one dimension, got a single number")
        return cls(dtype_name(rows.dtype), tuple(rows.shape[1:]))

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape) * self.torch_dtype.itemsize

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    def empty(self, num_rows: int) -> torch.Tensor:
        """A fresh tensor (num_rows, *shape); large ones lie on huge pages, as NumPy's do."""
        return self.from_bytes(np.empty((num_rows, self.row_bytes), np.uint8))

    def from_bytes(self, rows: Bytes) -> torch.Tensor:
        """The tensor (num_rows, *shape) over the memory of uint8 (num_rows, row_bytes)."""
        return self.over(torch.from_numpy(rows.reshape(-1)), len(rows))

    def over(self, memory: torch.Tensor, num_rows: int) -> torch.Tensor:
        """The tensor (num_rows, *shape) over `memory`, uint8 (num_rows * row_bytes,), wherever it lies."""
        return memory.view(self.torch_dtype).view(num_rows, *self.shape)

    def out_bytes(self, out: torch.Tensor | NDArray[Any]) -> Bytes:
        """`out` (num_out, *shape), a CPU tensor or an array to be written, as uint8 (num_out, row_bytes).

        Shares memory. TypeError for another dtype, ValueError for another shape or what cannot be written.
        """
        if isinstance(out, torch.Tensor):
            return self.tensor_bytes(out, torch.device("cpu")).numpy()
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out must be a torch tensor or a NumPy array, got {type(out).__name__}")
        self._check_out(out)
        if not out.flags.c_contiguous:
            raise ValueError("out is not C-contiguous")
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        return out.reshape(-1).view(np.uint8).reshape(len(out), self.row_bytes)

    def tensor_bytes(self, out: torch.Tensor, device: torch.device) -> torch.Tensor:
        """`out` (num_out, *shape), a tensor on `device` to be written, as uint8 (num_out, row_bytes).

        Shares memory. Errors as `out_bytes`.
        """
        self._check_out(out)
        if out.device != device:
            where = "into CPU memory" if device.type == "cpu" else f"to {device}"
            raise ValueError(f"out is on {out.device}, these rows are read {where}")
        if not out.is_contiguous():
            raise ValueError("out is not contiguous")
        return out.detach().view(-1).view(torch.uint8).view(len(out), self.row_bytes)

    def _check_out(self, out: torch.Tensor | NDArray[Any]) -> None:
        if dtype_name(out.dtype) != self.dtype or (isinstance(out, np.ndarray) and not out.dtype.isnative):
            raise TypeError(f"out has dtype {out.dtype}, the rows have {self.dtype}")
        if out.ndim == 0 or tuple(out.shape[1:]) != self.shape:
            wanted = ", ".join(map(str, ("num_rows", *self.shape)))
            raise ValueError(f"out has shape {tuple(out.shape)}, ({wanted}) is wanted")
