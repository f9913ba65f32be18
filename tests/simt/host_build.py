"""Build a CUDA kernel file, unchanged, for the CPU: its kernels and the harness in one library or program."""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HARNESS = Path(__file__).resolve().parent
ROOT = HARNESS.parents[1]
KERNELS = ROOT / "kernels"
BUILDS = ROOT / "build" / "simt"
KEPT_DAYS = 14  # a build that nobody used for so long is deleted

KERNEL_NAME = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)\s*\('
)


class BuildError(RuntimeError):
    """The host compiler refused a kernel file; the message is the compiler's."""


@dataclass(frozen=True)
class Sanitizer:
    """How to compile for a sanitizer. The harness itself is not instrumented, except for memory."""

    kernel_flags: tuple[str, ...]
    harness_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    environment: Mapping[str, str]
    compiler: str = "g++"

    @property
    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        return None if shutil.which(self.compiler) else f"there is no {self.compiler} here"


_ADDRESS = ("-fsanitize=address,undefined",)
_MEMORY = ("-fsanitize=memory", "-fno-sanitize-memory-param-retval", "-DSIMT_MSAN")
SANITIZERS = {
    "address": Sanitizer(
        kernel_flags=(*_ADDRESS, "-fno-sanitize-recover=all", "-O1"),
        harness_flags=("-DSIMT_ASAN", "-O2"),
        link_flags=_ADDRESS,
        environment={"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"},
    ),
    "thread": Sanitizer(
        kernel_flags=("-fsanitize=thread", "-O1"),
        harness_flags=("-DSIMT_TSAN", "-O2"),
        link_flags=("-fsanitize=thread",),
        environment={"TSAN_OPTIONS": "halt_on_error=1:report_signal_unsafe=0"},
    ),
    "memory": Sanitizer(
        kernel_flags=(*_MEMORY, "-O0"),
        harness_flags=(*_MEMORY, "-O2"),
        link_flags=("-fsanitize=memory",),
        environment={"MSAN_OPTIONS": "halt_on_error=1"},
        compiler="clang++",
    ),
}
_PLAIN = Sanitizer(kernel_flags=("-O1",), harness_flags=("-O2",), link_flags=(), environment={})


@dataclass(frozen=True)
class Build:
    """A kernel file built: the library (no sanitizer) or program at `path`, and the kernels' names."""

    path: Path
    kernels: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def build(
    source: Path, sanitizer: str | None = None, kernels: Path = KERNELS, builds: Path | None = None
) -> Build:
    """Compile `source`, which may include anything below `kernels`, or take the build made of the same bytes.

    A build is used again as long as nothing below `kernels` or in the harness changed. Processes that want
    the same one at once wait for the first. Builds are kept in `builds`: by default in BUILDS, for kernels
    other than the project's in the folder `builds` beside them. Raises BuildError.
    """
    if builds is None:
        builds = BUILDS if kernels == KERNELS else kernels.parent / "builds"
    flags = _PLAIN if sanitizer is None else SANITIZERS[sanitizer]
    names = tuple(KERNEL_NAME.findall(source.read_text()))
    if not names:
        raise BuildError(f'{source} has no kernel: write extern "C" __global__ void name(...)')
    wrapper = f'#include "simt.h"\n#include "{source.resolve()}"\n'
    wrapper += "".join(f"SIMT_EXPORT({name})\n" for name in names)
    warnings = ("-Wall", "-Wno-unused-variable", "-Wno-unknown-pragmas")
    kernel_flags = (*_base_flags(flags), f"-I{kernels.resolve()}", *warnings, *flags.kernel_flags)
    key = key_of(
        _sources(kernels, {".h", ".cuh", ".cu"}),
        _harness_sources(),
        wrapper,
        source.read_text(),
        repr(flags),
        compiler_version(flags.compiler),
    )
    target = builds / (f"{source.stem}-{key}" + (".so" if sanitizer is None else ""))
    with locked(target):
        if not target.exists():
            remove_old(builds)
            with tempfile.TemporaryDirectory(dir=builds) as folder:
                made = Path(folder) / "made"
                (Path(folder) / "wrapper.cpp").write_text(wrapper)
                _compile(flags, kernel_flags, Path(folder) / "wrapper.cpp", Path(folder) / "kernels.o")
                objects = [Path(folder) / "kernels.o", *_harness(sanitizer, flags)]
                link = ["-shared"] if sanitizer is None else [*flags.link_flags, "-rdynamic", "-ldl"]
                _run([flags.compiler, *map(str, objects), *link, "-o", str(made)])
                made.replace(target)
        os.utime(target)
    return Build(target, names, flags.environment)


def _harness(sanitizer: str | None, flags: Sanitizer) -> list[Path]:
    """The objects of the harness, compiled once for all kernel files."""
    objects = []
    for name in ["simt"] if sanitizer is None else ["simt", "simt_main"]:
        key = key_of(_harness_sources(), repr(flags), compiler_version(flags.compiler))
        target = BUILDS / f"{name}-{key}.o"
        with locked(target):
            if not target.exists():
                partial = target.with_suffix(".partial")
                harness_flags = (*_base_flags(flags), *flags.harness_flags)
                _compile(flags, harness_flags, HARNESS / f"{name}.cpp", partial)
                partial.replace(target)
            os.utime(target)
        objects.append(target)
    return objects


def _base_flags(flags: Sanitizer) -> tuple[str, ...]:
    # -fno-gnu-unique: else all loaded kernel files would share the static variables of templates
    unique = ("-fno-gnu-unique",) if flags.compiler == "g++" else ()
    return ("-std=c++17", "-g1", "-fPIC", "-DSIMT_HOST", f"-I{HARNESS}", *unique)


def _compile(flags: Sanitizer, options: Iterable[str], source: Path, target: Path) -> None:
    _run([flags.compiler, *options, "-c", str(source), "-o", str(target)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{' '.join(command[:1])} failed:\n{done.stderr[-4000:]}")


def _sources(folder: Path, endings: set[str]) -> bytes:
    """Names and bytes of all files below a folder with these endings."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in endings)
    return b"".join(f"{path}\0".encode() + path.read_bytes() + b"\0" for path in files)


def _harness_sources() -> bytes:
    return _sources(HARNESS, {".h", ".cpp"})


def key_of(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:20]


@cache
def compiler_version(compiler: str) -> str:
    if shutil.which(compiler) is None:
        raise BuildError(f"there is no {compiler} here: install it to run the kernels' tests")
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout


class locked:  # noqa: N801
    """Holds the lock of a file that several processes may want to make at once."""

    def __init__(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._file = target.with_name(target.name + ".lock").open("w")

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def remove_old(builds: Path) -> None:
    oldest = time.time() - KEPT_DAYS * 86400
    for path in builds.iterdir():
        with suppress(FileNotFoundError):  # another process has renamed or removed it
            found = path.stat()
            if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest:
                path.unlink()
