"""Files on disk: read at any position by any number of threads, or written whole or not at all."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from gnn_ibp.errors import FormatError
from gnn_ibp.leftovers import lock_new, remove_leftovers, temporary_path
from gnn_ibp.rows import Bytes

PARTIAL = ".partial"
"""Suffix of files that are not complete."""

_LOSING = (errno.EIO, errno.ENOSPC, errno.EDQUOT)


class DiskFile:
    """A file opened for reading. Every read names its position, so threads and forked children may share it.

    Raises what `open` raises, and IsADirectoryError or OSError for what is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._fd = -1
        self.path = Path(path)
        # Not to wait for a writer where it is a pipe; regular files know no O_NONBLOCK.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        state = os.fstat(self._fd)
        if not stat.S_ISREG(state.st_mode):
            self.close()
            if stat.S_ISDIR(state.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.path))
            raise OSError(errno.EINVAL, "not a regular file", str(self.path))
        self.size = state.st_size

    def fileno(self) -> int:
        """The descriptor, for `pread` in the kernels. ValueError after `close`."""
        if self._fd < 0:
            raise ValueError(f"{self.path} is closed")
        return self._fd

    def read(self, at: int, num_bytes: int) -> Bytes:
        """The bytes at `at`, in fresh memory."""
        out = np.empty(num_bytes, np.uint8)
        self.read_into(at, out)
        return out

    def read_into(self, at: int, out: Bytes) -> None:
        """Fills `out` with the bytes at `at`. FormatError where the file ends before."""
        view, got = out.data, 0
        while got < len(view):
            try:
                step = os.preadv(self.fileno(), [view[got:]], at + got)
            except OSError as error:
                raise OSError(error.errno, os.strerror(error.errno or 0), str(self.path)) from error
            if step == 0:
                raise FormatError(
                    f"{self.path} is cut short: {at + len(view)} bytes expected, {at + got} are there"
                )
            got += step

    def size_now(self) -> int:
        """The bytes of the file, which may have been cut since it was opened."""
        return os.fstat(self.fileno()).st_size

    def expect_random_reads(self) -> None:
        """Tells the system that reading ahead is of no use unless `will_need` asks for it."""
        with contextlib.suppress(OSError):
            os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_RANDOM)

    def will_need(self, at: int, num_bytes: int) -> None:
        """Starts reading these bytes in the background."""
        with contextlib.suppress(OSError):
            os.posix_fadvise(self.fileno(), at, num_bytes, os.POSIX_FADV_WILLNEED)

    def close(self) -> None:
        """Gives the descriptor back; nothing can be read afterwards."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class NewFile:
    """A file that appears under its name when it is complete; a context manager.

    It is written under a temporary name in the same folder. `commit` brings it to the disk and renames it,
    replacing what stood there; leaving the block without `commit` (an error, Ctrl-C) removes it. What killed
    processes left of such a file is removed first. Errors of the disk name the file. OSError where something
    stands there that is no file, such as a folder, a pipe or a device.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise OSError(errno.EINVAL, "not a regular file", str(self.path))
        remove_leftovers(self.path, PARTIAL)
        self._partial, self._file = self._new_partial()

    def _new_partial(self) -> tuple[Path, BinaryIO]:
        """An empty file under a temporary name, locked."""
        while True:
            partial = temporary_path(self.path, PARTIAL)
            file = partial.open("xb")
            if lock_new(file.fileno(), partial):
                return partial, file
            file.close()

    def write(self, data: bytes | Bytes) -> None:
        """Appends `data`."""
        with errors_name(self.path):
            self._file.write(data if isinstance(data, bytes) else data.data)

    def overwrite_start(self, data: bytes) -> None:
        """Replaces the first bytes of the file."""
        with errors_name(self.path):
            overwrite_start(self._file, data)

    def commit(self) -> None:
        """Makes the file durable and visible under its name."""
        with errors_name(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._partial.replace(self.path)
        sync_folder(self.path.parent)

    def discard(self) -> None:
        """Removes what was written, where that is possible; nothing after `commit`."""
        with contextlib.suppress(OSError):  # the flush of a full disk
            self._file.close()
        with contextlib.suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def overwrite_start(file: BinaryIO, data: bytes) -> None:
    """Replaces the first bytes of `file`, which goes on where it was."""
    at = file.tell()
    file.seek(0)
    file.write(data)
    file.seek(at)


def sync_folder(folder: Path) -> None:
    """Makes what was created or renamed in `folder` durable. OSError where that may be lost."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:  # some network file systems cannot sync a folder
        if error.errno in _LOSING:
            raise OSError(error.errno, os.strerror(error.errno), str(folder)) from error
    finally:
        os.close(handle)


@contextlib.contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Errors of the system that name no file, as those of `write` do, name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
