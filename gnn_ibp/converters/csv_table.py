"""Tables of numbers in gzipped .csv files without a header, read block by block."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnn_ibp.conversion.row_stream import Rows, block_rows, sample_by_pass
from gnn_ibp.converters.read_ahead import read_ahead
from gnn_ibp.errors import FormatError
from gnn_ibp.row_type import RowType

SAMPLE_REACH = 256 << 20
"""Numbers as text are slow to read: a sample is drawn from so many leading bytes of rows."""


@dataclass(frozen=True)
class CsvTable:
    """The file `path`. Numbers are parsed by pandas, as OGB does it, so the same ones come out."""

    path: Path

    def num_columns(self) -> int:
        """Columns of the first line; 0 for an empty file."""
        first = next(self._frames(np.float64, 0, 1), None)
        return 0 if first is None else first.shape[1]

    def blocks(self, dtype: DTypeLike, num_rows: int, first_row: int = 0) -> Iterator[NDArray[Any]]:
        """Rows from `first_row` on, (up to num_rows, columns) at a time.

        FormatError for what is no number of that dtype, and for a file that is cut short or damaged.
        """
        return self._frames(dtype, first_row, num_rows)

    def column(self, dtype: DTypeLike) -> NDArray[Any]:
        """The whole file, which has a single column."""
        blocks = list(self.blocks(dtype, 1 << 20))
        for block in blocks:
            if block.shape[1] != 1:
                raise FormatError(f"{self.path} has {block.shape[1]} columns, a single one is wanted")
        return np.concatenate([block[:, 0] for block in blocks]) if blocks else np.empty(0, dtype)

    def _frames(self, dtype: DTypeLike, first_row: int, num_rows: int) -> Iterator[NDArray[Any]]:
        import pandas
        from pandas.errors import EmptyDataError

        at = first_row
        try:
            with pandas.read_csv(
                self.path,
                compression="gzip",
                header=None,
                dtype=dtype,
                skiprows=first_row,
                chunksize=num_rows,
            ) as frames:
                for frame in frames:
                    yield np.ascontiguousarray(frame.to_numpy())
                    at += len(frame)
        except EmptyDataError:
            return
        except FileNotFoundError as error:
            raise FormatError(f"{self.path} is missing") from error
        except EOFError as error:
            raise FormatError(f"{self.path} is cut short: its gzip stream has no end") from error
        except (ValueError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            kind = np.dtype(dtype).name
            raise FormatError(
                f"{self.path} cannot be read as {kind} numbers, in a row from {at} on: {error}"
            ) from error


@dataclass(frozen=True)
class CsvRows:
    """Rows of a table of `num_rows` rows, parsed as `parsed` and stored as `row_type`."""

    table: CsvTable
    num_rows: int
    row_type: RowType
    parsed: DTypeLike

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return read_ahead(self._blocks(first_row))

    def _blocks(self, first_row: int) -> Iterator[Rows]:
        at = first_row
        for block in self.table.blocks(self.parsed, block_rows(self.row_type), first_row):
            at += len(block)
            if at > self.num_rows or block.shape[1:] != self.row_type.shape:
                break
            yield block.astype(self.row_type.dtype, copy=False)
        else:
            if at == self.num_rows:
                return
        raise FormatError(
            f"{self.table.path} does not hold {self.num_rows} rows of {self.row_type.shape[0]} numbers; "
            f"{at} were read"
        )

    def sample(self, seed: int) -> Rows:
        reach = max(1, SAMPLE_REACH // max(1, self.row_type.row_bytes))
        return sample_by_pass(self, min(self.num_rows, reach), seed)
