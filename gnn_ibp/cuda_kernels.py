"""CUDA kernels, compiled on the user's machine by CuPy when they are launched first."""

import hashlib
import re
import threading
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels"
"""The folder of all kernel sources; `#include "…"` in them is relative to it."""

_LOG_LINES = 30

_INCLUDE = re.compile(r"""^\s*#\s*include\s*["<]([^">]+)""", re.MULTILINE)

_compiled: dict[tuple[int, str, str], Any] = {}
_lock = threading.Lock()


def compile_options(kernels: Path, source: str) -> tuple[str, ...]:
    """What NVRTC is told about a kernel file's text, beside what CuPy adds.

    CuPy keeps compiled kernels between runs under a key that covers the source it is given and the options,
    but no included file: a macro named after all of these makes a change of any of them a new key.
    """
    digest = hashlib.sha256()
    for path in included_files(kernels, source):
        digest.update(f"{path.relative_to(kernels)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return ("-std=c++17", f"-I{kernels}", f"-DGNN_IBP_SOURCES_{digest.hexdigest()[:32]}")


def included_files(kernels: Path, source: str) -> list[Path]:
    """What a kernel file's text includes of the folder `kernels`, and what these files do, and so on, sorted.

    Conditions around an `#include` are not looked at: a file too many costs no more than a compilation.
    """
    found: set[Path] = set()
    texts = [(kernels, source)]
    while texts:
        folder, text = texts.pop()
        names = _INCLUDE.findall(text)
        new = {path for name in names for path in (kernels / name, folder / name) if path.is_file()} - found
        found |= new
        texts += [(path.parent, path.read_text()) for path in new]
    return sorted(found)


def kernel_of(cupy: Any, device_index: int, module: str, name: str) -> Any:
    """The `cupy.RawKernel` `name` of kernels/cuda/MODULE.cu, compiled once per process and device.

    The device must be the current one. Raises RuntimeError with the end of the compiler's log.
    """
    key = (device_index, module, name)
    if key in _compiled:
        return _compiled[key]
    with _lock:
        if key not in _compiled:
            source = (KERNELS / "cuda" / f"{module}.cu").read_text()
            try:
                options = compile_options(KERNELS, source)
                raw_module = cupy.RawModule(code=source, options=options, backend="nvrtc")
                _compiled[key] = raw_module.get_function(name)
            except Exception as error:  # CuPy's have no common base: CompileException, CUDADriverError, …
                log = "\n".join(str(error).strip().splitlines()[-_LOG_LINES:])
                raise RuntimeError(
                    f"compiling kernel {name} of kernels/cuda/{module}.cu with CuPy {cupy.__version__} "
                    f"failed: {type(error).__name__}: {log}"
                ) from error
    return _compiled[key]
