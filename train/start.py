"""The program's start: Ctrl-C while torch is still being loaded ends in one line, as it does later."""

import os
import signal
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


def main(args: Sequence[str] | None = None) -> int:
    """The command `gnn-ibp`; by default with the arguments of the process."""
    with loading():
        from gnn_ibp.train.cli import main as run
    return run(args)
