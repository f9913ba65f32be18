"""Classes of positions in the fit of row format version 2: by hand, and against the format's words."""

import numpy as np
import pytest
from ibp2_literal_classes import Choice, find_classes_literally

from gnn_ibp.ibp2.classes import Cheapest, Classes, find_classes
from gnn_ibp.ibp2.codebook import Assignment
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.split import Split

BYTES, SIGNED = Split(8, 0, 8), Split(8, 1, 4)
NEGATIVE = 16
"""The sign in a top of `SIGNED`."""


def classes_of(columns: list[list[int]], split: Split) -> Classes:
    return find_classes(TopCounts.of(np.array(columns, np.uint64).T, split.head_bits), split)


def choices(classes: Classes) -> list[Choice]:
    return [Choice(*map(int, one)) for one in zip(*classes.assignment, strict=True)]


@pytest.mark.parametrize("mode", [10, 0, 255])
@pytest.mark.parametrize("step", [-1, 1])
def test_base_is_beside_the_most_frequent_exponent_where_that_is_cheaper(mode: int, step: int) -> None:
    # The others take 2 bits for 0, -1, -2 (or +1, +2) and 4 or more for what else there is: 20 bits in all.
    # So does the first position one beside its mode; at its mode it takes 7 * 2 + 3 * 4.
    others = [10] * 4 + [10 - step] * 3 + [10 - 2 * step] * 3
    first = [mode] * 4 + [(mode + step) % 256] * 3 + [(mode - step) % 256] * 3
    classes = classes_of([first] + [others] * 15, BYTES)
    assert choices(classes) == [Choice((mode + step) % 256, 0, 0)] + [Choice(10, 0, 0)] * 15


@pytest.mark.parametrize("other_sign", [0, NEGATIVE])
def test_sgn_is_the_rarer_sign_where_that_is_cheaper(other_sign: int) -> None:
    # 2 bits for (0, 0), (1, 0) and (0, -1). The first position has these, too, if most of its signs are 1. Of
    # less entropy at as many bits, it is the dearest, and so the first of a class that restarts.
    others = [10] * 4 + [NEGATIVE + 10] * 3 + [9] * 3
    first = [NEGATIVE + 10] * 6 + [10] * 3 + [9]
    columns = [[top ^ other_sign for top in column] for column in [first] + [others] * 15]
    sgn = other_sign // NEGATIVE
    assert choices(classes_of(columns, SIGNED)) == [Choice(10, sgn, 1)] + [Choice(10, sgn, 0)] * 15


def test_empty_classes_restart_with_the_dearest_positions() -> None:
    # All have one entropy, so that the first position shares its class with three others, whose symbols are
    # more frequent: 4 * 2 + 6 * 4 bits. The others leave all classes but that one, the first of equals.
    first, others = [10] * 4 + [5] * 3 + [1] * 3, [10] * 4 + [9] * 3 + [8] * 3
    classes = classes_of([first] + [others] * 15, BYTES)
    assert choices(classes) == [Choice(10, 0, 1)] + [Choice(10, 0, 0)] * 15
    listed = [classes.codebook.leaves[list(code.symbols)].tolist() for code in classes.codebook.codes]
    assert [tops[:3] for tops in listed] == [[0, 254, 255], [0, 247, 251]]


@pytest.mark.parametrize(
    ("rounds", "num_rounds"),
    [
        ([(9, 4), (8, 4), (7, 4), (7, 4), (6, 4)], 4),
        ([(9, 4), (10, 4), (8, 4)], 2),
        ([(9, 3), (9, 4), (8, 4)], 2),  # the sum before a restart counts
        ([(9, 4), (9, 3), (8, 4), (8, 4), (7, 4)], 4),  # a restart is a reason to go on
        ([(9, 3), (8, 2), (8, 2), (7, 2)], 3),  # there is only one
        ([(bits, 4) for bits in range(30, 0, -1)], 16),
        ([(bits, 3) for bits in range(30, 0, -1)], 16),
    ],
)
def test_rounds_end_after_16_or_where_nothing_is_gained(
    rounds: list[tuple[int, int]], num_rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of `rounds`: the bits of all chunks, and how many of the four classes are taken."""
    left = iter(rounds)

    def next_round(_: TopCounts, first: Assignment, *__: object) -> Cheapest:
        bits, num_taken = next(left)
        return Cheapest(first._replace(cls=np.arange(4) % num_taken), np.array([bits, 0, 0, 0]))

    monkeypatch.setattr("gnn_ibp.ibp2.classes._cheapest", next_round)
    classes_of([[1, 2], [1, 3], [1, 4], [1, 5]], BYTES)
    assert len(rounds) - len(list(left)) == num_rounds


@pytest.mark.parametrize("seed", range(40))
def test_classes_are_as_written_position_by_position(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_rows, num_positions = (12, 40) if seed < 10 else rng.integers(1, 13, 2)
    wide = seed % 8 == 2  # more than 32 leaves
    spread = rng.uniform(0, 40 if wide else 3, num_positions)
    e = np.rint(spread * rng.standard_normal((num_rows, num_positions))).astype(np.int64)
    e %= 256 if wide else NEGATIVE
    is_negative = rng.random(e.shape) < rng.choice([0, 0.5, 0.8], num_positions)
    split, tops = (SIGNED, e + NEGATIVE * is_negative) if seed % 2 else (BYTES, e)
    columns = tops.T.tolist()
    classes = classes_of(columns, split)
    found = find_classes_literally(columns, split)
    assert choices(classes) == found.choices
    leaves = classes.codebook.leaves.tolist()
    for code, literal in zip(classes.codebook.codes, found.codes, strict=True):
        assert (code.k1, code.g) == (literal.k1, literal.g)
        listed = [(symbol >> 6, leaves[symbol & 31]) for symbol in code.symbols]
        assert listed == literal.symbols + literal.symbols[-1:] * (len(listed) - len(literal.symbols))
