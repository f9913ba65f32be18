"""What CUDA modules are compiled with: all that they include, and nothing else, changes it."""

import subprocess
from pathlib import Path

import pytest

from gnn_ibp import cuda_kernels


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of kernels: cuda/some.cu, what it includes, and others."""
    texts = {
        "cuda/some.cu": '#include "cuda/first.cuh"\n  #  include <row.h>\n#include "missing.h"\n',
        "cuda/first.cuh": '#include "beside.cuh"\n',
        "cuda/beside.cuh": '#ifdef SOME\n#include "cuda/deep/last.cuh"\n#endif\n#include "cuda/first.cuh"\n',
        "cuda/other.cu": '#include "cuda/other.cuh"\n',
        **dict.fromkeys(("cuda/deep/last.cuh", "row.h", "cuda/other.cuh", "cpu/row.cpp"), ""),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def options_of_some(kernels: Path) -> tuple[str, ...]:
    return cuda_kernels.compile_options(kernels, (kernels / "cuda" / "some.cu").read_text())


@pytest.mark.parametrize("name", ["cuda/first.cuh", "cuda/beside.cuh", "cuda/deep/last.cuh", "row.h"])
def test_changed_header_changes_the_options(sources: Path, name: str):
    seen, text = set(), (sources / name).read_text()
    for more in ("", "int a;", "int b;"):
        (sources / name).write_text(text + more)
        seen.add(options_of_some(sources))
    assert len(seen) == 3
    for options in seen:
        assert options[:2] == ("-std=c++17", f"-I{sources}")
        assert options[2].startswith("-DGNN_IBP_SOURCES_")


@pytest.mark.parametrize("name", ["cuda/other.cu", "cuda/other.cuh", "cpu/row.cpp", "cuda/new.cuh"])
def test_what_a_kernel_does_not_include_leaves_its_options(sources: Path, name: str):
    before = options_of_some(sources)
    (sources / name).write_text("int a;")
    assert options_of_some(sources) == before


@pytest.mark.parametrize(
    "path", sorted((cuda_kernels.KERNELS / "cuda").glob("*.cu")), ids=lambda path: path.stem
)
def test_all_that_a_compiler_includes_is_found(path: Path):
    command = ["g++", "-E", "-M", "-nostdinc", "-D__CUDACC_RTC__", f"-I{cuda_kernels.KERNELS}", "-xc++"]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    wanted = {Path(word).resolve() for word in done.stdout.split() if word.endswith((".h", ".cuh"))}
    found = {name.resolve() for name in cuda_kernels.included_files(cuda_kernels.KERNELS, path.read_text())}
    assert found == wanted
