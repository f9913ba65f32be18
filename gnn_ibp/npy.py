"""Plain arrays on disk (.npy): written; read whole or memory-mapped, or refused with the remedy."""

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnn_ibp.disk_file import NewFile
from gnn_ibp.errors import FormatError

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class NpyLayout(NamedTuple):
    """Where the values of an array lie in a file: from byte `first_byte` on, in C order."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first_byte: int

    @property
    def num_values(self) -> int:
        return math.prod(self.shape)  # Python's numbers: a lying header must not overflow

    @property
    def num_bytes(self) -> int:
        """Of the values."""
        return self.num_values * self.dtype.itemsize


def read_npy(
    path: Path | str, dtypes: tuple[DTypeLike, ...], ndim: int = 1, mmap: bool = False
) -> NDArray[Any]:
    """The array in the file `path`; with `mmap` a read-only view of the file, of which nothing is read yet.

    Raises as `npy_layout` does.
    """
    layout = npy_layout(path, dtypes, ndim)
    if mmap and layout.num_values:
        return np.memmap(layout.path, layout.dtype, "r", layout.first_byte, layout.shape)
    values = np.fromfile(layout.path, layout.dtype, layout.num_values, offset=layout.first_byte)
    return values.reshape(layout.shape)


def npy_layout(path: Path | str, dtypes: tuple[DTypeLike, ...], ndim: int = 1) -> NpyLayout:
    """Where the array in the file `path` lies; only the header is read.

    Raises FormatError where the file is not a .npy file, is cut short or too long, or holds an array that is
    big-endian, in Fortran order, of another dtype than `dtypes` or of other dimensions than `ndim`.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            read_header = HEADERS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read_header(file)
        except OSError:
            raise
        except Exception as error:  # NumPy reads it as text in Python, which can be wrong in every way
            raise FormatError(
                f"{path} does not begin like a .npy file ({error}); write it with numpy.save"
            ) from error
        _check_header(path, shape, fortran, dtype, dtypes, ndim)
        layout = NpyLayout(path, dtype, shape, file.tell())
    file_bytes, announced = path.stat().st_size, layout.first_byte + layout.num_bytes
    if file_bytes != announced:
        raise FormatError(
            f"{path} has {file_bytes} bytes, its header announces {announced}: "
            "it was cut short or is not whole; copy or convert it again"
        )
    return layout


def write_npy(path: Path, array: NDArray[Any]) -> None:
    """Writes the file that `numpy.save` writes, whole or not at all."""
    with NewFile(path) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        file.commit()


def write_npy_blocks(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[NDArray[Any]]
) -> None:
    """The same for an array that comes in blocks of rows; ValueError where they are not of this shape."""
    num_rows = 0
    with NewFile(path) as file:
        file.write(npy_header(dtype, shape))
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8))
            num_rows += len(block)
        if num_rows != shape[0]:
            raise ValueError(f"{path.name} gets {num_rows} rows, it was to have {shape[0]}")
        file.commit()


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """What stands before the values. NumPy pads it, so the number of rows does not change its length."""
    header = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


def _check_header(
    path: Path,
    shape: tuple[int, ...],
    fortran: bool,
    dtype: np.dtype[Any],
    dtypes: tuple[DTypeLike, ...],
    ndim: int,
) -> None:
    wanted = [np.dtype(wanted) for wanted in dtypes]
    if not dtype.isnative:
        raise FormatError(
            f"{path} holds big-endian {dtype.name} values; save array.astype({dtype.name!r}) instead"
        )
    if dtype not in wanted:
        names = " or ".join(dtype.name for dtype in wanted)
        raise FormatError(f"{path} holds {dtype.name} values, wanted are {names}")
    if len(shape) != ndim:
        raise FormatError(f"{path} holds an array of shape {shape}, wanted are {ndim} dimensions")
    if fortran and ndim > 1:
        raise FormatError(f"{path} is in Fortran order; save numpy.ascontiguousarray(array) instead")
