"""GrowingFile: a file written from front to back over several lives of the program."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.disk_file import DiskFile, errors_name, overwrite_start, sync_folder
from gnn_ibp.errors import FormatError
from gnn_ibp.npy import npy_header
from gnn_ibp.rows import Bytes

READ_BYTES, WRITE_BYTES = 4 << 20, 8 << 20


class GrowingFile:
    """A file to be continued: the first `num_bytes` stay, whatever stands behind them is cut off.

    What was written is on the disk for sure after `sync`. Raises FormatError where the file is shorter than
    `num_bytes`. A context manager that closes it; it is complete when its owner says so. Errors of the disk
    name the file.
    """

    def __init__(self, path: Path, num_bytes: int = 0) -> None:
        self.path = path
        there = path.stat().st_size if num_bytes and path.exists() else 0
        if there < num_bytes:
            raise FormatError(
                f"{path} is cut short: {num_bytes} bytes expected, {there} are there; start anew"
            )
        self._file = path.open("r+b" if num_bytes else "wb")
        sync_folder(path.parent)
        with errors_name(path):
            self._file.truncate(num_bytes)
            self._file.seek(num_bytes)
        self._leaving = num_bytes

    def write(self, data: bytes | NDArray[Any]) -> None:
        """Appends bytes, or those of a contiguous array."""
        with errors_name(self.path):
            self._file.write(data if isinstance(data, bytes) else data.data)
            if self._file.tell() - self._leaving >= WRITE_BYTES:
                self._leave()

    def _leave(self) -> None:
        """Has the system write what is new in the background, so that `sync` has little to wait for.

        That is the first thing it does for pages that are said to be of no use; those it holds on to until
        they are written are not given up.
        """
        self._file.flush()
        begin, self._leaving = self._leaving, self._file.tell()
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._file.fileno(), begin, self._leaving - begin, os.POSIX_FADV_DONTNEED)

    def overwrite_start(self, data: bytes) -> None:
        """Replaces the first bytes of the file."""
        with errors_name(self.path):
            overwrite_start(self._file, data)

    def sync(self) -> None:
        """Brings everything to the disk."""
        with errors_name(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())

    @property
    def num_bytes(self) -> int:
        return self._file.tell()

    def pieces(self, first: int = 0) -> Iterator[Bytes]:
        """What was written, from byte `first` on, a few MiB at a time."""
        with errors_name(self.path):
            self._file.flush()
        file = DiskFile(self.path)
        try:
            for at in range(first, file.size, READ_BYTES):
                yield file.read(at, min(READ_BYTES, file.size - at))
        finally:
            file.close()

    def close(self) -> None:
        with errors_name(self.path):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GrowingArray:
    """A one-dimensional .npy file, written piece by piece; `num_values` of an earlier life stay."""

    def __init__(self, path: Path, dtype: np.dtype[Any], num_values: int = 0) -> None:
        self._dtype = dtype
        begin = len(npy_header(dtype, (0,)))
        self._file = GrowingFile(path, begin + num_values * dtype.itemsize if num_values else 0)
        if not num_values:
            self._file.write(bytes(begin))  # no magic yet: an unfinished file is none
        self.num_values = num_values

    def append(self, values: NDArray[Any]) -> None:
        """Adds values (n,) of the array's dtype."""
        assert values.dtype == self._dtype and values.ndim == 1
        self._file.write(values)
        self.num_values += len(values)

    def sync(self) -> None:
        """Brings everything to the disk."""
        self._file.sync()

    def finish(self) -> None:
        """Completes the file, which then is what `numpy.save` writes, and closes it."""
        self._file.overwrite_start(npy_header(self._dtype, (self.num_values,)))
        self._file.sync()
        self._file.close()

    def close(self) -> None:
        self._file.close()
