"""A build is made once, renewed when anything it includes changes, and refused with a reason."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from host_build import HARNESS, KERNELS, BuildError, build, remove_old

KERNEL = '#include "cuda/here.cuh"\nextern "C" __global__ void k(int* out) { *out = VALUE; }\n'


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A folder of kernels, cuda/k.cu, which includes cuda/here.cuh."""
    folder = tmp_path / "kernels"
    (folder / "cuda").mkdir(parents=True)
    shutil.copy(KERNELS / "integers.h", folder)
    shutil.copy(KERNELS / "cuda" / "prelude.cuh", folder / "cuda")
    (folder / "cuda" / "here.cuh").write_text("#define VALUE 1\n")
    (folder / "cuda" / "k.cu").write_text(KERNEL)
    return folder


def test_build_is_used_again_until_an_included_file_changes(kernels: Path, tmp_path: Path) -> None:
    source, builds = kernels / "cuda" / "k.cu", tmp_path / "builds"
    first = build(source, None, kernels, builds)
    assert first.kernels == ("k",) and build(source, None, kernels, builds) == first
    (kernels / "cuda" / "here.cuh").write_text("#define VALUE 2\n")
    second = build(source, None, kernels, builds)
    assert second.path != first.path and first.path.exists()


def test_old_builds_are_removed(kernels: Path, tmp_path: Path) -> None:
    source, builds = kernels / "cuda" / "k.cu", tmp_path / "builds"
    first = build(source, None, kernels, builds)
    os.utime(first.path, (0, 0))
    (kernels / "cuda" / "here.cuh").write_text("#define VALUE 2\n")
    build(source, None, kernels, builds)
    assert not first.path.exists()


def test_file_that_another_process_removes_meanwhile_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (0, 0))
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / "gone", folder / "old"]))
    remove_old(tmp_path)
    assert not (tmp_path / "old").exists()


def test_two_processes_that_build_the_same_at_once_both_get_it(kernels: Path, tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from host_build import build\n"
    program += "s, k, b = map(Path, sys.argv[1:]); print(build(s, None, k, b).path)"
    command = [sys.executable, "-c", program, kernels / "cuda" / "k.cu", kernels, tmp_path / "builds"]
    both = [subprocess.Popen(command, cwd=HARNESS, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=240)[0].strip() for process in both}
    assert len(paths) == 1 and Path(paths.pop()).exists()


def test_source_that_does_not_compile_is_refused_with_the_compilers_words(
    kernels: Path, tmp_path: Path
) -> None:
    (kernels / "cuda" / "k.cu").write_text(KERNEL.replace("VALUE", "value"))
    with pytest.raises(BuildError, match=r".value. was not declared"):
        build(kernels / "cuda" / "k.cu", None, kernels, tmp_path / "builds")


def test_source_without_a_kernel_is_refused(kernels: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=re.escape("here.cuh has no kernel")):
        build(kernels / "cuda" / "here.cuh", None, kernels, tmp_path / "builds")
