"""Where a feature file's rows and index stand while it is written: to be complete at once, or continued."""

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.disk_file import NewFile, errors_name
from gnn_ibp.format import ROWS_AT
from gnn_ibp.growing_file import READ_BYTES, GrowingFile
from gnn_ibp.rows import GROUP, Bytes, RowIndex

TABLES = ("bases", "sizes", "bitmask")


class FeatureParts(Protocol):
    """The file that rows are appended to, and the tables that are written behind them at the end."""

    def write(self, data: bytes | Bytes) -> None:
        """Appends bytes to the file."""

    def add_index(self, index: RowIndex | None, bases: NDArray[np.uint64] | None, bitmask: Bytes) -> None:
        """Adds to the tables; `bases` instead of those of the index, both None in place."""

    def table(self, name: str) -> Iterable[NDArray[Any]]:
        """One of `TABLES`, in pieces."""

    def overwrite_start(self, data: bytes) -> None:
        """Replaces the first bytes of the file."""

    def commit(self) -> None:
        """The file is complete: it is on the disk, under its name."""

    def discard(self) -> None:
        """Closes what is open, and removes what is of no use later; nothing after `commit`."""


class NewParts:
    """A file that appears when it is complete, its tables in files without a name until then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with errors_name(path), ExitStack() as opened:
            self._file = opened.enter_context(NewFile(path))
            self._file.write(bytes(ROWS_AT))  # no magic yet: an unfinished file is none
            self._tables = {name: opened.enter_context(_nameless_file(path.parent)) for name in TABLES}
            self._opened = opened.pop_all()
        self.write, self.overwrite_start = self._file.write, self._file.overwrite_start
        self.commit = self._file.commit

    def add_index(self, index: RowIndex | None, bases: NDArray[np.uint64] | None, bitmask: Bytes) -> None:
        with errors_name(self._path):
            if index and bases is not None:
                self._tables["bases"].write(bases.data)
                self._tables["sizes"].write(index.sizes.data)
            self._tables["bitmask"].write(bitmask.data)

    def table(self, name: str) -> Iterable[NDArray[Any]]:
        table = self._tables[name]
        with errors_name(self._path):
            table.seek(0)
            while piece := table.read(READ_BYTES):
                yield np.frombuffer(piece, np.uint8)

    def discard(self) -> None:
        with suppress(OSError):  # the flush of a full disk
            self._opened.close()


class GrowingParts:
    """A file that is continued after a kill, its tables in files in the folder `work` meanwhile.

    num_rows, rows_bytes: what is there already; a multiple of `GROUP` rows. size_bytes: of an entry of the
    sizes; 0 in place.
    """

    def __init__(
        self, path: Path, work: Path, size_bytes: int, num_rows: int = 0, rows_bytes: int = 0
    ) -> None:
        assert num_rows % GROUP == 0
        self._file = GrowingFile(path, ROWS_AT + rows_bytes if num_rows else 0)
        if not num_rows:
            self._file.write(bytes(ROWS_AT))
        there = {
            "bases": num_rows // GROUP * 8 * (size_bytes > 0),
            "sizes": num_rows * size_bytes,
            "bitmask": num_rows // 8,
        }
        self._tables = {name: GrowingFile(work / f"{path.name}.{name}", there[name]) for name in TABLES}
        self.write, self.overwrite_start = self._file.write, self._file.overwrite_start

    def add_index(self, index: RowIndex | None, bases: NDArray[np.uint64] | None, bitmask: Bytes) -> None:
        if index and bases is not None:
            self._tables["bases"].write(bases)
            self._tables["sizes"].write(index.sizes)
        self._tables["bitmask"].write(bitmask)

    def table(self, name: str) -> Iterable[NDArray[Any]]:
        return self._tables[name].pieces()

    def rows(self, at: int) -> Iterable[Bytes]:
        """The bytes of the rows from `at` on, in pieces."""
        return self._file.pieces(ROWS_AT + at)

    def sync(self) -> None:
        """Brings everything to the disk."""
        for file in (self._file, *self._tables.values()):
            file.sync()

    def commit(self) -> None:
        self._file.sync()
        self._file.close()
        for table in self._tables.values():
            table.close()

    def discard(self) -> None:
        self._file.close()
        for table in self._tables.values():
            table.close()


def _nameless_file(folder: Path) -> IO[bytes]:
    """A file on the disk of `folder` that is gone when it is closed, or its process is killed."""
    return TemporaryFile(dir=folder)
