"""The line that a command ends in when it failed: what happened, to which file, and what to do."""

import errno
import os
import sys

from gnn_ibp.errors import SettingsError

TRACEBACK = "GNN_IBP_TRACEBACK"
"""Environment variable: 1 shows where in the program an error came from."""

TORCH_OUT_OF_MEMORY = ("can't allocate memory", "out of memory")
"""What torch says, in a RuntimeError, of the CPU's memory and of a GPU's."""

_FULL = ("the disk is full, or a quota", "free some space, or")
_DENIED = ("permission denied", "change its permissions, or")
_DISKS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EIO: ("cannot be read or written, the disk or the way to it fails", "look at the disk, or"),
    errno.EROFS: ("the disk is read-only", ""),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
}
_GONE = "nobody reads what is said any more, so the work was ended; send it to a file"
"""Cause, and what helps beside choosing another folder."""

_FOLDERS = {"train": "--root, --raw-root, --save, --report", "convert": "OUT, --raw-root"}
"""By command, where a folder is chosen."""


def error_line(error: BaseException, command: str) -> str:
    """The message of `error`, which ended `command`, and its notes, in one line."""
    message = "; ".join([_message(error, command), *getattr(error, "__notes__", ())])
    return " ".join(message.split())


def _message(error: BaseException, command: str) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted" if getattr(error, "__notes__", ()) else "interrupted; nothing was complete"
    if isinstance(error, SettingsError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed for {sys.executable}: type `make setup`"
    if isinstance(error, OSError) and error.errno is not None:
        return _message_of_disk(error, command)
    if isinstance(error, MemoryError) or any(words in str(error) for words in TORCH_OUT_OF_MEMORY):
        what = ". ".join(str(error).split(". ")[:2])  # torch goes on about its allocator
        return f"out of memory ({what}): ask for less with --cache-bytes, --batch-size, --fanout or --hidden"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error) or f"{type(error).__name__} (set {TRACEBACK}=1 to see where)"


def _message_of_disk(error: OSError, command: str) -> str:
    if error.errno == errno.EPIPE:
        return _GONE
    where = f"{error.filename}: " if error.filename else ""
    if error.errno not in _DISKS or error.strerror != os.strerror(error.errno):  # it has words of its own
        return f"{where}{error.strerror}"
    cause, remedy = _DISKS[error.errno]
    folders = f" ({_FOLDERS[command]})" if command in _FOLDERS else ""
    return f"{where}{cause}: {remedy} choose another folder{folders}"
