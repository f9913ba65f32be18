"""No two threads use the same memory unguarded: the pools and all that reads, under ThreadSanitizer."""

import subprocess
from pathlib import Path

import pytest
from sanitized_build import KERNELS, THREAD, build_program

TESTS = Path(__file__).resolve().parent
READING = (
    *(
        "edge_draw.cpp",
        "encode_rows.cpp",
        "gather*.cpp",
        "read*.cpp",
        "sample*.cpp",
        "simd*.cpp",
        "thread*.cpp",
    ),
    *(
        "ibp_*.cpp",
        "ibp2_codec.cpp",
        "ibp2_fields*.cpp",
        "ibp2_lanes.cpp",
        "ibp2_neon.cpp",
        "ibp2_params.cpp",
        "ibp2_portable.cpp",
    ),
)
VECTORS = ("ibp2_avx*.cpp",)
"""Of row format version 2: half the time that all takes to compile."""


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
@pytest.mark.parametrize(
    ("num_rounds", "needed", "flags"),
    [
        pytest.param(4, READING, ("-DPORTABLE_IBP2",), id="few rounds"),
        pytest.param(400, READING + VECTORS, (), id="many rounds", marks=pytest.mark.slow),
    ],
)
def test_threads_that_read_at_once_do_not_race(
    num_rounds: int, needed: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    kernels = sorted(path.name for pattern in needed for path in (KERNELS / "cpu").glob(pattern))
    program = build_program(TESTS / "race_kernels.cpp", kernels, THREAD + flags)
    run = subprocess.run([program, str(num_rounds)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-8000:]
