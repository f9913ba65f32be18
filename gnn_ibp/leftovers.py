"""Files and folders under a temporary name: locked while they are made, removed when their maker is gone."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from pathlib import Path


def temporary_path(path: Path, suffix: str) -> Path:
    """A new hidden name beside `path`, with its name in its own."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{suffix}")


def lock_new(handle: int, path: Path) -> bool:
    """Locks the new file or folder `path`, open as `handle`; False where somebody took it for a leftover.

    On a file system without locks nothing is locked, and leftovers stay.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    return is_at(handle, path)


def is_at(handle: int, path: Path) -> bool:
    """Whether the open file or folder is the one that `path` names."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def remove_leftovers(path: Path, suffix: str) -> None:
    """Removes what `temporary_path` named with this suffix and nobody holds locked, as far as possible."""
    name = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{12}" + re.escape(suffix))
    with contextlib.suppress(OSError):
        for left in [entry.path for entry in os.scandir(path.parent) if name.fullmatch(entry.name)]:
            _remove_unlocked(Path(left))


def _remove_unlocked(path: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        finally:
            os.close(handle)
