"""Plain arrays on disk (.npy): read whole or memory-mapped, and refused with the reason and the remedy."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnn_ibp.errors import FormatError

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(
    path: Path | str, dtypes: tuple[DTypeLike, ...], ndim: int = 1, mmap: bool = False
) -> NDArray[Any]:
    """The array in the file `path`; with `mmap` a read-only view of the file, of which nothing is read yet.

    Raises FormatError where the file is not a .npy file, is cut short or too long, or holds an array that is
    big-endian, in Fortran order, of another dtype than `dtypes` or of other dimensions than `ndim`.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            read_header = HEADERS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read_header(file)
        except (ValueError, KeyError) as error:
            raise FormatError(
                f"{path} does not begin like a .npy file ({error}); write it with numpy.save"
            ) from error
        _check_header(path, shape, fortran, dtype, dtypes, ndim)
        first_byte = file.tell()
        num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        file_bytes = path.stat().st_size
        if file_bytes != first_byte + num_bytes:
            raise FormatError(
                f"{path} has {file_bytes} bytes, its header announces {first_byte + num_bytes}: "
                "it was cut short or is not whole; copy or convert it again"
            )
        if mmap and num_bytes:
            return np.memmap(path, dtype, "r", first_byte, shape)
        return np.fromfile(file, dtype, num_bytes // dtype.itemsize).reshape(shape)


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
