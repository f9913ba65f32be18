"""Rows on their way into a feature file: what they are, and how to read them block by block."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.fit_sample import SAMPLE_BYTES, fit_sample_ids
from gnn_ibp.row_type import RowType

Rows = NDArray[Any] | Tensor
"""(num_rows, *row_shape), NumPy or torch; torch alone has bfloat16 and float8."""

BLOCK_BYTES = 8 << 20
LEADING_BYTES = 2 << 30
"""A stream that cannot be entered in the middle is sampled from no more than this many leading bytes."""


@runtime_checkable
class RowStream(Protocol):
    """Rows of one attribute. `num_rows` is None where only the end of the blocks tells it."""

    @property
    def num_rows(self) -> int | None: ...

    @property
    def row_type(self) -> RowType: ...

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        """The rows from number `first_row` on, in order, a few MiB at a time, each in memory of its own.

        From where a block of all rows begins, the same blocks come. A stream that cannot be entered in the
        middle reads what lies before and leaves it out, see `skip_rows`.
        """

    def sample(self, seed: int) -> Rows:
        """Rows to fit a codec on, drawn with `seed`: at most `SAMPLE_BYTES`. To be called before `blocks`."""


@runtime_checkable
class RandomAccessRows(RowStream, Protocol):
    """Rows that can also be read in any order, as those of edges have to be."""

    def take(self, ids: NDArray[np.int64]) -> Rows:
        """The rows `ids`, in this order."""


def block_rows(row_type: RowType) -> int:
    """Rows of a block of about `BLOCK_BYTES`."""
    return max(1, min(BLOCK_BYTES // max(1, row_type.row_bytes), 1 << 20))


def skip_rows(blocks: Iterable[Rows], first_row: int) -> Iterator[Rows]:
    """`blocks` without the first `first_row` rows."""
    for block in blocks:
        if first_row < len(block):
            yield block[first_row:]
        first_row = max(0, first_row - len(block))


def sample_by_pass(stream: RowStream, num_rows: int, seed: int) -> Rows:
    """Random rows of a stream of `num_rows` rows, by one pass over its leading `LEADING_BYTES`."""
    row_type = stream.row_type
    reach = min(num_rows, max(1, LEADING_BYTES // max(1, row_type.row_bytes)))
    ids = fit_sample_ids(reach, row_type.row_bytes, seed)
    taken: list[Rows] = []
    first, at = 0, 0
    for block in stream.blocks():
        until = int(np.searchsorted(ids, first + len(block)))
        if until > at:
            taken.append(block[ids[at:until] - first])
        first, at = first + len(block), until
        if at == len(ids):
            break
    return concatenate(taken) if taken else row_type.empty(0)


def concatenate(blocks: list[Rows]) -> Rows:
    """The blocks as one array."""
    if isinstance(blocks[0], Tensor):
        return torch.cat([torch.as_tensor(block) for block in blocks])
    return np.concatenate([np.asarray(block) for block in blocks])


@dataclass(frozen=True)
class ArrayRows:
    """Rows that lie in an array, in memory or memory-mapped."""

    rows: Rows

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def row_type(self) -> RowType:
        return RowType.of(self.rows)

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        step = block_rows(self.row_type)
        for first in range(first_row, self.num_rows, step):
            yield self.rows[first : first + step]

    def sample(self, seed: int) -> Rows:
        return self.take(fit_sample_ids(self.num_rows, self.row_type.row_bytes, seed))

    def take(self, ids: NDArray[np.int64]) -> Rows:
        return self.rows[torch.from_numpy(ids)] if isinstance(self.rows, Tensor) else self.rows[ids]


class IteratedRows:
    """Rows of an iterator, which runs once. Its leading `SAMPLE_BYTES` are held and give the sample.

    Blocks are copied, some MiB at a time: the iterator may use their memory again, and they may be mapped.
    """

    num_rows = None

    def __init__(self, blocks: Iterable[Rows], what: str) -> None:
        self._what = what
        rest = iter(blocks)
        first = next(rest, None)
        if first is None:
            raise ValueError(f"{what}: there is no block of rows, so what a row looks like is unknown")
        self.row_type = RowType.of(self._checked(first))
        self._leading: list[Rows] = []
        self._rest = self._pieces(chain([first], rest))

    def sample(self, seed: int) -> Rows:
        held = sum(len(piece) for piece in self._leading)
        while held * self.row_type.row_bytes < SAMPLE_BYTES and (piece := next(self._rest, None)) is not None:
            self._leading.append(piece)
            held += len(piece)
        ids = fit_sample_ids(held, self.row_type.row_bytes, seed)
        return ArrayRows(concatenate(self._leading)).take(ids)

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return skip_rows(self._all_pieces(), first_row)

    def _all_pieces(self) -> Iterator[Rows]:
        while self._leading:
            yield self._leading.pop(0)
        yield from self._rest

    def _pieces(self, blocks: Iterable[Rows]) -> Iterator[Rows]:
        step = block_rows(self.row_type)
        for block in blocks:
            rows = self._alike(self._checked(block))
            for first in range(0, max(1, len(rows)), step):  # of no rows one without rows
                piece = rows[first : first + step]
                yield piece.clone() if isinstance(piece, Tensor) else piece.copy()

    def _checked(self, block: Rows) -> Rows:
        return checked_rows(block, f"a block of {self._what}")

    def _alike(self, block: Rows) -> Rows:
        came = RowType.of(block)
        if came != self.row_type:
            raise ValueError(
                f"{self._what}: a block has rows of {came.dtype} {came.shape}, "
                f"the first one has {self.row_type.dtype} {self.row_type.shape}"
            )
        return block


@dataclass(frozen=True)
class TakenRows:
    """Rows of another stream in another order: edges go from the order of the source to that of the CSC."""

    rows: RandomAccessRows
    ids: NDArray[np.int64]

    @property
    def num_rows(self) -> int:
        return len(self.ids)

    @property
    def row_type(self) -> RowType:
        return self.rows.row_type

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        step = block_rows(self.row_type)
        for first in range(first_row, len(self.ids), step):
            yield self.rows.take(np.array(self.ids[first : first + step]))  # they may be memory-mapped

    def sample(self, seed: int) -> Rows:
        return self.rows.sample(seed)


def checked_rows(rows: object, what: str) -> Rows:
    """`rows` as an array of rows in native byte order; TypeError for anything else."""
    if isinstance(rows, Tensor):
        if rows.layout != torch.strided:
            raise TypeError(
                f"{what} is a {rows.layout} tensor, wanted a dense one: {what}.to_dense(); "
                "Dataset.from_pyg takes sparse node features as they are"
            )
        rows = rows.detach().cpu()
    elif not isinstance(rows, np.ndarray):
        raise TypeError(f"{what} is a {type(rows).__name__}, wanted a NumPy array or a torch tensor")
    elif not rows.dtype.isnative:
        raise TypeError(
            f"{what} is in foreign byte order ({rows.dtype.str}); make it native with "
            "rows.astype(rows.dtype.newbyteorder('='))"
        )
    if not rows.ndim:
        raise ValueError(f"{what} is a single number, wanted one row per node or edge")
    try:
        RowType.of(rows)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None
    return rows


def as_stream(rows: Rows | Iterable[Rows] | RowStream, what: str) -> RowStream:
    """The stream of an array or of an iterable of blocks; streams as they are. TypeError for other things."""
    if isinstance(rows, Tensor | np.ndarray):
        return ArrayRows(checked_rows(rows, what))
    if isinstance(rows, RowStream):
        return rows
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        return IteratedRows(rows, what)
    raise TypeError(f"{what} is a {type(rows).__name__}, wanted an array or an iterable of row blocks")


def as_random_access(rows: Rows | RandomAccessRows, what: str) -> RandomAccessRows:
    """The rows of an array, or a stream that has `take`. TypeError for anything else."""
    if isinstance(rows, Tensor | np.ndarray):
        return ArrayRows(checked_rows(rows, what))
    if isinstance(rows, RandomAccessRows):
        return rows
    raise TypeError(
        f"{what} is a {type(rows).__name__}; rows of edges are stored in another order than they come in, "
        "so an array is wanted, in memory or memory-mapped"
    )
