"""The bytes of a feature file: preamble, header, sections, checksums.

    0        preamble, 4096 bytes: magic, version, where the header is, its checksum, which gnn_ibp reads the
             rows; its own checksum
    4096     rows, in one of the two layouts of rows.py, and at least 64 zero bytes
             bases     uint64 per 32 rows            (condensed only)
             blocks    uint64 per block of the rows: its checksum
             sizes     uint16 or uint32 per row      (condensed only)
             bitmask   one bit per row
             params    what the codec needs to decode
             header    JSON: everything else, and the checksum of each section; ends with the file

A block is `block_bytes` of the region from 4096 to `bases`. Every byte of the file is under a checksum
(XXH3, 64 bits). The preamble is written last, so what was never finished has none. Numbers are little-endian.
"""

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from gnn_ibp.codec import check_version
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import ForeignFileError, FormatError
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import GROUP, PAD_BYTES, Bytes

VERSION = 1
MAGIC = b"\x8bIBPROWS"
ROWS_AT = 4096
"""Where the rows begin: a page, so that reads of whole pages begin with it."""

BLOCK_BYTES = 4 << 20
MAX_ROW_BYTES = 1 << 30
MAX_ALIGN = 1 << 20
"""Far below what sums of aligned sizes, in 64 bits, would overflow at."""

CONDENSED, IN_PLACE = "condensed", "in-place"
LAYOUTS = (CONDENSED, IN_PLACE)

_PREAMBLE = struct.Struct("<8sIIQQQ24s")
"""magic, version, rows_at, header at, header bytes, header checksum, the first gnn_ibp that reads the rows"""

_FOREIGN = {
    b"\x93NUMPY": "a NumPy array (.npy); `gnn-ibp convert` makes a data set of arrays",
    b"PK\x03\x04": "a zip archive (.npz, or a tensor file of torch)",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"\x80": "a Python pickle",
    b"{": "a JSON file",
    b"\x00" * 8: "a file that was never finished",
}


def checksum(data: bytes | NDArray[Any]) -> int:
    """XXH3, 64 bits, of the bytes of `data`."""
    return xxhash.xxh3_64_intdigest(data if isinstance(data, bytes) else data.data)


def region_bytes(rows_bytes: int) -> int:
    """Bytes from the first row to `bases`: the rows and their padding."""
    return -(-(rows_bytes + PAD_BYTES) // 64) * 64


@dataclass(frozen=True)
class Section:
    """A piece of the file: `num_bytes` from byte `at` on, and their checksum."""

    at: int
    num_bytes: int
    xxh3: int


@dataclass(frozen=True)
class Header:
    """What a file says about itself. layout: one of `LAYOUTS`. codec: the version of its rows."""

    codec: int
    dtype: str
    row_shape: tuple[int, ...]
    layout: str
    unit: int
    align: int
    num_rows: int
    num_raw_rows: int
    rows_bytes: int
    block_bytes: int
    sections: dict[str, Section]

    SECTIONS: ClassVar = ("bases", "blocks", "sizes", "bitmask", "params")

    @property
    def row_type(self) -> RowType:
        return RowType(self.dtype, self.row_shape)

    @property
    def num_blocks(self) -> int:
        return -(-region_bytes(self.rows_bytes) // self.block_bytes)

    @property
    def fingerprint(self) -> str:
        """Tells this file from any other one: its header names the checksums of everything else."""
        return f"{checksum(self.to_json()):016x}"

    @property
    def wide_sizes(self) -> bool:
        """Whether the index has uint32 for the size of a row."""
        return self.row_type.row_bytes // self.unit > 0xFFFF

    def section_bytes(self) -> dict[str, int]:
        """How long each section is, the codec's parameters excepted."""
        condensed = self.layout == CONDENSED
        return {
            "bases": -(-self.num_rows // GROUP) * 8 * condensed,
            "blocks": self.num_blocks * 8,
            "sizes": self.num_rows * (4 if self.wide_sizes else 2) * condensed,
            "bitmask": -(-self.num_rows // 8),
        }

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Header":
        """Checks everything that the header alone can tell. ValueError says what is wrong."""
        try:
            fields = json.loads(text)
            sections = {name: Section(**fields["sections"][name]) for name in cls.SECTIONS}
            header = cls(**fields | {"row_shape": tuple(fields["row_shape"]), "sections": sections})
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"it cannot be read ({type(error).__name__}: {error})") from error
        header._check()
        return header

    def _check(self) -> None:
        counts = [self.codec, self.num_rows, self.num_raw_rows, self.rows_bytes, *self.row_shape]
        positive = [self.unit, self.align, self.block_bytes]
        places = [number for section in self.sections.values() for number in (section.at, section.num_bytes)]
        sums = [section.xxh3 for section in self.sections.values()]
        for numbers, end in ((counts + positive + places, 2**63), (sums, 2**64)):
            for number in numbers:
                if type(number) is not int or not 0 <= number < end:
                    raise ValueError(f"{number!r} stands where a count is wanted")
        if 0 in positive:
            raise ValueError("unit, align and block_bytes must not be 0")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is {self.layout!r}, known: {', '.join(LAYOUTS)}")
        try:
            row_bytes = self.row_type.row_bytes
        except TypeError as error:
            raise ValueError(str(error)) from error
        if row_bytes > MAX_ROW_BYTES:
            raise ValueError(f"a row has {row_bytes} bytes, at most {MAX_ROW_BYTES} are possible")
        if self.num_raw_rows > self.num_rows:
            raise ValueError(f"{self.num_raw_rows} of {self.num_rows} rows are stored raw")
        if self.layout == CONDENSED:
            check_align(self.align, self.unit)
        elif self.rows_bytes != self.num_rows * row_bytes:
            raise ValueError(f"rows_bytes is {self.rows_bytes}, {self.num_rows} rows of {row_bytes} bytes")
        expected = self.section_bytes()
        at = ROWS_AT + region_bytes(self.rows_bytes)
        for name, section in self.sections.items():
            if section.at != at or section.num_bytes != expected.get(name, section.num_bytes):
                raise ValueError(f"section {name} is said to be where it cannot be")
            at += section.num_bytes


def check_align(align: int, unit: int) -> None:
    """ValueError unless condensed rows, whose sizes are multiples of `unit`, may be aligned at `align`."""
    if align % 4 or align % unit or not 4 <= align <= MAX_ALIGN:
        raise ValueError(
            f"align is {align}, it must be a multiple of {max(4, unit)}, and at most {MAX_ALIGN}"
        )


def pack_preamble(header_at: int, header: bytes, read_since: str = "") -> bytes:
    """The first `ROWS_AT` bytes of a file. read_since: the first gnn_ibp that reads its rows."""
    fields = _PREAMBLE.pack(
        MAGIC, VERSION, ROWS_AT, header_at, len(header), checksum(header), read_since.encode()
    )
    page = fields.ljust(ROWS_AT - 8, b"\0")
    return page + struct.pack("<Q", checksum(page))


def read_header(file: DiskFile) -> Header:
    """The header of an open file. FormatError for a foreign, cut or damaged file or an unknown version."""
    if file.size == 0:
        raise ForeignFileError(f"{file.path} is empty, a feature file is wanted")
    start = file.read(0, min(file.size, ROWS_AT)).tobytes()
    _check_kind(file, start)
    if len(start) < ROWS_AT:
        raise FormatError(
            f"{file.path} is cut short: at least {ROWS_AT} bytes expected, {file.size} are there"
        )
    if checksum(start[:-8]) != struct.unpack("<Q", start[-8:])[0]:
        raise FormatError(f"{file.path} is damaged: its first {ROWS_AT} bytes have another checksum")
    _, _, rows_at, at, num_bytes, expected, read_since = _PREAMBLE.unpack_from(start)
    if rows_at != ROWS_AT:
        raise FormatError(f"{file.path}: rows begin at {rows_at}, version {VERSION} has them at {ROWS_AT}")
    if at + num_bytes != file.size:
        what = "is cut short" if at + num_bytes > file.size else "has bytes behind its end"
        raise FormatError(f"{file.path} {what}: {at + num_bytes} bytes expected, {file.size} are there")
    text = file.read(at, num_bytes).tobytes()
    if checksum(text) != expected:
        raise FormatError(f"{file.path} is damaged: its header has another checksum")
    try:
        header = Header.from_json(text)
    except ValueError as error:
        raise FormatError(f"{file.path} has a bad header: {error}") from error
    try:
        check_version(header.codec, read_since.rstrip(b"\0").decode("ascii", "replace"))
    except ForeignFileError as error:
        raise ForeignFileError(f"{file.path}: {error}") from error
    last = header.sections[Header.SECTIONS[-1]]
    if last.at + last.num_bytes != at:
        raise FormatError(
            f"{file.path} has a bad header: its sections end at {last.at + last.num_bytes}, not {at}"
        )
    return header


def _check_kind(file: DiskFile, start: bytes) -> None:
    if not start.startswith(MAGIC[: len(start)]):
        for magic, kind in _FOREIGN.items():
            if start.startswith(magic):
                raise ForeignFileError(f"{file.path} is not a feature file but {kind}")
        raise ForeignFileError(f"{file.path} is not a feature file: it begins with {start[:8]!r}")
    if len(start) >= 12:
        version = struct.unpack_from("<I", start, 8)[0]
        if version != VERSION:
            raise ForeignFileError(
                f"{file.path} has format version {version}, this program reads version {VERSION}: "
                "a newer gnn_ibp may read it"
            )


def read_section(file: DiskFile, header: Header, name: str) -> Bytes:
    """The bytes of a section, its checksum compared."""
    section = header.sections[name]
    data = file.read(section.at, section.num_bytes)
    if checksum(data) != section.xxh3:
        raise FormatError(f"{file.path} is damaged: its section {name} has another checksum")
    return data


class BlockSums:
    """The checksums of the blocks of a stream of bytes."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._hash = xxhash.xxh3_64()
        self._room = block_bytes
        self._sums: list[int] = []

    def add(self, data: Bytes) -> None:
        """Takes the next bytes of the stream, any number."""
        while len(data) >= self._room:
            self._hash.update(data[: self._room].data)
            data = data[self._room :]
            self._finish_block()
        self._hash.update(data.data)
        self._room -= len(data)

    def so_far(self) -> NDArray[np.uint64]:
        """Those of the blocks that are complete."""
        return np.array(self._sums, "<u8")

    def go_on(self, sums: NDArray[np.uint64], rest: Iterable[Bytes]) -> None:
        """Takes complete blocks as given, and the bytes behind them."""
        self._sums = sums.tolist()
        for data in rest:
            self.add(data)

    def finish(self) -> NDArray[np.uint64]:
        """Those of all blocks, the last of which may be shorter."""
        if self._room < self._block_bytes:
            self._finish_block()
        return self.so_far()

    def _finish_block(self) -> None:
        self._sums.append(self._hash.intdigest())
        self._hash.reset()
        self._room = self._block_bytes


def write_tail(
    write: Callable[[bytes | Bytes], None],
    header: Header,
    sections: dict[str, Iterable[NDArray[Any]]],
    read_since: str,
) -> bytes:
    """Writes the sections, given as pieces, and the header behind the rows; returns the preamble."""
    at = ROWS_AT + region_bytes(header.rows_bytes)
    table: dict[str, Section] = {}
    for name in Header.SECTIONS:
        hash_of, num_bytes = xxhash.xxh3_64(), 0
        for piece in sections[name]:
            data = piece.view(np.uint8)
            hash_of.update(data.data)
            write(data)
            num_bytes += len(data)
        table[name] = Section(at, num_bytes, hash_of.intdigest())
        at += num_bytes
    text = Header(**vars(header) | {"sections": table}).to_json()
    write(text)
    return pack_preamble(at, text, read_since)
