"""A folder under a temporary name: removed at the end, or after a kill by whoever makes the next one."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gnn_ibp.leftovers import lock_new, remove_leftovers, temporary_path

SUFFIX = ".converting"


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, with its name in its own, removed at the end unless it was renamed.

    It is locked while it is in use. Those beside `path` that nobody holds locked any more, because the
    process that made them was killed, are removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path, SUFFIX)
    folder, lock = _new_folder(path)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _new_folder(path: Path) -> tuple[Path, int]:
    """The folder, and the descriptor that holds its lock."""
    while True:
        folder = temporary_path(path, SUFFIX)
        folder.mkdir()
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if lock_new(lock, folder):
            return folder, lock
        os.close(lock)
