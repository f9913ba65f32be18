"""Rows of any fixed-width dtype as bytes, and back."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

Array = np.ndarray | torch.Tensor
DType = np.dtype | torch.dtype


def as_row_bytes(rows: Array) -> NDArray[np.uint8]:
    """The bytes of `rows` (N, ...) as uint8 (N, row_bytes): a view where they are contiguous, else a copy.

    Raises TypeError for what is no array of fixed-width numbers in this machine's byte order, ValueError for
    an array without a first dimension or on another device.
    """
    if isinstance(rows, torch.Tensor):
        rows = _torch_bytes(rows)
    elif isinstance(rows, np.ndarray):
        require_plain_dtype(rows.dtype)
    else:
        raise TypeError(f"rows is a {type(rows).__name__}, want a NumPy array or a torch tensor")
    if rows.ndim == 0:
        raise ValueError("rows has no dimensions, want (N, ...)")
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    flat = np.ascontiguousarray(rows).reshape(-1)
    return flat.view(np.uint8).reshape(rows.shape[0], row_bytes)


def from_row_bytes(row_bytes: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of `dtype` and `shape` whose bytes are `row_bytes`: a view."""
    flat = np.ascontiguousarray(row_bytes).reshape(-1)
    if isinstance(dtype, torch.dtype):
        return torch.from_numpy(flat).view(dtype).reshape(shape)
    return flat.view(dtype).reshape(shape)


def require_plain_dtype(dtype: np.dtype) -> None:
    """Raises TypeError unless `dtype` is a number of fixed width in this machine's byte order."""
    extension = dtype.kind == "V" and dtype.names is None and dtype.type is not np.void  # such as ml_dtypes'
    if dtype.kind not in "biufcmM" and not extension:
        raise TypeError(f"rows have dtype {dtype}, want numbers of a fixed width")
    if not dtype.isnative:
        raise TypeError(
            f"rows have dtype {dtype.str!r} in foreign byte order; "
            f"convert them with rows.astype({dtype.newbyteorder('=').str!r})"
        )


def _torch_bytes(rows: torch.Tensor) -> NDArray[np.uint8]:
    """`rows` as uint8 with the last dimension in bytes."""
    if rows.layout != torch.strided:
        raise TypeError(f"rows is a {rows.layout} tensor, want a dense one")
    if rows.is_quantized:
        raise TypeError(f"rows have dtype {rows.dtype}, want numbers of a fixed width")
    if rows.device.type != "cpu":
        raise ValueError(f"rows are on {rows.device}, want them on the CPU: rows.cpu()")
    rows = rows.detach().resolve_conj().resolve_neg().contiguous()
    if rows.ndim == 0:
        raise ValueError("rows has no dimensions, want (N, ...)")
    row_bytes = math.prod(rows.shape[1:]) * rows.element_size()
    return rows.reshape(-1).view(torch.uint8).reshape(rows.shape[0], row_bytes).numpy()
