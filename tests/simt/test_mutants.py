"""The checks of the kernels find every fault that is planted in them, and none in the kernels as they are."""

import os
import subprocess
import sys

import pytest
from host_build import HARNESS, KERNELS, ROOT
from ibp2_mutants import MUTANTS as IBP2_MUTANTS
from mutants import MUTANTS
from mutate import Fate

QUICK = ("width off by one", "unmasked lanes before the row", "short: no barrier before a slot is read")


ALL = {1: MUTANTS, 2: IBP2_MUTANTS}


def mutate(*names: str, version: int = 1) -> None:
    """In a process of its own, which has no threads when it forks."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, HARNESS / "mutate.py", "--version", str(version), *names]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"  {Fate.CAUGHT}: ") == len(names or ALL[version])


def test_quick_mutants_are_caught() -> None:
    mutate(*QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ALL)
def test_all_mutants_are_caught_and_the_kernels_as_they_are_survive(version: int) -> None:
    mutate(version=version)


@pytest.mark.parametrize("version", ALL)
def test_mutants_are_many_and_have_names_and_places_of_their_own(version: int) -> None:
    assert len({mutant.name for mutant in ALL[version]}) == len(ALL[version]) >= 15
    for mutant in ALL[version]:
        assert (KERNELS / mutant.file).read_text().count(mutant.old) == 1, mutant.name
