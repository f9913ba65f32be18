"""Dense rows in a member of an .npz file."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gnn_ibp.conversion.row_stream import Rows, block_rows, sample_by_pass
from gnn_ibp.converters.read_ahead import read_ahead
from gnn_ibp.converters.zip_arrays import ZipArray, ZipArrays
from gnn_ibp.errors import FormatError
from gnn_ibp.row_type import RowType


@dataclass(frozen=True)
class ZipRows:
    """The rows of the member `name`, which has at least one dimension; FormatError for one that has none."""

    arrays: ZipArrays
    name: str

    def __post_init__(self) -> None:
        array = self._open()
        if not array.shape:
            raise FormatError(f"{array.where} is a single number, wanted one row per node")

    @property
    def num_rows(self) -> int:
        return int(self._open().shape[0])

    @property
    def row_type(self) -> RowType:
        array = self._open()
        try:
            return RowType(array.dtype.name, tuple(array.shape[1:]))
        except TypeError as error:
            raise FormatError(f"{array.where}: {error}") from error

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return read_ahead(self._blocks(first_row))

    def _blocks(self, first_row: int) -> Iterator[Rows]:
        array, step = self._open(), block_rows(self.row_type)
        array.skip_values(first_row * int(np.prod(array.shape[1:], dtype=np.int64)))
        for first in range(first_row, array.shape[0], step):
            yield array.take(min(step, array.shape[0] - first))

    def sample(self, seed: int) -> Rows:
        return sample_by_pass(self, self.num_rows, seed)

    def _open(self) -> ZipArray:
        return self.arrays.open(self.name)
