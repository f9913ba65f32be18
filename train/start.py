"""The program's start: Ctrl-C while torch is still being loaded ends in one line, as it does later."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130


@contextmanager
def loading() -> Iterator[None]:
    """Ctrl-C in here leaves at once: modules that are interrupted halfway raise, or abort, as they please."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # such as nohup's
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os.write(2, b"gnn-ibp: interrupted before anything was done\n")
    os._exit(INTERRUPTED)


def open_closed_streams() -> None:
    """What is said goes nowhere where the process was started without a place for it; no file that is opened
    later gets that descriptor."""
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            setattr(sys, name, os.fdopen(descriptor, "r" if descriptor == 0 else "w", closefd=False))


def main(args: Sequence[str] | None = None) -> int:
    """The command `gnn-ibp`; by default with the arguments of the process."""
    open_closed_streams()
    with loading():
        from gnn_ibp.train.cli import main as run
    return run(args)
