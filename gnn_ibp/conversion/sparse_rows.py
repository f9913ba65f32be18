"""Sparse rows (CSR) as a stream of dense ones, expanded block by block, never as a whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.conversion.row_stream import Rows, block_rows, sample_by_pass, skip_rows
from gnn_ibp.row_type import DTYPES, RowType, dtype_name

_BITS = {torch.bfloat16: torch.int16} | {
    dtype: torch.uint8 for dtype in DTYPES.values() if dtype.is_floating_point and dtype.itemsize == 1
}
"""Dtypes that NumPy does not have, and integers that hold their bits."""


class Entries(Protocol):
    """The entries of a CSR matrix, read from the first to the last."""

    def take(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Column numbers and values of the next `count` entries."""


class ArrayEntries:
    """Entries in memory."""

    def __init__(self, columns: NDArray[Any], values: NDArray[Any]) -> None:
        self._columns, self._values, self._at = columns, values, 0

    def take(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        part = slice(self._at, self._at + count)
        self._at += count
        return self._columns[part], self._values[part]


@dataclass(frozen=True)
class SparseRows:
    """indptr: int64 (num_rows + 1,). open_entries() starts with the first entry. what: its name in errors.

    Of a dtype that NumPy does not have, entries are integers with the bits.
    """

    indptr: NDArray[np.int64]
    row_type: RowType
    open_entries: Callable[[], Entries]
    what: str

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return skip_rows(self._all_blocks(), first_row)

    def _all_blocks(self) -> Iterator[Rows]:
        step = block_rows(self.row_type)
        entries = self.open_entries()
        for first in range(0, self.num_rows, step):
            bounds = self.indptr[first : first + step + 1]
            columns, values = entries.take(int(bounds[-1] - bounds[0]))
            row_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            bad = (columns < 0) | (columns >= self.row_type.shape[0])
            if bad.any():
                at = int(bad.argmax())
                raise ValueError(
                    f"{self.what}: row {first + row_of[at]} names column {columns[at]}, "
                    f"a row has {self.row_type.shape[0]} columns"
                )
            self._check_unique(first, row_of, columns)
            block = np.zeros((len(bounds) - 1, *self.row_type.shape), values.dtype)
            block[row_of, columns] = values
            is_of_numpy = values.dtype.name == self.row_type.dtype
            yield block if is_of_numpy else self.row_type.from_bytes(block.view(np.uint8))

    def sample(self, seed: int) -> Rows:
        return sample_by_pass(self, self.num_rows, seed)

    def _check_unique(self, first: int, row_of: NDArray[Any], columns: NDArray[Any]) -> None:
        """ValueError for a column that a row names twice: which value, or their sum, is a guess."""
        places = row_of * self.row_type.shape[0] + columns.astype(np.int64)
        if (np.diff(places) > 0).all():  # sorted, as they mostly are
            return
        places.sort()
        twice = places[1:][np.diff(places) == 0]
        if len(twice):
            row, column = divmod(int(twice[0]), self.row_type.shape[0])
            raise ValueError(
                f"{self.what}: row {first + row} names column {column} more than once; add them up first "
                "(SciPy: matrix.sum_duplicates())"
            )


def check_indptr(indptr: NDArray[np.int64], num_entries: int, what: str) -> None:
    """ValueError unless `indptr` rises from 0 to `num_entries`."""
    if (
        indptr.ndim != 1
        or not len(indptr)
        or indptr[0]
        or indptr[-1] != num_entries
        or (np.diff(indptr) < 0).any()
    ):
        raise ValueError(f"{what}: the row pointer must rise from 0 to the number of entries, {num_entries}")


def sparse_tensor_rows(matrix: Tensor, what: str) -> SparseRows:
    """The rows of a torch sparse matrix, COO or CSR."""
    if matrix.layout not in (torch.sparse_coo, torch.sparse_csr) or matrix.ndim != 2:
        raise TypeError(
            f"{what} has layout {matrix.layout}; dense, sparse COO and sparse CSR matrices can be read"
        )
    matrix = matrix.detach().cpu()
    row_type = RowType(dtype_name(matrix.dtype), (matrix.shape[1],))
    if matrix.layout == torch.sparse_csr:
        indptr, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    else:
        matrix = matrix.coalesce()
        (rows, columns), values = matrix.indices(), matrix.values()
        indptr = torch.cat(
            [torch.zeros(1, dtype=torch.int64), rows.bincount(minlength=len(matrix)).cumsum(0)]
        )
    entries = columns.numpy(), values.view(_BITS.get(values.dtype, values.dtype)).numpy()
    return SparseRows(indptr.long().numpy(), row_type, lambda: ArrayEntries(*entries), what)
