"""Edges in a gzipped .csv file, a line "source,target" each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gnn_ibp.converters.csv_table import CsvTable
from gnn_ibp.converters.inverse_edges import with_inverse
from gnn_ibp.edges.edge_stream import BLOCK_EDGES, Ends
from gnn_ibp.errors import FormatError


@dataclass(frozen=True)
class CsvEdges:
    """`num_given` edges in `table`; with `add_inverse` each is followed by its reverse."""

    table: CsvTable
    num_given: int
    add_inverse: bool
    dtype = np.dtype(np.int64)

    @property
    def num_edges(self) -> int:
        return self.num_given * (1 + self.add_inverse)

    def blocks(self, first: int = 0) -> Iterator[tuple[Ends, Ends]]:
        if not self.add_inverse:
            return self._given(first)
        return with_inverse(self._given(first // 2), bool(first % 2))

    def _given(self, first: int) -> Iterator[tuple[Ends, Ends]]:
        at = first
        for block in self.table.blocks(np.int64, BLOCK_EDGES // (1 + self.add_inverse), first):
            if block.shape[1] != 2:
                raise FormatError(f"{self.table.path} has {block.shape[1]} columns, wanted source and target")
            at += len(block)
            if at > self.num_given:
                break
            yield np.ascontiguousarray(block[:, 0]), np.ascontiguousarray(block[:, 1])
        if at != self.num_given:
            more = "more" if at > self.num_given else "fewer"
            raise FormatError(f"{self.table.path} holds {more} than the {self.num_given} edges announced")
