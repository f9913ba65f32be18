"""FeatureFile: the rows on disk. Read by id, in sequence, or verified as a whole."""

import os
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import ops
from gnn_ibp.codec import codec_from_params
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import FormatError
from gnn_ibp.format import CONDENSED, IN_PLACE, ROWS_AT, Header, read_header, read_section
from gnn_ibp.read_request import Out, ReadRequest
from gnn_ibp.row_blocks import Damage, RowBlock, RowBlocks
from gnn_ibp.rows import GROUP, Bytes, EncodedRows, Ids, RowIndex, bits_of

DECODE_BYTES = 16 << 20
"""Raw bytes of a decoded block, at most."""

READ_LIST_BYTES = 112
"""What a read holds for each row: its id and place, two lists of what is wanted to sort, its run of pages."""


def index_bytes(num_rows: int, row_bytes: int) -> int:
    """What an open file holds in memory for its rows, at most: bitmask, bases and sizes."""
    return -(-num_rows // 8) + 8 * -(-num_rows // GROUP) + num_rows * (2 if row_bytes <= 0xFFFF else 4)


class DiskRead(NamedTuple):
    """What a read moved: bytes of the rows as they are stored, and of the pages that were read for them."""

    encoded_bytes: int
    physical_bytes: int


class FeatureFile:
    """A feature file opened for reading; format.py draws its bytes.

    Header, codec and index are read and checked at once, the rows when they are asked for. Any number of
    threads may read; a pickled one carries its path and is opened again. A context manager.
    Raises FormatError for a file that is foreign, damaged, cut short, or of an unknown version.

    path, num_rows, row_bytes, codec, row_type (with dtype and shape), num_raw_rows (rows stored as they are,
    because encoding them did not pay), layout ("condensed" or "in-place"), align, num_blocks (each has a
    checksum) tell what is in it. fingerprint: a checksum over all of the file's checksums.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = DiskFile(path)
        self._file.expect_random_reads()
        header = read_header(self._file)
        self.path = self._file.path
        self.row_type = header.row_type
        self.row_bytes = self.row_type.row_bytes
        self.num_rows = header.num_rows
        self.num_raw_rows = header.num_raw_rows
        self.layout = header.layout
        self.align = header.align
        self.num_blocks = header.num_blocks
        self.stored_bytes = header.rows_bytes
        self.fingerprint = header.fingerprint
        sections = {name: read_section(self._file, header, name) for name in Header.SECTIONS}
        try:
            self.codec = codec_from_params(header.codec, self.row_bytes, sections["params"].tobytes())
        except FormatError as error:
            raise FormatError(f"{self.path}: {error}") from error
        if header.layout == IN_PLACE and not self.codec.announces_size:
            raise FormatError(
                f"{self.path} is damaged: its rows are said to be in place, those of format version "
                f"{header.codec} never are"
            )
        if self.codec.unit != header.unit:
            raise FormatError(f"{self.path}: unit is {header.unit}, the codec has {self.codec.unit}")
        self._bitmask = sections["bitmask"]
        self._index: RowIndex | None = None
        if header.layout == CONDENSED:
            bases, sizes = sections["bases"].view(np.uint64), sections["sizes"]
            units = sizes.view(np.uint32) if header.wide_sizes else sizes.view(np.uint16)
            self._index = RowIndex(bases, units, header.unit, header.align)
        self._table = ops.row_table(self._bitmask, self._index, self.num_rows, self.row_bytes)
        self._check_rows()
        sums = sections["blocks"].view(np.uint64)
        self._blocks = RowBlocks(self._file, header, self.codec, self._bitmask, self._index, sums)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The feature file at `path`."""
        return cls(path)

    def _check_rows(self) -> None:
        if self.num_rows % 8 and self._bitmask[-1] >> self.num_rows % 8:
            raise FormatError(f"{self.path} is damaged: its bitmask names rows that do not exist")
        num_encoded = int(np.bitwise_count(self._bitmask).sum(dtype=np.int64))
        if num_encoded != self.num_rows - self.num_raw_rows or (num_encoded and not self.row_bytes):
            raise FormatError(f"{self.path} is damaged: its bitmask has {num_encoded} encoded rows")
        if self._index and not ops.check_index(self._table, self.stored_bytes):
            raise FormatError(f"{self.path} is damaged: its index contradicts itself")

    @property
    def dtype(self) -> str:
        """The name that torch gives it, such as "float32"."""
        return self.row_type.dtype

    @property
    def torch_dtype(self) -> torch.dtype:
        return self.row_type.torch_dtype

    @property
    def row_shape(self) -> tuple[int, ...]:
        return self.row_type.shape

    @property
    def raw_bytes(self) -> int:
        """Of all rows decoded. `stored_bytes` are those of the rows in the file, alignment included."""
        return self.num_rows * self.row_bytes

    @property
    def file_bytes(self) -> int:
        return self._file.size

    @property
    def saved(self) -> float:
        """1 - stored bytes / raw bytes; 0 for no bytes."""
        return 1 - self.stored_bytes / self.raw_bytes if self.raw_bytes else 0.0

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None = None
    ) -> None:
        """Writes row ids[i] to out[i], or to out[at[i]]; bit for bit what was stored.

        ids: integers (n,), any order, repeats allowed. out: CPU tensor or array (num_out, *row_shape) of the
        rows' dtype, contiguous. at: integers (n,) without repeats.
        Raises IndexError, TypeError, ValueError before anything is written, as `ReadRequest.checked`;
        FormatError naming file, block and rows where these are not well-formed or cut off, OSError where they
        cannot be read: `out` is undefined then. Bits that changed in a row that is still well-formed are not
        noticed: checksums are of whole blocks, `verify` and `decoded_blocks` compare them.
        """
        self.read_checked(ReadRequest.checked(ids, out, at, self.num_rows, self.row_type))

    def read_checked(self, request: ReadRequest) -> DiskRead:
        """`read` for a reader that has checked the arguments itself."""
        return self._moved(
            ops.read_rows(self._file.fileno(), ROWS_AT, self.file_bytes, self._table, self.codec, *request)
        )

    def read_stored(self, ids: Ids, target: EncodedRows) -> DiskRead:
        """Reads row ids[i], as it is stored, to be row i of `target`, whose index and bitmask are written.

        ids: int64 (n,), valid. target: n rows, condensed, in a slab with room for n raw rows, each at the
        alignment. Every row is checked. Raises as `read`; `target` is undefined then.
        """
        return self._moved(
            ops.read_stored(
                self._file.fileno(), ROWS_AT, self.file_bytes, self._table, self.codec, ids, target
            )
        )

    def _moved(self, result: ops.ReadResult) -> DiskRead:
        """What a read moved; raises the error of one that failed."""
        first, last = result.first_row, result.last_row
        if result.failure == "damaged":
            raise FormatError(str(self._blocks.damaged_row(first)))
        if result.failure == "cut short":
            raise FormatError(
                f"{self.path} is cut short: {self.file_bytes} bytes expected, {self._file.size_now()} are "
                f"there; rows {first} to {last} cannot be read: copy or convert it again"
            )
        if result.failure:
            raise OSError(
                result.error, f"{os.strerror(result.error)}, reading rows {first} to {last}", str(self.path)
            )
        return DiskRead(result.encoded_bytes, result.physical_bytes)

    def encoded_blocks(self, wanted: Ids | None = None, *, progress: str | None = None) -> Iterator[RowBlock]:
        """All rows as they are stored, in order, some MiB at a time; every block's checksum is compared.

        wanted: int64, ascending; then only the groups of 32 rows around these, and their blocks, are read.
        progress: the title of a bar, shown when it takes more than a second.
        Raises FormatError naming file, block and rows.
        """
        return self._blocks.encoded(wanted, progress)

    def decoded_blocks(self, *, progress: str | None = None) -> Iterator[torch.Tensor]:
        """All rows (n, *row_shape), in order, some MiB at a time in fresh memory, checksums compared."""
        step = max(1, DECODE_BYTES // max(1, self.row_bytes))
        for first_row, rows in self.encoded_blocks(progress=progress):
            source = ops.Source(rows, None, self.codec)
            for first in range(0, rows.num_rows, step):
                ids = np.arange(first, min(first + step, rows.num_rows))
                out = np.empty((len(ids), self.row_bytes), np.uint8)
                try:
                    ops.gather_decode(ids, [source], out)
                except FormatError as error:
                    raise FormatError(f"{self.path}, counted from row {first_row}: {error}") from error
                yield self.row_type.from_bytes(out)

    @property
    def bitmask(self) -> Bytes:
        """uint8 (ceil(num_rows / 8),): 1 = the row is stored encoded, 0 = raw."""
        return self._bitmask

    def encoded(self, ids: Ids) -> NDArray[np.bool_]:
        """(n,) True where the row is stored encoded, False where it is raw."""
        return bits_of(self._bitmask, ids)

    def stored_sizes(self, ids: Ids) -> NDArray[np.int64]:
        """Bytes that the rows take as they are stored, without alignment.

        In the in-place layout, which has no index, the blocks that hold the rows are read for it.
        """
        if self._index:
            return self._index.size_bytes(ids)
        order = np.argsort(ids, kind="stable")
        ascending = ids[order]
        sizes = np.empty(len(ids), np.int64)
        for first_row, rows in self.encoded_blocks(ascending):
            lo, hi = np.searchsorted(ascending, [first_row, first_row + rows.num_rows])
            sizes[order[lo:hi]] = ops.measure_rows(self.codec, rows, ascending[lo:hi] - first_row)
        if len(sizes) and sizes.min() < 0:
            raise FormatError(str(self._blocks.damaged_row(int(ids[sizes.argmin()]))))
        return sizes

    def verify(self, *, progress: str | None = None) -> list[Damage]:
        """Compares every checksum and looks at the structure of every row. No damage: an empty list."""
        return self._blocks.verify(progress)

    def close(self) -> None:
        """Gives the file back; nothing can be read afterwards."""
        self._file.close()

    def __reduce__(self) -> tuple[type["FeatureFile"], tuple[os.PathLike[str]]]:
        return FeatureFile, (self.path.absolute(),)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, (self.num_rows, *self.row_shape)))
        return f"FeatureFile({str(self.path)!r}: {self.dtype} ({shape}), {self.layout})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
