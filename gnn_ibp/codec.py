"""Row codecs: the narrow interface all row formats share, and Invariant Bit Packing, its version 1."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import _kernels, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.reference import Masks
from gnn_ibp.row_bytes import Array, DType, as_row_bytes, from_row_bytes
from gnn_ibp.rows import GROUP, PAD_BYTES, Bytes, EncodedRows, Ids, RowIndex

CHUNK_BITS = (64, 32, 16, 8)
"""The chunk widths there are, the preferred first."""

SAMPLE_ROWS = 32768
SAMPLE_BYTES = 64 << 20
"""Rows that a codec is fitted on are at most so many."""


class RowCodec(Protocol):
    """A row format with its parameters: all that files, caches and readers know of one."""

    @property
    def version(self) -> int:
        """Of the row format, as in file headers."""

    @property
    def row_bytes(self) -> int:
        """Of a raw row."""

    @property
    def unit(self) -> int:
        """Stored rows are multiples of this many bytes."""

    @property
    def kernel(self) -> _kernels.RowCodec:
        """What the CPU kernels take."""

    @property
    def device_kernel(self) -> ops.DeviceKernel | None:
        """What decodes its rows on a device; None where nothing does."""

    @property
    def params(self) -> bytes:
        """What `codec_from_params` makes the codec of again."""

    def describe(self) -> dict[str, object]:
        """Its parameters in words and numbers, for people."""


@dataclass(frozen=True)
class PackedRows:
    """Rows encoded in memory, and the array they came from: torch or NumPy dtype, and shape."""

    rows: EncodedRows
    dtype: DType
    shape: tuple[int, ...]

    @property
    def bitmask(self) -> NDArray[np.bool_]:
        """(N,) True where the row is encoded, False where it is stored raw."""
        return self.rows.encoded()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as stored; index, bitmask and alignment come on top (`rows.nbytes`)."""
        return int(self._index.size_bytes().sum())

    @property
    def raw_nbytes(self) -> int:
        """Bytes of the array."""
        return self.rows.num_rows * self.rows.row_bytes

    @property
    def saved(self) -> float:
        """1 - encoded bytes / raw bytes; 0.0 where there are none."""
        return 1 - self.nbytes / self.raw_nbytes if self.raw_nbytes else 0.0

    def row(self, i: int) -> bytes:
        """Row i as stored."""
        if not 0 <= i < self.rows.num_rows:
            raise IndexError(f"row {i} of {self.rows.num_rows} rows")
        index = self._index
        group = i // GROUP
        before = index.aligned_sizes(slice(group * GROUP, i))
        begin = PAD_BYTES + int(index.bases[group]) + int(before.sum())
        return self.rows.data[begin:][: index.size_bytes()[i]].tobytes()

    @property
    def _index(self) -> RowIndex:
        assert self.rows.index, "packed rows are condensed"
        return self.rows.index


class IBPCodec:
    """Invariant Bit Packing, row format version 1 (Kamath et al., EuroSys 2026, arXiv 2605.30728).

    A row is V chunks of `chunk_bits` bits. Where a chunk has the values `bitval` in the bits of `mask`, they
    are left out. Exact for whatever bits the rows hold. `gnn_ibp.reference` defines the format.
    """

    version = 1

    def __init__(self, mask: ArrayLike, bitval: ArrayLike, chunk_bits: int) -> None:
        """mask, bitval: (V,) integers of `chunk_bits` bits, bitval & ~mask == 0. chunk_bits: 8, 16, 32, 64.

        Raises TypeError for other than integers, ValueError for what contradicts the above.
        """
        check_chunk_bits(chunk_bits)
        self.mask = _words("mask", mask, chunk_bits)
        self.bitval = _words("bitval", bitval, chunk_bits)
        self.chunk_bits = chunk_bits
        if self.mask.shape != self.bitval.shape:
            raise ValueError(f"bitval has {len(self.bitval)} chunks, mask has {len(self.mask)}")
        outside = np.flatnonzero(self.bitval & ~self.mask)
        if len(outside):
            raise ValueError(f"bitval[{outside[0]}] has bits where mask has none, want bitval & ~mask == 0")

    @classmethod
    def fit(
        cls,
        rows: Array,
        chunk_bits: int | None = None,
        threshold: float | Literal["sweep"] | None = None,
        seed: int = 0,
    ) -> "IBPCodec":
        """The codec that stores a seeded sample of `rows` (N, ...) in the fewest bytes.

        chunk_bits: None tries every width that divides the row (8 only where no other does); the widest of
        equal ones wins. threshold: None fits each position by itself; a number T from 0.50 to 0.99 makes
        those bits invariant that more than T of the rows agree on, as in the paper, and "sweep" takes the
        paper's best of 0.70, 0.75 ... 0.95. Without rows nothing is invariant.
        """
        percent = _percent(threshold)
        sample = as_row_bytes(rows)
        num_rows, row_bytes = sample.shape
        if chunk_bits is not None:
            check_chunk_bits(chunk_bits, row_bytes)
        if num_rows > _sample_rows(row_bytes):
            sample = sample[fit_sample_ids(num_rows, row_bytes, seed)]
        best, fewest_bytes = cls.raw(row_bytes), -1
        widths = [chunk_bits] if chunk_bits else _chunk_bits_for(row_bytes)
        for masks in _candidates(sample, widths, percent):
            codec = cls(masks.mask, masks.bitval, 8 * masks.mask.itemsize)
            stored_bytes = int(ops.stored_sizes(codec, sample).sum())
            if fewest_bytes < 0 or stored_bytes < fewest_bytes:
                best, fewest_bytes = codec, stored_bytes
        return best

    @classmethod
    def raw(cls, row_bytes: int) -> "IBPCodec":
        """The codec that stores every row of `row_bytes` bytes raw."""
        chunk_bits = next(bits for bits in CHUNK_BITS if row_bytes % (bits // 8) == 0)
        none = np.zeros(row_bytes // (chunk_bits // 8), f"uint{chunk_bits}")
        return cls(none, none, chunk_bits)

    @property
    def unit(self) -> int:
        """S, bytes of a chunk; stored rows are multiples of it."""
        return self.chunk_bits // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of a raw row."""
        return self.mask.nbytes

    @cached_property
    def kernel(self) -> _kernels.RowCodec:
        """What the CPU kernels take."""
        return ops.ibp_codec(self.mask, self.bitval)

    @cached_property
    def device_kernel(self) -> ops.DeviceKernel | None:
        """What decodes its rows on a device; None for 8-bit chunks."""
        return ops.ibp_kernel(self.mask, self.bitval)

    @property
    def params(self) -> bytes:
        """chunk_bits as uint32, then mask and bitval, all little-endian."""
        words = self.mask.dtype.newbyteorder("<")
        mask, bitval = self.mask.astype(words), self.bitval.astype(words)
        return struct.pack("<I", self.chunk_bits) + mask.tobytes() + bitval.tobytes()

    @classmethod
    def from_params(cls, row_bytes: int, params: bytes) -> "IBPCodec":
        """The codec with these `params`. Raises FormatError where they are no codec's for such rows."""
        want = 4 + 2 * row_bytes
        if len(params) != want:
            raise FormatError(f"the codec's parameters have {len(params)} bytes, want {want}")
        (chunk_bits,) = struct.unpack_from("<I", params)
        try:
            check_chunk_bits(chunk_bits, row_bytes)
            mask, bitval = np.frombuffer(params, f"<u{chunk_bits // 8}", offset=4).reshape(2, -1)
            return cls(mask, bitval, chunk_bits)
        except ValueError as error:
            raise FormatError(f"the codec's parameters are damaged: {error}") from error

    def describe(self) -> dict[str, object]:
        """Its parameters in words and numbers, for people."""
        return {
            "version": self.version,
            "chunk_bits": self.chunk_bits,
            "num_chunks": len(self.mask),
            "row_bits": 8 * self.row_bytes,
            "invariant_bits": int(np.unpackbits(self.mask.view(np.uint8)).sum()),
        }

    def encode(self, rows: Array) -> PackedRows:
        """Encodes rows (N, ...) of `row_bytes` bytes each, NumPy or torch, of any fixed-width dtype."""
        row_bytes = as_row_bytes(rows)
        if row_bytes.shape[1] != self.row_bytes:
            raise ValueError(f"rows have {row_bytes.shape[1]} bytes each, the codec is for {self.row_bytes}")
        encoded = ops.encode_rows(self, row_bytes, align=max(4, self.unit))
        return PackedRows(encoded, rows.dtype, tuple(rows.shape))

    def decode(self, packed: PackedRows) -> Array:
        """The array that was encoded: its type, dtype, shape and every bit. Raises FormatError on damage."""
        row_bytes = packed.rows.row_bytes
        if row_bytes != self.row_bytes:
            raise ValueError(f"packed has rows of {row_bytes} bytes, the codec is for {self.row_bytes}")
        out = np.empty((packed.rows.num_rows, row_bytes), np.uint8)
        ops.decode_all(self, packed.rows, out)
        return from_row_bytes(out, packed.dtype, packed.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IBPCodec) and self.params == other.params

    def __hash__(self) -> int:
        return hash(self.params)

    def __repr__(self) -> str:
        return f"IBPCodec({self.row_bytes} bytes in chunks of {self.chunk_bits} bits)"

    def __reduce__(self) -> tuple[object, ...]:
        return IBPCodec, (self.mask, self.bitval, self.chunk_bits)


def codec_from_params(version: int, row_bytes: int, params: bytes) -> RowCodec:
    """The codec of a file header. Raises FormatError for a version or parameters that are none."""
    if version != IBPCodec.version:
        raise FormatError(
            f"rows are in format version {version}, this program reads version {IBPCodec.version}; "
            "use a newer gnn_ibp"
        )
    return IBPCodec.from_params(row_bytes, params)


def check_chunk_bits(chunk_bits: int, row_bytes: int = 0) -> None:
    """Raises ValueError unless chunks of `chunk_bits` bits exist and divide rows of `row_bytes` bytes."""
    if chunk_bits not in CHUNK_BITS:
        raise ValueError(f"chunk_bits is {chunk_bits}, want 8, 16, 32 or 64")
    if row_bytes % (chunk_bits // 8):
        raise ValueError(f"chunk_bits is {chunk_bits}, which does not divide rows of {row_bytes} bytes")


def fit_sample_ids(num_rows: int, row_bytes: int, seed: int = 0) -> Ids:
    """Ascending ids of the rows that a codec is fitted on: a seeded random choice, all where they are few."""
    wanted = _sample_rows(row_bytes)
    if num_rows <= wanted:
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(seed).choice(num_rows, wanted, replace=False))


def fit_sample_bytes(row_bytes: int) -> int:
    """The bytes of the rows that a codec is fitted on, where there are many."""
    return _sample_rows(row_bytes) * row_bytes


def _sample_rows(row_bytes: int) -> int:
    return max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // max(1, row_bytes)))


def _chunk_bits_for(row_bytes: int) -> list[int]:
    """The widths that automatic fitting tries, the preferred first."""
    dividing = [bits for bits in CHUNK_BITS if row_bytes % (bits // 8) == 0]
    return [bits for bits in dividing if bits != 8] or dividing


def _candidates(sample: Bytes, widths: list[int], percent: int | str | None) -> Iterator[Masks]:
    """The masks among which the smallest result wins, the preferred first."""
    fitted = ops.fit_positions(sample, widths if percent is None else [])
    for i, width in enumerate(widths):
        if isinstance(percent, int):
            yield ops.fit_threshold(fitted.ones, len(sample), width, percent)
            continue
        if percent is None:
            yield fitted.masks[i]
        yield ops.fit_sweep(sample, fitted.ones, width)


def _percent(threshold: float | str | None) -> int | str | None:
    """The paper's threshold as a whole number of percent; "sweep" and None stay."""
    if threshold is None or threshold == "sweep":
        return threshold
    if isinstance(threshold, str) or not 0.5 <= threshold <= 0.99:
        raise ValueError(f'threshold is {threshold!r}, want a number from 0.50 to 0.99 or "sweep"')
    return round(100 * threshold)


def _words(name: str, values: ArrayLike, chunk_bits: int) -> NDArray[np.unsignedinteger]:
    """`values` as an unchangeable array of unsigned words."""
    array = np.asarray(values)
    whole = array.dtype.kind in "iu" or array.size == 0
    if isinstance(values, list | tuple) and all(isinstance(value, int) for value in values):
        # NumPy alone makes floats of a list with integers above 2^63.
        array, whole = np.array(values, object), True
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, want one dimension")
    if not whole:
        raise TypeError(f"{name} has dtype {array.dtype}, want integers")
    if len(array) and not 0 <= int(array.min()) <= int(array.max()) < 1 << chunk_bits:
        raise ValueError(f"{name} has values that are no unsigned numbers of {chunk_bits} bits")
    words = array.astype(f"uint{chunk_bits}")
    words.flags.writeable = False
    return words
