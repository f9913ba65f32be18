"""The checks of the gather-decode kernel find every fault that is planted in it."""

import pytest
from gather_check import CHECKS, check_gather
from mutants import MUTANTS
from mutate import Mutant, try_mutant

QUICK = ("width off by one", "unmasked lanes before the row", "short: no barrier before a slot is read")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=mutant.name, marks=() if mutant.name in QUICK else pytest.mark.slow)
        for mutant in MUTANTS
    ],
)
def test_mutant_is_caught(mutant: Mutant) -> None:
    assert try_mutant(mutant, check_gather, CHECKS).caught_by


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_kernel_as_it_is_survives_every_check() -> None:
    unchanged = Mutant("none", MUTANTS[0].file, MUTANTS[0].old, MUTANTS[0].old)
    assert try_mutant(unchanged, check_gather, CHECKS).caught_by is None


def test_mutants_are_many_and_have_names_of_their_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 15
    assert set(QUICK) <= set(names)
