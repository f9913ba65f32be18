"""Everything that needs a GPU, by one command and without a network: `make gpu-check`.

  build    compiles the extension for this Python into gnn_ibp/, by g++ alone, if a source is newer than it
  device   opens the GPU, and says what it is and which versions use it
  tests    runs tests/gpu by pytest
  rows     measures decoded rows per second (tests/bench/bench_gpu.py --help explains the table)
  epoch    measures an epoch of training, raw against compressed (tests/bench/bench_gpu_epoch.py --help)

Every stage runs in a process of its own, with this checkout on its path: nothing is installed, and what is
written lies below build/, apart from the extension. Where tests or a measurement fail the next stages run
still; the exit status tells. All of it should take about four minutes the first time and three later, where
there are eight processors or more (estimated from its parts, timed without a GPU); it is stopped after
--minutes.

It needs Python 3.11 or later with its headers (python3-dev), g++ 11 or later, and the packages torch (built
with CUDA), cupy (14, for the same CUDA), torch-geometric, numpy, xxhash, nanobind (its sources) and pytest.
tyro is wanted by the test of a run from the command line, which is skipped without it; ogb, cmake, ninja and
tqdm are not needed. What is missing can be brought along from where there is a network:

  pip download --no-deps -d wheels tyro docstring_parser typeguard

(with --python-version and --platform where the machine's are others) and `check.py --wheels wheels`: the
files are unpacked below build/ and come last on the path.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "gpu-check"
STAGES = ("build", "device", "tests", "rows", "epoch")
NEEDED = {
    "torch": "torch",
    "cupy": "cupy-cuda13x",
    "torch_geometric": "torch-geometric",
    "numpy": "numpy",
    "xxhash": "xxhash",
    "nanobind": "nanobind",
    "pytest": "pytest",
}
"""Modules, and the packages that bring them."""

ABOUT = """
import os, platform, torch, cupy, torch_geometric
from gnn_ibp.cuda import Cuda
print(f"Python {platform.python_version()}, torch {torch.__version__}, CuPy {cupy.__version__},"
      f" PyG {torch_geometric.__version__}, {len(os.sched_getaffinity(0))} processors")
problem = Cuda.available()
if problem:
    raise SystemExit(problem)
major, minor = torch.cuda.get_device_capability()
print(f"{torch.cuda.get_device_name()}, compute capability {major}.{minor},"
      f" {torch.cuda.mem_get_info()[1] / 2**30:.0f} GiB")
"""


class StageError(Exception):
    """A stage that did not work; the message says why."""


def main() -> None:
    args = _parser().parse_args()
    deadline = time.monotonic() + 60 * args.minutes
    try:
        outside = environment(args.wheels)
    except StageError as error:
        sys.exit(f"gpu-check: {error}")
    failed = []
    for stage in STAGES:
        if stage not in args.skip and not works(stage, outside, deadline, args.headers):
            failed.append(stage)
            if stage in ("build", "device"):
                break  # without these the others cannot work
    if failed:
        sys.exit(f"gpu-check: {', '.join(failed)} failed")


def works(stage: str, outside: dict[str, str], deadline: float, headers: Path | None) -> bool:
    """Runs a stage and says how it went."""
    began = time.monotonic()
    print(f"gpu-check: {stage} …", flush=True)
    try:
        run_stage(stage, outside, deadline, headers)
        result = "done"
    except StageError as error:
        result = f"FAILED: {error}"
    print(f"gpu-check: {stage} {result} ({time.monotonic() - began:.0f} s)", flush=True)
    return result == "done"


def run_stage(stage: str, outside: dict[str, str], deadline: float, headers: Path | None) -> None:
    """Raises StageError where the stage does not work, or is not done by the deadline."""
    if stage == "build":
        if is_old(extension()):
            build(extension(), nanobind_folder(outside), headers)
        return
    commands = {
        "device": ["-c", ABOUT],
        "tests": ["-m", "pytest", "tests/gpu", "-p", "no:cacheprovider"],
        "rows": ["tests/bench/bench_gpu.py", "--json", str(BUILD / "rows.json")],
        "epoch": ["tests/bench/bench_gpu_epoch.py", "--json", str(BUILD / "epoch.json")],
    }
    run([sys.executable, *commands[stage]], outside, deadline)


def environment(wheels: Path | None) -> dict[str, str]:
    """For the stages' processes. Raises StageError naming packages that are neither here nor in `wheels`."""
    BUILD.mkdir(parents=True, exist_ok=True)
    unpacked = BUILD / "wheels"
    shutil.rmtree(unpacked, ignore_errors=True)
    if wheels is not None and not wheels.is_dir():
        raise StageError(f"--wheels {wheels} is no folder")
    for wheel in sorted(wheels.glob("*.whl")) if wheels else []:
        zipfile.ZipFile(wheel).extractall(unpacked)
    missing = [
        package
        for module, package in NEEDED.items()
        if not (importlib.util.find_spec(module) or (unpacked / module).exists())
    ]
    if missing:
        raise StageError(
            f"missing: {', '.join(missing)}; install what is missing (pip install '.[cuda13]' brings CuPy; "
            "torch must be a build with CUDA), or bring wheels along with --wheels (see --help)"
        )
    path = os.pathsep.join([str(ROOT), str(unpacked)])
    return {"CUPY_CACHE_DIR": str(BUILD / "cupy"), **os.environ, "PYTHONPATH": path}


def run(command: list[str], outside: dict[str, str], deadline: float) -> None:
    """Runs it in the checkout, its output shown. Raises StageError."""
    seconds = max(1.0, deadline - time.monotonic())
    try:
        status = subprocess.run(command, cwd=ROOT, env=outside, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        raise StageError("no time was left (--minutes)") from None
    if status:
        raise StageError(f"exit status {status}")


# ---- the extension ----------------------------------------------------------------------------------------


def extension() -> Path:
    """Where this Python looks for it."""
    return ROOT / "gnn_ibp" / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"


def is_old(library: Path) -> bool:
    """Whether a source is newer than the library, or there is none."""
    sources = [path for path in (ROOT / "kernels").rglob("*") if path.suffix in (".h", ".cpp")]
    return not library.exists() or library.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def nanobind_folder(outside: dict[str, str]) -> Path:
    """Where the package lies, here or among the wheels."""
    command = [sys.executable, "-c", "import nanobind; print(nanobind.__path__[0])"]
    found = subprocess.run(command, env=outside, capture_output=True, text=True)
    if found.returncode:
        raise StageError(f"nanobind cannot be imported: {found.stderr.strip()}")
    return Path(found.stdout.strip())


def build(library: Path, nanobind: Path, headers: Path | None) -> None:
    """Compiles the extension, all files at once. Raises StageError with the compiler's message."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise StageError("there is no g++: install it, or set CXX")
    python = headers or Path(sysconfig.get_paths()["include"])
    if not (python / "Python.h").exists():
        raise StageError(f"there is no {python / 'Python.h'}: install python3-dev, or give --headers DIR")
    folders = [python, ROOT / "kernels", nanobind / "include", nanobind / "ext" / "robin_map" / "include"]
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-pthread"]
    flags += ["-fno-strict-aliasing", "-DNB_COMPACT_ASSERTIONS", *(f"-I{folder}" for folder in folders)]
    sources = [nanobind / "src" / "nb_combined.cpp", ROOT / "kernels" / "bindings.cpp"]
    sources += sorted((ROOT / "kernels" / "bindings").glob("*.cpp"))
    sources += sorted((ROOT / "kernels" / "cpu").glob("*.cpp"))
    objects = [BUILD / f"{source.parent.name}-{source.stem}.o" for source in sources]

    def compiled(source: Path, target: Path) -> None:
        # the bindings are many templates that run once per call: made small, they compile in half the time
        small = ["-Os"] if source.parent.name == "bindings" or source.stem == "nb_combined" else []
        _call([compiler, *flags, *small, "-c", str(source), "-o", str(target)])

    BUILD.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(compiled, sources, objects))
    partial = BUILD / library.name
    _call([compiler, "-shared", "-pthread", *map(str, objects), "-o", str(partial)])
    shutil.move(partial, library)


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise StageError(f"{' '.join(command)}\n{done.stderr[-3000:]}")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    add = parser.add_argument
    add("--skip", nargs="+", choices=STAGES, default=[], metavar="STAGE", help="leave out stages")
    add("--wheels", type=Path, metavar="DIR", help="packages that are missing here, as wheels")
    add("--headers", type=Path, metavar="DIR", help="the folder of Python.h, if it is elsewhere")
    add("--minutes", type=float, default=5.0, help="for all stages together (default: 5)")
    return parser


if __name__ == "__main__":
    main()
