"""The codecs under AddressSanitizer and UBSan: nothing outside of a row and its padding is touched."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import ADDRESS, KERNELS, build_program

TESTS = Path(__file__).resolve().parent
EMULATED = {"ibp_avx512.cpp", "ibp2_avx512.cpp", "simd_level.cpp"}


def files(pattern: str) -> set[str]:
    return {path.name for path in (KERNELS / "cpu").glob(pattern)}


PROGRAMS = {
    "fuzz_codec": {"gather_decode.cpp", "thread_pool.cpp", "simd_level.cpp", *files("ibp_*.cpp")},
    "fuzz_ibp2_codec": {"thread_pool.cpp", "simd_level.cpp", *files("ibp2_*.cpp")},
}
ROUNDS = {"fuzz_codec": 3000, "fuzz_ibp2_codec": 1000}


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
@pytest.mark.parametrize("name", PROGRAMS)
def test_damaged_rows_never_make_the_kernels_read_or_write_outside(name: str) -> None:
    kernels = PROGRAMS[name]
    emulated = kernels & EMULATED
    program = build_program(TESTS / f"{name}.cpp", sorted(kernels - emulated), ADDRESS, sorted(emulated))
    run = subprocess.run([program, str(ROUNDS[name])], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
