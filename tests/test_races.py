"""No two threads use the same memory unguarded: the pools and all that reads, under ThreadSanitizer."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import KERNELS, THREAD, build_program

TESTS = Path(__file__).resolve().parent
NEEDED = ("edge_draw.cpp", "gather*.cpp", "ibp_*.cpp", "read*.cpp", "sample*.cpp", "simd*.cpp", "thread*.cpp")


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
@pytest.mark.parametrize("num_rounds", [4, pytest.param(400, marks=pytest.mark.slow)])
def test_threads_that_read_at_once_do_not_race(num_rounds: int) -> None:
    kernels = sorted(path.name for pattern in NEEDED for path in (KERNELS / "cpu").glob(pattern))
    program = build_program(TESTS / "race_kernels.cpp", kernels, THREAD)
    run = subprocess.run([program, str(num_rounds)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-8000:]
