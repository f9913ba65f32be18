"""The checks of the kernels find every fault that is planted in them, and none in the kernels as they are."""

import os
import subprocess
import sys

import pytest
from host_build import HARNESS, ROOT
from mutants import MUTANTS

QUICK = ("width off by one", "unmasked lanes before the row", "short: no barrier before a slot is read")


def mutate(*names: str) -> None:
    """In a process of its own, which has no threads when it forks."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, HARNESS / "mutate.py", *names]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" caught by ") == len(names or MUTANTS)


def test_quick_mutants_are_caught() -> None:
    mutate(*QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_mutants_are_caught_and_the_kernels_as_they_are_survive() -> None:
    mutate()


def test_mutants_are_many_and_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
