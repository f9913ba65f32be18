"""The extension and the sources under other versions of Python than this one, where they are installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import nanobind
import pytest
from row_cases import golden_cases, reference_cases

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSIONS = ["3.12", "3.13"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a whole build each


@pytest.mark.parametrize("version", VERSIONS)
def test_extension_encodes_and_decodes_bit_for_bit(version: str, tmp_path: Path):
    python = find_python(version)
    cases = [*golden_cases(), *reference_cases(rows_per_case=20)]
    file = tmp_path / "cases"
    file.write_bytes(b"".join(case.tobytes() for case in cases))
    run = subprocess.run(
        [python, HERE / "check_extension.py", build_extension(python, tmp_path), file],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{len(cases)} cases, {sum(len(case.rows) for case in cases)} rows\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_source_compiles_without_a_warning(version: str, tmp_path: Path):
    folders = [ROOT / name for name in ("gnn_ibp", "samplers", "train")]
    command = [find_python(version), "-W", "error", "-X", f"pycache_prefix={tmp_path}"]
    run = subprocess.run([*command, "-m", "compileall", "-q", "-f", *folders], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(tmp_path.rglob("codec.*.pyc"))


def find_python(version: str) -> str:
    """An interpreter of that version that has its headers; skips the test where there is none."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for python in [sys.executable, shutil.which(f"python{version}"), *map(str, installed)]:
        code = "import sys, sysconfig as s; print('%d.%d' % sys.version_info[:2], s.get_path('include'))"
        if python is None:
            continue
        run = subprocess.run([python, "-c", code], capture_output=True, text=True)
        found, _, include = run.stdout.strip().partition(" ")
        if found == version and (Path(include) / "Python.h").exists():
            return python
    pytest.skip(f"Python {version} was not tested: it is not installed, or without its headers")


def build_extension(python: str, folder: Path) -> Path:
    """The extension as a release builds it, for another Python, by the CMake and nanobind of this one."""
    environment = {
        "PYTHONPATH": str(Path(nanobind.__file__).parents[1]),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    for command in (
        ["cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", f"-DPython_EXECUTABLE={python}"],
        ["cmake", "--build", folder / "build"],
    ):
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert run.returncode == 0, run.stdout + run.stderr
    (extension,) = (folder / "build").glob("_kernels*.so")
    return extension
