"""The codecs under AddressSanitizer and UBSan: nothing outside of a row and its padding is touched."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import ADDRESS, KERNELS, build_program

TESTS = Path(__file__).resolve().parent
EMULATED = {"ibp_avx512.cpp", "simd_level.cpp"}


def files(pattern: str) -> set[str]:
    return {path.name for path in (KERNELS / "cpu").glob(pattern)}


PROGRAMS = {
    "fuzz_codec": ({"gather_decode.cpp", "thread_pool.cpp", *files("ibp_*.cpp")} - EMULATED, EMULATED),
    "fuzz_ibp2_codec": (files("ibp2_*.cpp"), set()),
}


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
@pytest.mark.parametrize("name", PROGRAMS)
def test_damaged_rows_never_make_the_kernels_read_or_write_outside(name: str) -> None:
    kernels, emulated = PROGRAMS[name]
    program = build_program(TESTS / f"{name}.cpp", sorted(kernels), ADDRESS, sorted(emulated))
    run = subprocess.run([program, "3000"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
