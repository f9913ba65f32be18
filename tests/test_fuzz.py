"""The codec under AddressSanitizer and UBSan: nothing outside of a row and its padding is touched."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import ADDRESS, KERNELS, build_program

TESTS = Path(__file__).resolve().parent
EMULATED = {"ibp_avx512.cpp", "simd_level.cpp"}
CODECS = {path.name for path in (KERNELS / "cpu").glob("ibp_*.cpp")}


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
def test_damaged_rows_never_make_the_kernels_read_or_write_outside() -> None:
    kernels = sorted({"gather_decode.cpp", "thread_pool.cpp", *CODECS} - EMULATED)
    program = build_program(TESTS / "fuzz_codec.cpp", kernels, ADDRESS, sorted(EMULATED))
    run = subprocess.run([program, "3000"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
