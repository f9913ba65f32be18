"""The arrays of an .npz file, a zip of .npy members, read from their beginning in pieces."""

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from gnn_ibp.converters.crc32 import joined_crc32
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import FormatError

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What `zipfile` raises for a member that is damaged, encrypted, or packed in a way it does not know."""

_SUFFIX = ".npy"
_ENCRYPTED = 1
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\3\4"
_DROPPED_BYTES = 1 << 18


class ZipArrays:
    """An .npz file. FormatError for what is no zip, or one that is cut short; OSError as `open` raises it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
            if any(info.header_offset < 0 for info in self._zip.infolist()):
                raise zipfile.BadZipFile("a member lies before its beginning")
        except DAMAGED as error:
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
            stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & _ENCRYPTED
            if stored:
                return ZipArray(StoredMember(DiskFile(self.path), info), info.file_size, where)
            with zipfile.ZipFile(self.path) as own:  # threads that read side by side share nothing
                return ZipArray(own.open(info), info.file_size, where)

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
        self._left = 0
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
        except (FormatError, OSError, *DAMAGED):
            raise
        except Exception as error:  # NumPy reads it as text in Python, which can be wrong in every way
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
        self._left = wanted

    def take(self, count: int) -> NDArray[Any]:
        """The next `count` rows."""
        out = np.empty((count, *self.shape[1:]), self.dtype)
        self._fill(out)
        return out

    def take_values(self, count: int) -> NDArray[Any]:
        """The next `count` values, in one dimension."""
        out = np.empty(count, self.dtype)
        self._fill(out)
        return out

    def skip_values(self, count: int) -> None:
        """Goes on behind the next `count` values; what is compressed has to be read for it."""
        if not isinstance(self._stream, StoredMember):
            self.drop_values(count)
            return
        num_bytes = count * self.dtype.itemsize
        self._stream.skip(num_bytes)
        self._left -= num_bytes

    def drop_values(self, count: int) -> None:
        """Reads the next `count` values, for the sake of the checksum."""
        num_bytes = count * self.dtype.itemsize
        piece = np.empty(min(num_bytes, _DROPPED_BYTES), np.uint8)
        while num_bytes:
            step = min(num_bytes, len(piece))
            self._fill(piece[:step])
            num_bytes -= step

    def check_with(self, rest: "ZipArray") -> None:
        """Compares the zip's checksum where this one was read up to where the other began, after a skip.

        Both are the same array, and the other was read to its end. What is compressed is compared there.
        """
        if isinstance(self._stream, StoredMember):
            with _as_format_error(self.where):
                self._stream.check_with(rest._stream)

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
            self._left -= got
            if not self._left and self._stream.read(1):  # a zip's checksum is compared at its end only
                raise EOFError("the array ends before the file does")


class StoredMember:
    """The bytes of a member that is not compressed.

    Its checksum is compared at its end where none are skipped, else by `check_with`.
    """

    def __init__(self, file: DiskFile, info: zipfile.ZipInfo) -> None:
        self._file, self._num_bytes, self._wanted_crc = file, info.file_size, info.CRC
        header = file.read(info.header_offset, _LOCAL_HEADER.size).tobytes()
        signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
        if signature != _LOCAL_SIGNATURE or info.compress_size != info.file_size:
            raise zipfile.BadZipFile("its header in the zip is damaged")
        self._begin = info.header_offset + len(header) + name_bytes + extra_bytes
        self._at = self._crc = self._crc_from = 0  # of what is read since the last skip

    def tell(self) -> int:
        """Bytes that were read or skipped."""
        return self._at

    def skip(self, num_bytes: int) -> None:
        """Goes on `num_bytes` further on."""
        if num_bytes:
            self._at += num_bytes
            self._crc, self._crc_from = 0, self._at

    def read(self, num_bytes: int) -> bytes:
        """The next bytes, fewer at the end."""
        out = bytearray(max(0, min(num_bytes, self._num_bytes - self._at)))
        self.readinto(memoryview(out))
        return bytes(out)

    def readinto(self, view: memoryview) -> int:
        """Fills `view`, at the end only its beginning; returns the bytes read. BadZipFile for damage."""
        count = max(0, min(len(view), self._num_bytes - self._at))
        if not count:
            return 0
        self._file.read_into(self._begin + self._at, np.frombuffer(view[:count], np.uint8))
        self._at += count
        self._crc = zlib.crc32(view[:count], self._crc)
        if self._at == self._num_bytes and not self._crc_from:
            self._check(self._crc)
        return count

    def check_with(self, rest: "StoredMember") -> None:
        """BadZipFile where this one, up to where `rest` began, and `rest` have another checksum."""
        assert not self._crc_from and self._at == rest._crc_from and rest._at == rest._num_bytes
        self._check(joined_crc32(self._crc, rest._crc, rest._at - rest._crc_from))

    def _check(self, crc: int) -> None:
        if crc != self._wanted_crc:
            raise zipfile.BadZipFile("its checksum is another than the zip's")


@contextlib.contextmanager
def _as_format_error(where: str) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        raise FormatError(f"{where} cannot be read: {error}") from error
    except KeyError as error:
        raise FormatError(f"{where} is not there") from error
