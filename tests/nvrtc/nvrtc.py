"""Compiles kernel files by NVRTC as CuPy does, without CuPy, driver or GPU: errors, warnings, resources.

NVRTC is the library of the package nvidia-cuda-nvrtc; it is called through ctypes.
"""

import ctypes
import hashlib
import importlib.metadata
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gnn_ibp.cuda_kernels import KERNELS, compile_options

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""Ampere, Hopper and Blackwell: what the kernels are made for."""

CUPY_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
"""What CuPy 14 adds to the options it is given, beside the architecture."""

BUILDS = Path(__file__).resolve().parents[2] / "build" / "nvrtc"

_FUNCTION = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for '\w+'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)


class NvrtcMissingError(RuntimeError):
    """There is no NVRTC here."""


class CompileError(RuntimeError):
    """NVRTC refused a source; the message is its log."""


@dataclass(frozen=True)
class Resources:
    """What one thread (registers, local memory) or block (shared memory) of a kernel takes."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class Compiled:
    """A kernel file for one architecture.

    log: NVRTC's and ptxas', in words. resources: by the names of its kernels.
    """

    log: str

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.log.splitlines() if re.search(r"\bwarning\b", line, re.IGNORECASE)]

    @property
    def resources(self) -> dict[str, Resources]:
        return {
            found["name"]: Resources(
                registers=int(found["registers"]),
                shared_bytes=sum(map(int, re.findall(r"(\d+) bytes smem", found["rest"]))),
                stack_bytes=int(found["stack"]),
                spill_bytes=int(found["stores"]) + int(found["loads"]),
            )
            for found in _FUNCTION.finditer(self.log)
        }


def modules(kernels: Path = KERNELS) -> list[str]:
    """The kernel files there are, by the names that `Cuda.launch` takes."""
    return sorted(path.stem for path in (kernels / "cuda").glob("*.cu"))


def compile_module(module: str, architecture: str, kernels: Path = KERNELS) -> Compiled:
    """kernels/cuda/MODULE.cu for one architecture, or the log of the same sources compiled before."""
    return compile_source((kernels / "cuda" / f"{module}.cu").read_text(), architecture, kernels)


def compile_source(source: str, architecture: str, kernels: Path = KERNELS) -> Compiled:
    """A kernel file's text, which may include what lies in `kernels`. Raises CompileError, NvrtcMissingError.

    The log is kept under a key of the source, all that it includes, options and NVRTC's version.
    """
    ours = compile_options(kernels, source)
    options = (f"-arch={architecture}", *ours, *CUPY_OPTIONS, "--ptxas-options=-v")
    key = hashlib.sha256(repr((source, options, version())).encode()).hexdigest()[:32]
    kept = BUILDS / f"{key}.log"
    if not kept.exists():
        log = _compile(source, options)
        BUILDS.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}.{id(log)}.partial")
        partial.write_text(log)
        partial.replace(kept)
    return Compiled(kept.read_text())


def version() -> str:
    """NVRTC's, such as "13.5"."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def _compile(source: str, options: Sequence[str]) -> str:
    program = ctypes.c_void_p()
    text = ctypes.c_char_p(source.encode())
    _check(_library().nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None))
    try:
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = _library().nvrtcCompileProgram(program, len(options), words)
        num_bytes = ctypes.c_size_t()
        _check(_library().nvrtcGetProgramLogSize(program, ctypes.byref(num_bytes)))
        log = ctypes.create_string_buffer(num_bytes.value)
        _check(_library().nvrtcGetProgramLog(program, log))
    finally:
        _library().nvrtcDestroyProgram(ctypes.byref(program))
    if result:
        raise CompileError(log.value.decode())
    return log.value.decode()


def _check(result: int) -> None:
    if result:
        raise RuntimeError(f"NVRTC: {_library().nvrtcGetErrorString(result).decode()}")


@cache
def _library() -> ctypes.CDLL:
    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [Path(str(file.locate())) for file in files if file.name.startswith("libnvrtc")]
        for path in paths:  # libnvrtc asks for its builtins by name: they must be loaded already
            if path.name.startswith("libnvrtc-builtins.so"):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        for path in paths:
            if path.name.startswith("libnvrtc.so"):
                library = ctypes.CDLL(str(path))
                library.nvrtcGetErrorString.restype = ctypes.c_char_p
                return library
    raise NvrtcMissingError("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
