"""Positions of a row in row format version 2: what belongs to each, as arrays; a row may have millions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray


class Position(NamedTuple):
    """What belongs to one position of a row; to all of them in kind S."""

    cls: int
    sgn: int
    base: int


class Positions(Sequence[Position]):
    """cls, sgn: int64; base: uint64; (n,) each, not to be changed. Equal to any sequence of the same."""

    def __init__(self, cls: NDArray[np.int64], sgn: NDArray[np.int64], base: NDArray[np.uint64]) -> None:
        self.cls, self.sgn, self.base = cls, sgn, base

    @classmethod
    def of(cls, positions: Iterable[Position]) -> "Positions":
        """Itself where it is one already."""
        if isinstance(positions, Positions):
            return positions
        listed = list(positions)
        numbers = (np.array([p.cls for p in listed], np.int64), np.array([p.sgn for p in listed], np.int64))
        return cls(*numbers, np.array([p.base for p in listed], np.uint64))

    def __len__(self) -> int:
        return len(self.base)

    @overload
    def __getitem__(self, j: int) -> Position: ...
    @overload
    def __getitem__(self, j: slice) -> "Positions": ...
    def __getitem__(self, j: int | slice) -> "Position | Positions":
        if isinstance(j, slice):
            return Positions(self.cls[j], self.sgn[j], self.base[j])
        return Position(int(self.cls[j]), int(self.sgn[j]), int(self.base[j]))

    def __iter__(self) -> Iterator[Position]:
        return map(Position, self.cls.tolist(), self.sgn.tolist(), self.base.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(other) != len(self):
            return False
        others = Positions.of(other)
        pairs = ((self.cls, others.cls), (self.sgn, others.sgn), (self.base, others.base))
        return all(np.array_equal(*pair) for pair in pairs)

    def __hash__(self) -> int:
        return hash((self.cls.tobytes(), self.sgn.tobytes(), self.base.tobytes()))
