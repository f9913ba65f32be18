"""The codec under AddressSanitizer and UBSan: nothing outside of a row and its padding is touched."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
KERNELS = TESTS.parent / "kernels"
SOURCES = ["gather_decode.cpp", *sorted(path.name for path in (KERNELS / "cpu").glob("ibp_*.cpp"))]
SOURCES += ["simd_level.cpp", "thread_pool.cpp"]


def test_damaged_rows_never_make_the_kernels_read_or_write_outside(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler here")
    program = tmp_path / "fuzz_codec"
    flags = ["-std=c++20", "-O0", "-pthread", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += ["-DGNN_IBP_EMULATED_AVX512", f"-I{TESTS / 'machines'}"]
    sources = [TESTS / "fuzz_codec.cpp", *(KERNELS / "cpu" / name for name in SOURCES)]
    built = subprocess.run(
        [compiler, *flags, f"-I{KERNELS}", *sources, "-o", program],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    run = subprocess.run([program, "3000"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
