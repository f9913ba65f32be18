"""The rows of a file in sequence: block by block, every block's checksum compared."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import ops
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import FormatError
from gnn_ibp.format import ROWS_AT, Header, checksum, region_bytes
from gnn_ibp.progress import progress as progress_bar
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import GROUP, PAD_BYTES, Bytes, EncodedRows, Ids, RowIndex

MAX_EXPLAINED_BYTES = 1 << 20
"""What is wrong with a longer row is not told: the definition that knows it is too slow."""


class RowBlock(NamedTuple):
    """Consecutive rows as they are stored, the first of them row `first_row` of the file."""

    first_row: int
    rows: EncodedRows


@dataclass(frozen=True)
class Damage:
    """A block of a file with the rows that have bytes in it (first > last: none), and what is wrong."""

    file: str
    block: int
    first_row: int
    last_row: int
    what: str

    def __str__(self) -> str:
        rows = f"rows {self.first_row} to {self.last_row}" if self.first_row <= self.last_row else "no rows"
        return f"{self.file}: block {self.block} ({rows}) {self.what}"


class RowBlocks:
    """Where the rows and blocks of a feature file are, and how they are read one after the other.

    file: open; the other arguments are what was read from it, checked.
    index: None in the in-place layout. sums: uint64 (num_blocks,), the checksums.
    """

    def __init__(
        self,
        file: DiskFile,
        header: Header,
        codec: RowCodec,
        bitmask: Bytes,
        index: RowIndex | None,
        sums: NDArray[np.uint64],
    ) -> None:
        self._file = file
        self._codec = codec
        self._bitmask = bitmask
        self._index = index
        self._sums = sums
        self._num_rows = header.num_rows
        self._row_bytes = header.row_type.row_bytes
        self._rows_bytes = header.rows_bytes
        self._block_bytes = header.block_bytes

    def encoded(self, wanted: Ids | None, progress: str | None) -> Iterator[RowBlock]:
        """All rows, or whole groups of rows around `wanted` (int64, ascending). FormatError for damage."""
        pieces = self._pieces(wanted)
        reader = _BlockReader(self)
        num_bytes = sum(self._begin(last) - self._begin(first) for first, last in pieces)
        with progress_bar(progress, num_bytes, "B") as bar:
            for first, last in pieces:
                piece = self._piece(reader, first, last)
                bar.update(len(piece.rows.data) - 2 * PAD_BYTES)
                yield piece

    def verify(self, progress: str | None) -> list[Damage]:
        """Compares every checksum and looks at the structure of every row; reads the file once."""
        damages: dict[int, Damage] = {}
        reader = _BlockReader(self)
        num_seen = 0
        with progress_bar(progress, region_bytes(self._rows_bytes), "B") as bar:
            for first, last in [*self._pieces(None), (self._num_rows, self._num_rows)]:
                blocks = self._blocks_of(first, last) if first < last else range(len(self._sums))
                for block in range(num_seen, blocks.stop):
                    try:
                        bar.update(len(reader.load(block)))
                    except (FormatError, OSError):
                        damages[block] = self.damage(block, reader.fault)
                num_seen = max(num_seen, blocks.stop)
                if first < last and damages.keys().isdisjoint(blocks):
                    self._check_rows(self._piece(reader, first, last), damages)
        return [damages[block] for block in sorted(damages)]

    def damage(self, block: int, what: str) -> Damage:
        """With the rows of the block named."""
        return Damage(str(self._file.path), block, *self._rows_of(block), what)

    def damaged_row(self, row: int) -> Damage:
        """Of a row that is not well-formed; says why where the index tells which bytes are the row."""
        what = f"is damaged: row {row} is not well-formed"
        if self._index and self._row_bytes <= MAX_EXPLAINED_BYTES:
            (size,) = self._index.size_bytes(slice(row, row + 1))
            stored = np.empty(size, np.uint8)
            try:
                self._file.read_into(ROWS_AT + self._begin(row), stored)
                self._codec.decode_row(stored.tobytes())
            except (FormatError, OSError) as error:
                what += f": {error}"
        return self.damage(self._begin(row) // self._block_bytes, what)

    def extent(self, block: int) -> tuple[int, int]:
        """Where the block begins, from the first row on, and its bytes."""
        begin = block * self._block_bytes
        return begin, min(self._block_bytes, region_bytes(self._rows_bytes) - begin)

    def _check_rows(self, piece: RowBlock, damages: dict[int, Damage]) -> None:
        sizes = ops.measure_rows(self._codec, piece.rows, np.arange(piece.rows.num_rows))
        for row in (piece.first_row + np.flatnonzero(sizes < 0)).tolist():
            damage = self.damaged_row(row)
            damages.setdefault(damage.block, damage)

    def _begin(self, row: int) -> int:
        """Bytes from the first row to `row`; that of `num_rows` is the end of the rows."""
        if self._index is None:
            return row * self._row_bytes
        if row == self._num_rows:
            return self._rows_bytes
        return self._index.begin(row)

    def _row_holding(self, at: int) -> int:
        """The row that has the byte `at`, counted from the first row on."""
        if self._index is None:
            return at // self._row_bytes
        group = int(np.searchsorted(self._index.bases, at, side="right")) - 1
        sizes = self._index.aligned_sizes(slice(group * GROUP, (group + 1) * GROUP))
        ends = int(self._index.bases[group]) + np.cumsum(sizes)
        return group * GROUP + int(np.searchsorted(ends, at, side="right"))

    def _rows_of(self, block: int) -> tuple[int, int]:
        begin, num_bytes = self.extent(block)
        if begin >= self._rows_bytes:
            return self._num_rows, self._num_rows - 1
        return self._row_holding(begin), self._row_holding(min(begin + num_bytes, self._rows_bytes) - 1)

    def _blocks_of(self, first: int, last: int) -> range:
        """The blocks that hold rows `first` to `last - 1`."""
        begin, end = self._begin(first), self._begin(last)
        return range(begin // self._block_bytes, -(-end // self._block_bytes))

    def _pieces(self, wanted: Ids | None) -> list[tuple[int, int]]:
        """Rows `first` to `last - 1` of each piece: whole groups that begin in the same block."""
        num_groups = -(-self._num_rows // GROUP)
        begins = np.arange(len(self._sums)) * self._block_bytes
        if self._index:
            groups = np.searchsorted(self._index.bases, begins.astype(np.uint64))
        else:
            groups = np.minimum(-(-begins // max(1, GROUP * self._row_bytes)), num_groups)
        cuts = np.unique(np.concatenate([[0], groups, [num_groups]]))
        firsts, lasts = cuts[:-1], cuts[1:]
        if wanted is not None:
            at = np.searchsorted(wanted, cuts * GROUP)
            held = np.flatnonzero(at[1:] > at[:-1])
            firsts, lasts = wanted[at[held]] // GROUP, wanted[at[held + 1] - 1] // GROUP + 1
        ends = np.minimum(lasts * GROUP, self._num_rows)
        return list(zip((firsts * GROUP).tolist(), ends.tolist(), strict=True))

    def _piece(self, reader: "_BlockReader", first: int, last: int) -> RowBlock:
        begin, end = self._begin(first), self._begin(last)
        data = np.empty(PAD_BYTES + end - begin + PAD_BYTES, np.uint8)
        data[:PAD_BYTES] = 0
        data[PAD_BYTES + end - begin :] = 0
        for block in self._blocks_of(first, last):
            block_begin, num_bytes = self.extent(block)
            lo, hi = max(begin, block_begin), min(end, block_begin + num_bytes)
            held = reader.load(block)[lo - block_begin : hi - block_begin]
            data[PAD_BYTES + lo - begin : PAD_BYTES + hi - begin] = held
        index = None
        if self._index:
            bases = self._index.bases[first // GROUP : -(-last // GROUP)] - np.uint64(begin)
            index = RowIndex(bases, self._index.sizes[first:last], self._index.unit, self._index.align)
        bitmask = self._bitmask[first // 8 : -(-last // 8)]
        return RowBlock(first, EncodedRows(data, bitmask, index, last - first, self._row_bytes))


class _BlockReader:
    """Reads blocks in ascending order and keeps the last two: neighbouring pieces share a block."""

    def __init__(self, blocks: RowBlocks) -> None:
        self._blocks = blocks
        self._held: dict[int, Bytes] = {}
        self.fault = ""

    def load(self, block: int) -> Bytes:
        """The bytes of a block, valid until two others are loaded. FormatError or OSError names its rows."""
        if block not in self._held:
            self._held[block] = self._read(block)
        return self._held[block]

    def _read(self, block: int) -> Bytes:
        file = self._blocks._file
        begin, num_bytes = self._blocks.extent(block)
        data = self._held.pop(min(self._held)) if len(self._held) == 2 else np.empty(0, np.uint8)
        if len(data) != num_bytes:
            data = np.empty(num_bytes, np.uint8)
        file.will_need(ROWS_AT + begin + num_bytes, self._blocks._block_bytes)
        try:
            file.read_into(ROWS_AT + begin, data)
        except OSError as error:
            self.fault = f"cannot be read: {error.strerror}"
            raise OSError(error.errno, str(self._blocks.damage(block, self.fault))) from error
        except FormatError:
            self.fault = "is cut short"
            raise
        if checksum(data) != self._blocks._sums[block]:
            self.fault = "is damaged: its bytes have another checksum"
            raise FormatError(str(self._blocks.damage(block, self.fault)))
        return data
