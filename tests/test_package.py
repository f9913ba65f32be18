"""The built wheel works in an empty environment outside the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import nvrtc
import pytest

pytestmark = pytest.mark.timeout(900)  # a whole build, on a busy machine

ROOT = Path(__file__).resolve().parents[1]
READING = """
import sys
from gnn_ibp.train.start import main
assert main(["info", "small"]) == main(["verify", "small"]) == 0
assert "torch_geometric" not in sys.modules, "takes seconds to load, and only training needs it"
"""


def run(*command: str | Path, cwd: Path) -> str:
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=outside, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # no build isolation: what builds the package is among the development packages
    run(
        *(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation"),
        *("--quiet", "--disable-pip-version-check", "--no-cache-dir", "--wheel-dir", folder),
        *("--config-settings", f"build-dir={folder / 'build'}"),
        *("--config-settings", "cmake.build-type=Debug"),  # compiled sooner: what is optimised
        *("--config-settings", "cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0"),  # is what all other tests run
        cwd=folder,
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def empty_venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment that holds the wheel; only its dependencies come from this one."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    run(
        *(sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "install", "--quiet"),
        *("--disable-pip-version-check", "--no-deps", wheel),
        cwd=folder,
    )
    # a path file names the folder without running the path files in it, an editable gnn_ibp among them
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_wheel_has_one_top_level_name_and_carries_kernels_and_configs(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"gnn_ibp"}
    for name in (
        "gnn_ibp/py.typed",
        "gnn_ibp/kernels/ibp_row.h",
        "gnn_ibp/kernels/bindings.cpp",
        "gnn_ibp/configs/synthetic.toml",
        "gnn_ibp/samplers/__init__.py",
        "gnn_ibp/train/run.py",
    ):
        assert name in names


def test_installed_cuda_kernels_compile(empty_venv: Path):
    try:
        nvrtc.version()
    except nvrtc.NvrtcMissingError as missing:
        pytest.skip(str(missing))
    (kernels,) = empty_venv.parent.glob("lib/python*/site-packages/gnn_ibp/kernels")
    assert nvrtc.modules(kernels) == nvrtc.modules()
    for path in kernels.rglob("*.*"):
        assert path.read_bytes() == (ROOT / "kernels" / path.relative_to(kernels)).read_bytes()
    # one that includes the headers; the same bytes in the checkout are compiled one and all by tests/nvrtc
    assert nvrtc.compile_module("gather_decode_w64", "compute_90", kernels).warnings == []


def test_extension_is_not_linked_to_torch(wheel: Path):
    (name,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so"))
    library = zipfile.ZipFile(wheel).read(name)
    assert b"libtorch" not in library
    assert b"libc10" not in library


def test_installed_wheel_converts_trains_and_verifies(empty_venv: Path, tmp_path: Path):
    where = run(empty_venv / "python", "-c", "import gnn_ibp; print(gnn_ibp.__file__)", cwd=tmp_path)
    assert where.startswith(str(empty_venv.parent))
    gnn_ibp = empty_venv / "gnn-ibp"
    run(gnn_ibp, "convert", "synthetic:2000", "small", cwd=tmp_path)
    assert "saved" in run(empty_venv / "python", "-c", READING, cwd=tmp_path)
    run(
        *(gnn_ibp, "train", "--dataset", "synthetic:2000", "--root", "data", "--epochs", "1"),
        *("--report", "report.json"),
        cwd=tmp_path,
    )
    assert '"hit_rate"' in (tmp_path / "report.json").read_text()
