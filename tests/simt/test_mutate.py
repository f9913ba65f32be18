"""A mutant is caught, survives, or is refused: never something between."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from host_build import HARNESS
from host_module import HostModule
from kernel_launch import Options
from mutate import Mutant, MutantError, try_mutant

SCHEDULES = [(None, Options()), (None, Options(order="reverse"))]
FAULTS = HARNESS / "kernels"  # stands for the folder of kernels
BARRIER = """words[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  out[threadIdx.x] = words[threadIdx.x ^ 33];"""
MUTANT = Mutant("it", "faults.cu", BARRIER, "")


def check_exchange(kernels: Path, sanitizer: str | None, options: Options) -> None:
    out = np.zeros(64, np.uint32)
    HostModule(kernels / "faults.cu").launch("ok_exchange", 1, 64, [out], options)
    assert out.tolist() == [3 * (i ^ 33) for i in range(64)], "wrong neighbour"


def try_change(old: str, new: str) -> str | None:
    return try_mutant(Mutant("it", "faults.cu", old, new), check_exchange, SCHEDULES, FAULTS).caught_by


def test_fault_is_caught_by_the_first_schedule_that_shows_it() -> None:
    always = BARRIER.replace("^ 33", "^ 32")
    assert str(try_change(BARRIER, always)).startswith("forward: AssertionError: wrong neighbour")
    late = "threadIdx.x == 0 && words[63] == 63 * 3"  # true where thread 63 runs before thread 0
    downwards = f"words[threadIdx.x] = threadIdx.x * 3; out[threadIdx.x] = 3 * (threadIdx.x ^ 33) + ({late});"
    assert str(try_change(BARRIER, downwards)).startswith("reverse: AssertionError: wrong neighbour")


def test_change_of_no_effect_survives() -> None:
    assert try_change(BARRIER, BARRIER + "  // as before") is None


def test_crash_and_endless_loop_are_caught() -> None:
    def crash(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def loop(*_: object) -> None:
        time.sleep(60)

    assert try_mutant(MUTANT, crash, SCHEDULES, FAULTS).caught_by == "forward: crashes, exit status -9"
    assert try_mutant(MUTANT, loop, SCHEDULES, FAULTS, 0.2).caught_by == "forward: does not end in 0.2 s"


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (Mutant("it", "faults.cu", "no such text", ""), r"its old text occurs 0 times in faults.cu"),
        (Mutant("it", "faults.cu", "__syncthreads();", ""), r"its old text occurs \d\d times in faults.cu"),
        (Mutant("it", "faults.cu", BARRIER, "nothing();"), r"(?s)proves nothing: BuildError.*nothing"),
        (Mutant("it", "other.cu", "a", "b"), r"there is no kernels/other.cu"),
    ],
)
def test_mutant_that_cannot_be_tried_is_refused(mutant: Mutant, message: str) -> None:
    with pytest.raises(MutantError, match=message):
        try_mutant(mutant, check_exchange, SCHEDULES, FAULTS)
