"""A folder under a temporary name: removed at the end, or after a kill by whoever makes the next one."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".converting"


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, with its name in its own, removed at the end unless it was renamed.

    It is locked while it is in use. Those beside `path` that nobody holds locked any more, because the
    process that made them was killed, are removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    folder = path.with_name(f".{path.name}.{secrets.token_hex(6)}{_SUFFIX}")
    folder.mkdir()
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: its leftovers stay
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers(path: Path) -> None:
    """Removes the temporary folders beside `path` that belonged to processes that were killed."""
    name = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{12}" + re.escape(_SUFFIX))
    for folder in path.parent.iterdir():
        if not name.fullmatch(folder.name):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
