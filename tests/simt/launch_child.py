"""LaunchChild: a process that runs one launch after another under a sanitizer, until one of them fails."""

import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from kernel_launch import LaunchError, UnfinishedError
from numpy.typing import NDArray

LIMIT_S = 120  # for a launch
REPORT_CHARS = 6000


class LaunchChild:
    """`program` is simt_main.cpp with kernels; it is started when it is needed, and again after a failure.

    One launch runs at a time. A forked process starts a child of its own.
    """

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self._program, self._environment = program, environment
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def run(self, request: Iterable[bytes | memoryview], results: Sequence[NDArray[np.uint8]]) -> None:
        """Send a launch, and receive what its buffers hold then.

        Raises LaunchError with the report; it is an UnfinishedError after LIMIT_S.
        """
        with self._lock:
            if self._running is None or self._running.owner != os.getpid():
                self._running = _Running(self._program, self._environment)
            if not self._running.exchange(request, results):
                failed, self._running = self._running, None
                raise failed.error()


class _Running:
    """One process, of the process `owner`; its errors go to a file that has no name."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self.owner = os.getpid()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **environment},
        )
        self._too_long = False
        weakref.finalize(self, _stop, self.owner, self._process, self._errors)

    def exchange(self, request: Iterable[bytes | memoryview], results: Sequence[NDArray[np.uint8]]) -> bool:
        """Whether the launch succeeded. `results` that are read-only are received and dropped."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        watchdog = threading.Timer(LIMIT_S, self._give_up)
        watchdog.start()
        try:
            for part in request:
                to.write(part)
            to.flush()
            if back.read(1) != b"+":
                return False
            for buffer in results:
                held = back.read(buffer.nbytes)
                if len(held) != buffer.nbytes:
                    return False
                if buffer.flags.writeable:
                    buffer[:] = np.frombuffer(held, np.uint8)
            return True
        except BrokenPipeError:
            return False
        finally:
            watchdog.cancel()

    def error(self) -> LaunchError:
        """How the process ended, and what it said, without the harness's own frames."""
        status = self._process.wait()
        if self._too_long:
            return UnfinishedError(f"still runs after {LIMIT_S} s")
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").partition("\nShadow bytes")[0]
        report = "\n".join(
            line for line in said.splitlines() if " simt::" not in line and " simt_call_" not in line
        )
        return LaunchError(f"exit {status}\n{report[:REPORT_CHARS]}")

    def _give_up(self) -> None:
        self._too_long = True
        self._process.kill()


def _stop(owner: int, process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> None:
    if owner == os.getpid():  # a forked process leaves its parent's child alone
        process.kill()
        process.communicate()
        errors.close()
