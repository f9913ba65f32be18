"""The kernels built with AddressSanitizer and UBSan, which end a program at the first access outside of an
array: for programs in C++, and as the extension for programs in Python.

Objects are kept below build/ and used again as long as nothing below kernels/ changes.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nanobind
from host_build import BuildError, compiler_version, key_of, locked, remove_old

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
KERNELS = ROOT / "kernels"
BUILDS = ROOT / "build" / "sanitized"
COMPILER = "g++"

ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREAD = ("-fsanitize=thread",)
PLAIN = ("-std=c++20", "-O0", "-g1", "-fPIC", "-pthread", "-fvisibility=hidden", f"-I{KERNELS}")
"""The same for programs and for the extension, which share the objects of the kernels."""
EMULATION = TESTS / "machines"
EMULATED_AVX512 = ("-DGNN_IBP_EMULATED_AVX512", f"-I{EMULATION}")


@dataclass(frozen=True)
class Unit:
    """A source file and how it is compiled."""

    source: Path
    flags: tuple[str, ...]


def build_program(
    source: Path, kernels: Iterable[str], sanitizer: tuple[str, ...], emulated: Iterable[str] = ()
) -> Path:
    """The program made of `source` and of these files below kernels/cpu, some with AVX-512 emulated."""
    flags = (*PLAIN, *sanitizer)
    units = [Unit(path, flags) for path in (source, *(KERNELS / "cpu" / name for name in kernels))]
    units += [Unit(KERNELS / "cpu" / name, (*flags, *EMULATED_AVX512)) for name in emulated]
    return _linked(source.stem, units, (*sanitizer, "-pthread"))


def build_extension() -> Path:
    """The extension; the binding itself and nanobind are not watched, the kernels are."""
    binding = (*PLAIN, "-fno-strict-aliasing")
    binding += (f"-I{sysconfig.get_paths()['include']}", f"-I{nanobind.include_dir()}")
    binding += (f"-I{Path(nanobind.include_dir()).parent / 'ext' / 'robin_map' / 'include'}",)
    units = [Unit(Path(nanobind.source_dir()) / "nb_combined.cpp", binding)]
    bindings = [KERNELS / "bindings.cpp", *sorted((KERNELS / "bindings").glob("*.cpp"))]
    units += [Unit(path, binding) for path in bindings]
    units += [Unit(path, (*PLAIN, *ADDRESS)) for path in sorted((KERNELS / "cpu").glob("*.cpp"))]
    return _linked("_kernels", units, (*ADDRESS, "-shared", "-pthread"))


def python_with(
    extension: Path, script: Path, arguments: Sequence[str]
) -> tuple[list[str], Mapping[str, str]]:
    """The command that runs `script` with this extension in the place of the installed one, and its
    environment: the runtime of AddressSanitizer comes first in every process, and libstdc++ beside it."""
    runtimes = [_found("libasan.so"), _found("libstdc++.so")]
    paths = [ROOT, TESTS, script.parent]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "GNN_IBP_TESTED_KERNELS": str(extension),
    }
    return [sys.executable, str(TESTS / "with_kernels.py"), str(script), *arguments], environment


def _found(library: str) -> str:
    return subprocess.run(
        [COMPILER, f"-print-file-name={library}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _linked(name: str, units: Sequence[Unit], link: tuple[str, ...]) -> Path:
    folders = (KERNELS, EMULATION)
    headers = b"".join(path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.h")))
    keys = [
        key_of(headers, unit.source.read_bytes(), repr(unit), compiler_version(COMPILER)) for unit in units
    ]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(_compiled, units, keys))
    target = BUILDS / f"{name}-{key_of(repr(link), *keys)}"
    _make(target, [*link, *map(str, objects)])
    return target


def _compiled(unit: Unit, key: str) -> Path:
    target = BUILDS / f"{unit.source.stem}-{key}.o"
    _make(target, [*unit.flags, "-c", str(unit.source)])
    return target


def _make(target: Path, arguments: list[str]) -> None:
    with locked(target):
        if not target.exists():
            remove_old(BUILDS)
            partial = target.with_name(f"{target.name}.partial")
            done = subprocess.run([COMPILER, *arguments, "-o", str(partial)], capture_output=True, text=True)
            if done.returncode:
                raise BuildError(f"{target.name}: {done.stderr[-4000:]}")
            partial.replace(target)
        os.utime(target)
