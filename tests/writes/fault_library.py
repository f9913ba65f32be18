"""The library of failing_writes.c: compiled by the system's compiler, armed where it is preloaded."""

import ctypes
import enum
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_writes.c")


class Fault(enum.IntEnum):
    """What becomes of the n-th call; as in failing_writes.c."""

    NONE = 0
    NO_SPACE = 1
    HALF_FULL = 2
    IO_ERROR = 3
    READ_ONLY = 4
    KILL = 5
    TORN = 6
    SHORT = 7

    @property
    def kills(self) -> bool:
        return self in (Fault.KILL, Fault.TORN)


def build(folder: Path) -> Path:
    """The library, in `folder`. FileNotFoundError where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("no gcc and no clang")
    library = folder / "failing_writes.so"
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([compiler, *flags, SOURCE, "-o", library], check=True)
    return library


def arm(library: Path, folder: Path, at: int, fault: Fault, log_fd: int) -> None:
    """From now on the `at`-th call of this process that changes something below `folder` ends in `fault`."""
    ctypes.CDLL(str(library)).arm(str(folder).encode(), ctypes.c_long(at), int(fault), log_fd)
