"""Rows and edges in plain arrays on disk, read piece by piece at their place."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.row_stream import Rows, block_rows
from gnn_ibp.converters.read_ahead import read_ahead
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.edges.edge_stream import BLOCK_EDGES, Ends
from gnn_ibp.errors import FormatError
from gnn_ibp.fit_sample import fit_sample_ids
from gnn_ibp.npy import NpyLayout
from gnn_ibp.row_type import RowType


class NpyArray:
    """An array on disk. FormatError from every read where the file was cut since its layout was read."""

    def __init__(self, layout: NpyLayout) -> None:
        self.layout = layout

    @cached_property
    def _file(self) -> DiskFile:
        return DiskFile(self.layout.path)

    def values(self, first: int, count: int) -> NDArray[Any]:
        """`count` values from number `first` on, in one dimension."""
        out = np.empty(count, self.layout.dtype)
        self._file.read_into(self.layout.first_byte + first * out.itemsize, out.view(np.uint8))
        return out

    def rows(self, first: int, count: int) -> NDArray[Any]:
        """`count` rows from row `first` on."""
        shape = self.layout.shape[1:]
        row_values = int(np.prod(shape, dtype=np.int64))
        return self.values(first * row_values, count * row_values).reshape(count, *shape)

    def blocks(self, num_rows: int, first_row: int = 0, until: int | None = None) -> Iterator[NDArray[Any]]:
        """The rows from `first_row` on and before `until`, by default all, `num_rows` at a time."""
        until = self.layout.shape[0] if until is None else until
        for first in range(first_row, until, num_rows):
            yield self.rows(first, min(num_rows, until - first))


class NpyRows:
    """Rows of features in an array (num_rows, ...)."""

    def __init__(self, layout: NpyLayout) -> None:
        self._array = NpyArray(layout)
        self.num_rows = layout.shape[0]
        self.row_type = RowType(layout.dtype.name, layout.shape[1:])

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return read_ahead(self._array.blocks(block_rows(self.row_type), first_row))

    def sample(self, seed: int) -> Rows:
        return self.take(fit_sample_ids(self.num_rows, self.row_type.row_bytes, seed))

    def take(self, ids: NDArray[np.int64]) -> Rows:
        """The rows `ids`, in this order."""
        out = np.empty((len(ids), *self.row_type.shape), self._array.layout.dtype)
        for at, row in enumerate(ids.tolist()):
            out[at] = self._array.rows(row, 1)[0]
        return out


class NpyEdges:
    """Edges in an array (2, E), all sources, then all targets, or (E, 2). FormatError for another shape."""

    def __init__(self, layout: NpyLayout, *, pairs: bool) -> None:
        if len(layout.shape) != 2 or layout.shape[1 if pairs else 0] != 2:
            wanted = "(E, 2)" if pairs else "(2, E)"
            raise FormatError(f"{layout.path} holds an array of shape {layout.shape}, wanted edges {wanted}")
        self._array, self._pairs = NpyArray(layout), pairs
        self.num_edges = layout.shape[0 if pairs else 1]
        self.dtype = layout.dtype

    def blocks(self, first: int = 0) -> Iterator[tuple[Ends, Ends]]:
        for at in range(first, self.num_edges, BLOCK_EDGES):
            count = min(BLOCK_EDGES, self.num_edges - at)
            if self._pairs:
                pairs = self._array.rows(at, count)
                yield np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
            else:
                yield self._array.values(at, count), self._array.values(self.num_edges + at, count)
