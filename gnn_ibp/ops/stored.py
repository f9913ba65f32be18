"""Rows as they are stored: read from a file by id, measured, moved to another slab."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp._kernels import ReadResult as ReadResult
from gnn_ibp.ops.gather import KernelCodec, stored_rows
from gnn_ibp.rows import Bytes, EncodedRows, Ids, RowIndex


def row_table(bitmask: Bytes, index: RowIndex | None, num_rows: int, row_bytes: int) -> _kernels.RowTable:
    """Bitmask and index of rows in a file, as the kernels see them."""
    sizes = index.sizes if index else None
    return _kernels.RowTable(
        bitmask,
        bases=index.bases if index else None,
        sizes16=cast(NDArray[np.uint16], sizes) if sizes is not None and sizes.itemsize == 2 else None,
        sizes32=cast(NDArray[np.uint32], sizes) if sizes is not None and sizes.itemsize == 4 else None,
        num_rows=num_rows,
        row_bytes=row_bytes,
        unit=index.unit if index else 1,
        align=index.align if index else 1,
    )


def check_index(table: _kernels.RowTable, rows_bytes: int) -> bool:
    """Whether index and bitmask agree: raw rows are as long as rows are, encoded ones shorter, the bases are
    the sums of the sizes before them, and everything sums up to `rows_bytes`."""
    return _kernels.check_index(table, rows_bytes)


def read_rows(
    fd: int,
    rows_at: int,
    file_bytes: int,
    table: _kernels.RowTable,
    codec: KernelCodec,
    ids: Ids,
    out: Bytes,
    at: Ids | None,
) -> ReadResult:
    """Reads row ids[i] of the open file into out[at[i]] (out[i] where `at` is None); all arguments checked.

    The rows begin at `rows_at`, the file has `file_bytes`. The result tells the bytes moved, and the first
    failure: "damaged", "cut short" or "system" (with `error`, an errno), of rows first_row to last_row.
    """
    return _kernels.read_rows(fd, rows_at, file_bytes, table, codec.kernel, ids, at, out)


def read_stored(
    fd: int,
    rows_at: int,
    file_bytes: int,
    table: _kernels.RowTable,
    codec: KernelCodec,
    ids: Ids,
    target: EncodedRows,
) -> ReadResult:
    """Reads row ids[i] of the open file, as it is stored and checked, to be row i of `target`.

    `target` is condensed; its slab has room for len(ids) raw rows, each at its alignment; index and bitmask
    are written. Otherwise as `read_rows`.
    """
    index = target.index
    assert index, "rows are kept condensed"
    sizes = index.sizes
    return _kernels.read_stored(
        fd,
        rows_at,
        file_bytes,
        table,
        codec.kernel,
        ids,
        target.data,
        target.bitmask,
        index.bases,
        sizes16=cast(NDArray[np.uint16], sizes) if sizes.itemsize == 2 else None,
        sizes32=cast(NDArray[np.uint32], sizes) if sizes.itemsize == 4 else None,
        unit=index.unit,
        align=index.align,
    )


def measure_rows(codec: KernelCodec, rows: EncodedRows, ids: Ids) -> NDArray[np.int64]:
    """Bytes that rows `ids` take as they are stored; -1 for a row that is not well-formed."""
    sizes = np.empty(len(ids), np.int64)
    _kernels.measure_rows(codec.kernel, stored_rows(rows), ids, sizes)
    return sizes


def copy_rows(source: EncodedRows, ids: Ids, target: EncodedRows, slots: Ids) -> None:
    """Copies row ids[i] of `source` as it is stored to row slots[i] of `target`.

    `target` is condensed, its index and bitmask are those of the rows to come; slots do not repeat.
    """
    _kernels.copy_rows(stored_rows(source), ids, stored_rows(target), target.data, slots)
