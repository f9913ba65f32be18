"""Jobs in children of a process that has everything imported, one of whose writes fails."""

import gc
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from fault_library import Fault, arm

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240
BROKEN = 70


class Call(NamedTuple):
    """One that changed something, or was to: its name, the bytes it was to write, the file."""

    name: str
    num_bytes: int
    path: str


@dataclass(frozen=True)
class Answer:
    """status: that of the child, or minus the signal that ended it. err: its stderr. calls: all it made."""

    status: int
    err: str
    calls: list[Call]


class Children(Protocol):
    """Where jobs are done."""

    def run(self, job: str, step: str, root: Path, at: int = 0, fault: Fault = Fault.NONE) -> Answer:
        """In a child, does `step` (begin or work) of a job of jobs.py in `root`; its `at`-th call fails."""


class Forks:
    """Children of this process. library: the one preloaded in it; None: no call is counted or fails."""

    def __init__(self, library: Path | None = None) -> None:
        import jobs

        jobs.load_the_rest()
        gc.freeze()  # a child's collections then leave the pages alone that it shares with this process
        self._library, self._jobs = library, jobs.JOBS

    def run(self, job: str, step: str, root: Path, at: int = 0, fault: Fault = Fault.NONE) -> Answer:
        err, log = os.memfd_create("err"), os.memfd_create("log")
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(err, 2)
            signal.alarm(TIMEOUT_S)
            if self._library:
                arm(self._library, root, at, fault, log)
            _live(self._jobs[job], step, root)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return Answer(status, _text(err), [_call(line) for line in _text(log).splitlines()])


class ForkServer:
    """Children of another process, in which the library is preloaded; a context manager."""

    def __init__(self, library: Path) -> None:
        folders = [ROOT, *(ROOT / "tests" / name for name in ("", "writes", "converters"))]
        environment = os.environ | {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "OMP_NUM_THREADS": "1",  # threads do not outlive a fork
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(library)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: str, step: str, root: Path, at: int = 0, fault: Fault = Fault.NONE) -> Answer:
        assert self._process.stdin and self._process.stdout
        print(json.dumps([job, step, str(root), at, fault]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the fork server ended with status {self._process.wait()}"
        answer = json.loads(line)
        return Answer(answer["status"], answer["err"], [Call(*call) for call in answer["calls"]])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)  # closes its input, which ends it


def _serve(library: Path) -> None:
    """A job a line from standard input, an answer a line."""
    forks = Forks(library)
    for line in sys.stdin:
        job, step, root, at, fault = json.loads(line)
        print(json.dumps(asdict(forks.run(job, step, Path(root), at, Fault(fault)))), flush=True)


def _live(job: object, step: str, root: Path) -> None:
    """A child's life."""
    status = BROKEN
    try:
        status = getattr(job, step)(root) or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _text(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd) as file:
        return file.read()


def _call(line: str) -> Call:
    name, num_bytes, path = line.split(" ", 2)
    return Call(name, int(num_bytes), path)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
