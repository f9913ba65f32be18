"""No two threads use the same memory unguarded: the pools and all that reads, under ThreadSanitizer."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import KERNELS, THREAD, build_program

TESTS = Path(__file__).resolve().parent
OTHERS = ("csc*.cpp", "edge_records.cpp", "fit_*.cpp", "ibp2_counts.cpp", "neighbor_mean.cpp", "relu_*.cpp")
"""Kernels that do not read rows or the topology: sorting, fitting, training."""

VECTORS = ("ibp2_avx*.cpp",)
"""Of row format version 2: half the time that all takes to compile."""


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
@pytest.mark.parametrize(
    ("num_rounds", "left_out", "flags"),
    [
        pytest.param(4, OTHERS + VECTORS, ("-DPORTABLE_IBP2",), id="few rounds"),
        pytest.param(400, OTHERS, (), id="many rounds", marks=pytest.mark.slow),
    ],
)
def test_threads_that_read_at_once_do_not_race(
    num_rounds: int, left_out: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    kernels = [path for path in sorted((KERNELS / "cpu").glob("*.cpp")) if not any(map(path.match, left_out))]
    program = build_program(TESTS / "race_kernels.cpp", [path.name for path in kernels], THREAD + flags)
    run = subprocess.run([program, str(num_rounds)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-8000:]
