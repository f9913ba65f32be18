"""The arrays of an .npz file, a zip of .npy members, read from their beginning in pieces."""

import contextlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError

_SUFFIX = ".npy"


class ZipArrays:
    """An .npz file. FormatError for what is no zip, or one that is cut short; OSError as `open` raises it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise FormatError(f"{self.path} is no .npz file, or it is cut short ({error})") from error
        self.names = [info.filename.removesuffix(_SUFFIX) for info in self._zip.infolist()]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def fingerprint(self) -> str:
        """Tells this content from another: a checksum over the members' names, sizes and CRCs."""
        members = sorted((info.filename, info.file_size, info.CRC) for info in self._zip.infolist())
        return xxhash.xxh3_64_hexdigest(repr(members).encode())

    def open(self, name: str) -> "ZipArray":
        """The array `name`, ready to be read from its first row."""
        where = f"{self.path}: {name}{_SUFFIX}"
        with _as_format_error(where):
            info = self._zip.getinfo(name + _SUFFIX if name + _SUFFIX in self._zip.namelist() else name)
            return ZipArray(self._zip.open(info), info.file_size, where)

    def read(self, name: str) -> NDArray[Any]:
        """The whole array `name`."""
        array = self.open(name)
        return array.take(array.shape[0]) if array.shape else array.take_scalar()


class ZipArray:
    """One array: shape, dtype, and its rows in order.

    FormatError where the member is no .npy file, is cut short, in Fortran order, in foreign byte order, or
    holds Python objects; `where` names it.
    """

    def __init__(self, stream: Any, num_bytes: int, where: str) -> None:
        self._stream, self.where = stream, where
        fmt = np.lib.format
        try:
            version = fmt.read_magic(stream)
        except ValueError as error:
            raise FormatError(f"{where} has no .npy header ({error}); write it with numpy.savez") from error
        try:
            readers = {(1, 0): fmt.read_array_header_1_0, (2, 0): fmt.read_array_header_2_0}
            if version not in readers:
                raise FormatError(
                    f"{where} has .npy version {version}, versions (1, 0) and (2, 0) can be read"
                )
            self.shape, fortran, self.dtype = readers[version](stream)
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{where} has a damaged .npy header ({error})") from error
        if self.dtype.hasobject:
            raise FormatError(f"{where} holds Python objects; save it as an array of numbers")
        if not self.dtype.isnative:
            raise FormatError(
                f"{where} is in foreign byte order ({self.dtype.str}); save it as "
                f"array.astype({self.dtype.name!r})"
            )
        if fortran and len(self.shape) > 1:
            raise FormatError(f"{where} is in Fortran order; save it as numpy.ascontiguousarray(array)")
        wanted = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        there = num_bytes - stream.tell()
        if there != wanted:
            what = "cut short" if there < wanted else "too long"
            raise FormatError(f"{where} is {what}: {wanted} bytes of values announced, {there} are there")

    def take(self, count: int) -> NDArray[Any]:
        """The next `count` rows."""
        out = np.empty((count, *self.shape[1:]), self.dtype)
        self._fill(out)
        return out

    def take_scalar(self) -> NDArray[Any]:
        """The value of an array without dimensions."""
        out = np.empty((1,), self.dtype)
        self._fill(out)
        return out.reshape(())

    def _fill(self, out: NDArray[Any]) -> None:
        if not out.nbytes:
            return
        view, got = out.reshape(-1).view(np.uint8).data, 0
        with _as_format_error(self.where):
            while got < len(view):
                step = self._stream.readinto(view[got:])
                if not step:
                    raise EOFError("the file ends before the array does")
                got += step


@contextlib.contextmanager
def _as_format_error(where: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"{where} cannot be read: {error}") from error
    except KeyError as error:
        raise FormatError(f"{where} is not there") from error
