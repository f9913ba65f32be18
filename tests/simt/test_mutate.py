"""A mutant is caught, survives, is not finished in time, or is refused."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from host_build import HARNESS
from host_module import HostModule
from kernel_launch import Options, UnfinishedError
from mutate import Fate, Mutant, MutantError, Outcome, complaints, try_mutant

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


def try_change(old: str, new: str) -> Outcome:
    return try_mutant(Mutant("it", "faults.cu", old, new), check_exchange, SCHEDULES, FAULTS)


def test_fault_is_caught_by_the_first_schedule_that_shows_it() -> None:
    always = BARRIER.replace("^ 33", "^ 32")
    outcome = try_change(BARRIER, always)
    assert outcome.fate is Fate.CAUGHT
    assert outcome.shown_by.startswith("forward: AssertionError: wrong neighbour")
    late = "threadIdx.x == 0 && words[63] == 63 * 3"  # true where thread 63 runs before thread 0
    downwards = f"words[threadIdx.x] = threadIdx.x * 3; out[threadIdx.x] = 3 * (threadIdx.x ^ 33) + ({late});"
    assert try_change(BARRIER, downwards).shown_by.startswith("reverse: AssertionError: wrong neighbour")


def test_change_of_no_effect_survives() -> None:
    outcome = try_change(BARRIER, BARRIER + "  // as before")
    assert (outcome.fate, outcome.shown_by) == (Fate.SURVIVED, "")


def test_crash_is_caught() -> None:
    def crash(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    outcome = try_mutant(MUTANT, crash, SCHEDULES, FAULTS)
    assert (outcome.fate, outcome.shown_by) == (Fate.CAUGHT, "forward: crashes, exit status -9")


def test_check_or_launch_that_does_not_end_in_time_catches_nothing() -> None:
    def loop(*_: object) -> None:
        time.sleep(60)

    def launch(*_: object) -> None:
        raise UnfinishedError("still runs after 120 s")

    for check, limit_s, shown_by in (
        (loop, 0.2, "forward: UnfinishedError: the check still runs after 0.2 s"),
        (launch, 60, "forward: UnfinishedError: still runs after 120 s"),
    ):
        outcome = try_mutant(MUTANT, check, SCHEDULES, FAULTS, limit_s)
        assert (outcome.fate, outcome.shown_by) == (Fate.UNFINISHED, shown_by)


def test_run_complains_of_all_that_is_not_caught() -> None:
    def outcome(name: str, fate: Fate) -> Outcome:
        return Outcome(Mutant(name, "faults.cu", "old", "new"), fate, f"what showed {name}", 1)

    caught, survived = outcome("a", Fate.CAUGHT), outcome("b", Fate.SURVIVED)
    late = [outcome("c", Fate.UNFINISHED), outcome("d", Fate.UNFINISHED)]
    assert list(complaints([caught])) == list(complaints([caught], survived)) == []
    assert list(complaints([caught, survived, *late])) == ["1 survived: b", "2 not finished in time: c, d"]
    for fault in (caught, late[0]):
        (complaint,) = complaints([caught], fault)
        assert complaint.startswith("nothing is proved")
        assert complaint.endswith(fault.shown_by)


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
