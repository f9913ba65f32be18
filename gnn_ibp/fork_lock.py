"""ForkLock: a lock that is free in a forked child, whichever thread of the parent held it."""

import os
import threading
import weakref
from functools import cache


class ForkLock:
    """A lock for `with` blocks; the thread that holds it may take it again.

    A forked child has a copy of every lock as it was, and of the parent's threads only the one that forked: a
    lock that another one held would stay taken for ever. What it guards may be left as it was in the middle
    of the block, so blocks are short, and change one thing.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)
        _watch_forks()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _free_in_child(self) -> None:
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
        else:
            self._lock = threading.RLock()


_LOCKS: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_LOCKS):
        lock._free_in_child()


@cache
def _watch_forks() -> None:
    """From the first lock on, once."""
    os.register_at_fork(after_in_child=_after_fork_in_child)
