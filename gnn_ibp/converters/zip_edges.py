"""Edges in a member of an .npz file: an array (2, E), all sources, then all targets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gnn_ibp.converters.inverse_edges import with_inverse
from gnn_ibp.converters.read_ahead import read_ahead
from gnn_ibp.converters.zip_arrays import ZipArray, ZipArrays
from gnn_ibp.edges.edge_stream import BLOCK_EDGES, Ends
from gnn_ibp.errors import FormatError


@dataclass(frozen=True)
class ZipEdges:
    """The member `name`; with `add_inverse` each edge is followed by its reverse.

    Two readers go through the member side by side, one for each row, each in a thread. FormatError for
    another shape or dtype, and at the end for another checksum than the zip's.
    """

    arrays: ZipArrays
    name: str
    add_inverse: bool = False

    def __post_init__(self) -> None:
        array = self.arrays.open(self.name)
        if len(array.shape) != 2 or array.shape[0] != 2 or array.dtype not in (np.int32, np.int64):
            raise FormatError(
                f"{array.where} is {array.dtype} {array.shape}, wanted int32 or int64 (2, E), sources and "
                "targets"
            )

    @cached_property
    def num_given(self) -> int:
        """Edges in the file."""
        return int(self.arrays.open(self.name).shape[1])

    @property
    def num_edges(self) -> int:
        return self.num_given * (1 + self.add_inverse)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return self.arrays.open(self.name).dtype

    def blocks(self, first: int = 0) -> Iterator[tuple[Ends, Ends]]:
        if not self.add_inverse:
            return self._given(first)
        return with_inverse(self._given(first // 2), bool(first % 2))

    def _given(self, first: int) -> Iterator[tuple[Ends, Ends]]:
        if not self.num_given:
            return
        sources, targets = self.arrays.open(self.name), self.arrays.open(self.name)
        targets.skip_values(self.num_given)
        yield from zip(
            read_ahead(self._ends(sources, first)), read_ahead(self._ends(targets, first)), strict=True
        )
        sources.check_with(targets)

    def _ends(self, row: ZipArray, first: int) -> Iterator[Ends]:
        """The ends in the row of the array that comes next, from edge `first` on."""
        row.drop_values(first)
        step = BLOCK_EDGES // (1 + self.add_inverse)
        for at in range(first, self.num_given, step):
            yield row.take_values(min(step, self.num_given - at))
