"""FeatureFileWriter: rows in, block by block, a feature file out, whole or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp import ops
from gnn_ibp.content_sum import ContentSum, piece_rows
from gnn_ibp.feature_parts import FeatureParts, GrowingParts, NewParts
from gnn_ibp.format import (
    BLOCK_BYTES,
    CONDENSED,
    IN_PLACE,
    LAYOUTS,
    MAX_ROW_BYTES,
    BlockSums,
    Header,
    check_align,
    region_bytes,
    write_tail,
)
from gnn_ibp.row_bytes import as_row_bytes
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import PAD_BYTES, Bytes

Rows = torch.Tensor | NDArray[Any]

State = dict[str, Any]
"""How far a file was written: numbers and arrays."""

STEP_BYTES = 16 << 20
"""Raw bytes that are encoded at a time: the writer takes about as much memory."""


class FeatureFileWriter:
    """Writes a feature file in one pass; a context manager. The number of rows need not be known.

        with FeatureFileWriter(path, codec, RowType("float32", (128,))) as writer:
            for rows in blocks:
                writer.append(rows)

    The file appears under `path` when the block ends, replacing what stood there; an error or Ctrl-C leaves
    nothing. `align` is that of the condensed layout, by default the smallest: 4, or the codec's unit.
    With `work`, a folder, it is written over several lives of the program: it stands under its name from the
    start, unfinished as a file without magic, and stays after an error; its index lies in `work` meanwhile.
    state: what `state` gave; rows go on behind those that were there then.
    Raises ValueError for another layout, or one that the codec does not have, for another alignment, or a
    codec for rows of another length.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        codec: RowCodec,
        row_type: RowType,
        *,
        layout: str = CONDENSED,
        align: int | None = None,
        block_bytes: int = BLOCK_BYTES,
        work: Path | None = None,
        state: State | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"layout is {layout!r}, it must be one of {', '.join(LAYOUTS)}")
        if layout == IN_PLACE and not codec.announces_size:
            raise ValueError(
                f"layout is {layout!r}, which needs rows that tell their size, those of format version "
                f"{codec.version} do not; take {CONDENSED!r}, or a codec of version 1"
            )
        if codec.row_bytes != row_type.row_bytes:
            raise ValueError(
                f"the codec is for rows of {codec.row_bytes} bytes, {row_type.dtype} rows of shape "
                f"{row_type.shape} have {row_type.row_bytes}"
            )
        if row_type.row_bytes > MAX_ROW_BYTES:
            raise ValueError(f"a row has {row_type.row_bytes} bytes, at most {MAX_ROW_BYTES} are possible")
        if block_bytes < 1:
            raise ValueError(f"block_bytes is {block_bytes}, it must be at least 1")
        self._align = max(4, codec.unit) if align is None else align
        check_align(self._align, codec.unit)
        self._codec = codec
        self._type = row_type
        self._layout = layout
        self._block_bytes = block_bytes
        self._sums = BlockSums(block_bytes)
        self._content = ContentSum(row_type.row_bytes)
        self._waiting = np.empty((piece_rows(row_type.row_bytes), row_type.row_bytes), np.uint8)
        self._num_waiting = 0
        self._num_rows = self._num_encoded = self._rows_bytes = 0
        self._file: FeatureParts = (
            NewParts(Path(path)) if work is None else self._grow(Path(path), work, state)
        )

    def _grow(self, path: Path, work: Path, state: State | None) -> GrowingParts:
        row_bytes, unit = self._type.row_bytes, self._codec.unit
        size_bytes = (2 if row_bytes // unit <= 0xFFFF else 4) if self._layout == CONDENSED else 0
        if state is None:
            return GrowingParts(path, work, size_bytes)
        parts = GrowingParts(path, work, size_bytes, state["num_rows"], state["rows_bytes"])
        self._num_rows, self._num_encoded = state["num_rows"], state["num_encoded"]
        self._rows_bytes = state["rows_bytes"]
        self._content = ContentSum(row_bytes, state["num_rows"], state["content"])
        self._wait(state["waiting"])
        self._sums.go_on(state["sums"], parts.rows(len(state["sums"]) * self._block_bytes))
        return parts

    def state(self) -> State:
        """What goes on from here; good once `sync` has returned. Of a file with `work` only."""
        return {
            "num_rows": self._num_rows,
            "num_encoded": self._num_encoded,
            "rows_bytes": self._rows_bytes,
            "waiting": self._waiting[: self._num_waiting].copy(),
            "sums": self._sums.so_far(),
            "content": self._content.state,
        }

    def sync(self) -> None:
        """Brings to the disk what was added before; rows may be added meanwhile."""
        assert isinstance(self._file, GrowingParts)
        self._file.sync()

    @property
    def num_rows(self) -> int:
        """Rows that were added."""
        return self._num_rows + self._num_waiting

    @property
    def content(self) -> str:
        """A checksum of the rows themselves, once they are all there and the file is complete."""
        return self._content.state

    def append(self, rows: Rows) -> None:
        """Adds rows (n, *row_shape). TypeError for another dtype, ValueError for another shape."""
        came = RowType.of(rows)
        if came.dtype != self._type.dtype:
            raise TypeError(f"rows have dtype {came.dtype}, the file has {self._type.dtype}")
        if came.shape != self._type.shape:
            raise ValueError(f"rows have shape {came.shape}, the file's have {self._type.shape}")
        data = as_row_bytes(rows)
        piece = len(self._waiting)
        if self._num_waiting:  # the index counts in whole groups, the checksum in whole pieces of them
            taken = min(piece - self._num_waiting, len(data))
            self._wait(data[:taken])
            data = data[taken:]
            if self._num_waiting == piece:
                self._encode(self._waiting)
                self._num_waiting = 0
        step = max(1, STEP_BYTES // max(1, self._type.row_bytes) // piece) * piece
        whole = len(data) // piece * piece
        for first in range(0, whole, step):
            self._encode(data[first : min(first + step, whole)])
        self._wait(data[whole:])

    def finish(self) -> None:
        """Completes the file; nothing can be added afterwards."""
        self._encode(self._waiting[: self._num_waiting])
        self._write_rows(np.zeros(region_bytes(self._rows_bytes) - self._rows_bytes, np.uint8))
        header = Header(
            codec=self._codec.version,
            dtype=self._type.dtype,
            row_shape=self._type.shape,
            layout=self._layout,
            unit=self._codec.unit,
            align=self._align,
            num_rows=self._num_rows,
            num_raw_rows=self._num_rows - self._num_encoded,
            rows_bytes=self._rows_bytes,
            block_bytes=self._block_bytes,
            sections={},
        )
        sections: dict[str, Iterable[NDArray[Any]]] = {
            "bases": self._file.table("bases"),
            "blocks": [self._sums.finish()],
            "sizes": self._file.table("sizes"),
            "bitmask": self._file.table("bitmask"),
            "params": [np.frombuffer(self._codec.params, np.uint8)],
        }
        preamble = write_tail(self._file.write, header, sections, self._codec.read_since)
        self._file.overwrite_start(preamble)
        self._file.commit()

    def _wait(self, data: Bytes) -> None:
        self._waiting[self._num_waiting : self._num_waiting + len(data)] = data
        self._num_waiting += len(data)

    def _encode(self, data: Bytes) -> None:
        """Encodes and writes rows; all calls but the last bring whole pieces."""
        if not len(data):
            return
        self._content.add(data)
        rows = ops.encode_rows(self._codec, data, self._align, in_place=self._layout == IN_PLACE)
        bases = rows.index.bases + np.uint64(self._rows_bytes) if rows.index else None
        self._file.add_index(rows.index, bases, rows.bitmask)
        self._num_encoded += int(np.count_nonzero(rows.encoded()))
        self._num_rows += rows.num_rows
        stored = rows.data[PAD_BYTES:-PAD_BYTES]
        self._rows_bytes += len(stored)
        self._write_rows(stored)

    def _write_rows(self, data: Bytes) -> None:
        self._sums.add(data)
        self._file.write(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._file.discard()  # what is not complete


def write_feature_file(
    path: str | os.PathLike[str],
    blocks: Rows | Iterable[Rows],
    codec: RowCodec,
    row_type: RowType | None = None,
    *,
    layout: str = CONDENSED,
    align: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Writes all rows of an array (num_rows, *row_shape), or of an iterator of such blocks, to `path`.

    Blocks are taken one at a time. `row_type` is by default that of the first block, and needed where there
    may be none. Raises as `FeatureFileWriter` does.
    """
    remaining = iter([blocks] if isinstance(blocks, torch.Tensor | np.ndarray) else blocks)
    first = next(remaining, None)
    if row_type is None:
        if first is None:
            raise ValueError("there are no blocks of rows: row_type is needed to know their dtype and shape")
        row_type = RowType.of(first)
    with FeatureFileWriter(
        path, codec, row_type, layout=layout, align=align, block_bytes=block_bytes
    ) as writer:
        if first is not None:
            writer.append(first)
        for rows in remaining:
            writer.append(rows)
