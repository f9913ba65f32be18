"""`make gpu-check` where there is no GPU: it builds, says what is missing, and never seems to have worked."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests" / "gpu" / "check.py"


@pytest.fixture
def check(tmp_path: Path) -> ModuleType:
    """The script as a module that writes into a folder of the test."""
    spec = importlib.util.spec_from_file_location("gpu_check", CHECK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BUILD = tmp_path / "build"
    return module


def script(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(CHECK), *flags], capture_output=True, text=True)


def test_help_tells_every_stage_and_option():
    told = script("--help").stdout
    for word in (
        "build ",
        "device ",
        "tests ",
        "rows ",
        "epoch ",
        "--skip",
        "--wheels",
        "--headers",
        "--minutes",
    ):
        assert f"  {word}" in told


def test_missing_packages_are_named_with_the_remedy(check: ModuleType):
    check.NEEDED = {"numpy": "numpy", "no_such_module": "no-such-package"}
    with pytest.raises(check.StageError, match=r"missing: no-such-package; install .* wheels along"):
        check.environment(None)


def test_wheels_bring_what_is_missing(check: ModuleType, tmp_path: Path):
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "no_such_module-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("no_such_module/__init__.py", "value = 5\n")
    check.NEEDED = {"no_such_module": "no-such-package"}
    outside = check.environment(tmp_path / "wheels")
    done = subprocess.run(
        [sys.executable, "-c", "import no_such_module, gnn_ibp; print(no_such_module.value)"],
        env=outside,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout == "5\n", done.stderr
    with pytest.raises(check.StageError, match=r"--wheels .* is no folder"):
        check.environment(tmp_path / "missing")


def test_failed_stage_is_told_and_fails_the_check(check: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd):
    ran = []

    def run(command: list[str], *_: object) -> None:
        ran.append(command[1])
        if command[1] == "-m":
            raise check.StageError("exit status 1")

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "environment", lambda wheels: dict(os.environ))
    monkeypatch.setattr(sys, "argv", ["check.py", "--skip", "build"])
    with pytest.raises(SystemExit, match="gpu-check: tests failed"):
        check.main()
    assert ran == ["-c", "-m", "tests/bench/bench_gpu.py", "tests/bench/bench_gpu_epoch.py"]
    assert "gpu-check: tests FAILED: exit status 1" in capfd.readouterr().out


def test_without_a_device_nothing_else_is_tried(check: ModuleType, monkeypatch: pytest.MonkeyPatch):
    ran = []

    def run(command: list[str], *_: object) -> None:
        ran.append(command[1])
        raise check.StageError("exit status 1")

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "environment", lambda wheels: dict(os.environ))
    monkeypatch.setattr(sys, "argv", ["check.py", "--skip", "build"])
    with pytest.raises(SystemExit, match="gpu-check: device failed"):
        check.main()
    assert ran == ["-c"]


def test_stage_that_takes_too_long_is_stopped(check: ModuleType):
    with pytest.raises(check.StageError, match="no time was left"):
        check.run([sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), deadline=0)


def test_stale_extension_is_built_again(check: ModuleType, tmp_path: Path):
    library = tmp_path / "library.so"
    assert check.is_old(library)
    library.touch()
    assert not check.is_old(library)
    os.utime(library, (1, 1))
    assert check.is_old(library)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # every one of them
def test_the_tests_on_a_gpu_pass_on_the_harness():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/gpu", "-p", "no:cacheprovider"],
        env={**os.environ, "GNN_IBP_GPU": "simt"},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a whole build
def test_extension_is_built_by_the_compiler_alone(check: ModuleType, tmp_path: Path):
    library = tmp_path / check.extension().name
    check.build(library, check.nanobind_folder(dict(os.environ)), None)
    code = f"""
import importlib.util, numpy as np
spec = importlib.util.spec_from_file_location("_kernels", {str(library)!r})
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
print(kernels.num_threads() > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_headers_that_are_missing_are_told(check: ModuleType, tmp_path: Path):
    with pytest.raises(check.StageError, match=r"Python.h: install python3-dev, or give --headers DIR"):
        check.build(tmp_path / "library.so", tmp_path, tmp_path)
