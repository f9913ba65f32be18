"""Mean and scale of each column of float rows, accumulated while the rows go by."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK_BYTES = 2 << 20

Float64 = NDArray[np.float64]

_STATE = ("_shift", "_count", "_sum", "_square", "_num_values", "_num_nonzero")


@dataclass(frozen=True)
class Statistics:
    """mean, scale: float32 (*row_shape), scale the standard deviation, 1 where a column is constant."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]


@dataclass(frozen=True)
class ColumnFacts:
    """What is told of the columns of float features. density: share of the values that are not 0."""

    density: float
    statistics: Statistics


class ColumnStats:
    """Sums of finite values in float64, counted from each column's first one: constants have variance 0."""

    def __init__(self, row_shape: tuple[int, ...]) -> None:
        self._row_shape = row_shape
        columns = int(np.prod(row_shape, dtype=np.int64))
        self._shift: Float64 = np.full(columns, np.nan)
        self._count = np.zeros(columns, np.int64)
        self._sum: Float64 = np.zeros(columns)
        self._square: Float64 = np.zeros(columns)
        self._num_values = self._num_nonzero = 0

    def add(self, rows: NDArray[Any] | Tensor) -> None:
        """Adds a block of rows (n, *row_shape) of a float dtype."""
        if not len(self._sum):  # rows without a value
            return
        step = max(1, CHUNK_BYTES // max(8, 8 * len(self._sum)))
        for first in range(0, len(rows), step):
            self._add(_float64(rows[first : first + step]).reshape(-1, len(self._sum)))

    def state(self) -> dict[str, Any]:
        """Everything that was added so far, for `go_on`."""
        return {name: copy(getattr(self, name)) for name in _STATE}

    def go_on(self, state: dict[str, Any]) -> None:
        """Takes what another one of this shape had added as added."""
        for name in _STATE:
            setattr(self, name, state[name])

    def _add(self, values: Float64) -> None:
        self._num_values += values.size
        self._num_nonzero += int(np.count_nonzero(values))
        if np.isnan(self._shift).any():
            self._find_shift(values)
        with np.errstate(invalid="ignore", over="ignore"):
            moved = values - np.nan_to_num(self._shift)
            total = np.add.reduce(moved, axis=0)
            square = np.einsum("ij,ij->j", moved, moved)
        if np.isfinite(total).all():
            self._count += len(values)
        else:
            finite = np.isfinite(values)
            moved[~finite] = 0
            self._count += finite.sum(axis=0)
            with np.errstate(over="ignore"):
                total, square = moved.sum(axis=0), np.einsum("ij,ij->j", moved, moved)
        self._sum += total
        self._square += square

    def _find_shift(self, values: Float64) -> None:
        finite = np.isfinite(values)
        found = np.isnan(self._shift) & finite.any(axis=0)
        first = finite.argmax(axis=0)
        self._shift[found] = values[first[found], found.nonzero()[0]]

    @property
    def facts(self) -> ColumnFacts:
        """Of what was added so far."""
        return ColumnFacts(self.density, self.result())

    @property
    def density(self) -> float:
        """Share of the values that are not 0; 0 where there are none."""
        return self._num_nonzero / max(1, self._num_values)

    def result(self) -> Statistics:
        """What was added so far; mean 0 and scale 1 for a column without finite values or beyond float32."""
        count = np.maximum(self._count, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            off = self._sum / count
            mean = (np.nan_to_num(self._shift) + off).astype(np.float32)
            scale = np.sqrt(np.maximum(self._square / count - off * off, 0)).astype(np.float32)
        good = np.isfinite(mean) & np.isfinite(scale)
        return Statistics(
            np.where(good, mean, np.float32(0)).reshape(self._row_shape),
            np.where(good & (scale > 0), scale, np.float32(1)).reshape(self._row_shape),
        )


def _float64(rows: NDArray[Any] | Tensor) -> Float64:
    return rows.to(torch.float64).numpy() if isinstance(rows, Tensor) else rows.astype(np.float64)
