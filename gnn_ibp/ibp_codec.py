"""IBPCodec: Invariant Bit Packing, row format version 1."""

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import _kernels, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.fit_sample import fit_sample
from gnn_ibp.reference import Masks, as_chunks, decode_row, participation, popcount
from gnn_ibp.row_bytes import Array
from gnn_ibp.row_codec import RowCodec, smallest
from gnn_ibp.rows import Bytes

CHUNK_BITS = (64, 32, 16, 8)
"""The chunk widths there are, the preferred first."""

Threshold = float | Literal["sweep"] | None
"""The paper's rule for masks, see `IBPCodec.fit`; None for ours."""


class IBPCodec(RowCodec):
    """Invariant Bit Packing, row format version 1 (Kamath et al., EuroSys 2026, arXiv 2605.30728).

    A row is V chunks of `chunk_bits` bits. Where a chunk has the values `bitval` in the bits of `mask`, they
    are left out. Exact for whatever bits the rows hold. `gnn_ibp.reference` defines the format.
    """

    version = 1
    read_since = ""
    announces_size = True

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
        threshold: Threshold = None,
        seed: int = 0,
    ) -> "IBPCodec":
        """The codec that stores a seeded sample of `rows` (N, ...) in the fewest bytes.

        chunk_bits: None tries every width that divides the row (8 only where no other does); the widest of
        equal ones wins. threshold: None fits each position by itself; a number T from 0.50 to 0.99 makes
        those bits invariant that more than T of the rows agree on, as in the paper, and "sweep" takes the
        paper's best of 0.70, 0.75 ... 0.95. Without rows nothing is invariant.
        """
        threshold_percent(threshold)
        sample = fit_sample(rows, seed)
        return smallest(cls.candidates(sample, chunk_bits, threshold), sample)

    @classmethod
    def candidates(
        cls,
        sample: Bytes,
        chunk_bits: int | None = None,
        threshold: Threshold = None,
    ) -> "Iterator[IBPCodec]":
        """Those that may store `sample`, uint8 (N, row_bytes), in the fewest bytes, the preferred first."""
        percent = threshold_percent(threshold)
        if chunk_bits is not None:
            check_chunk_bits(chunk_bits, sample.shape[1])
        widths = [chunk_bits] if chunk_bits else _chunk_bits_for(sample.shape[1])
        fitted = ops.fit_positions(sample, widths if percent is None else [])
        for i, width in enumerate(widths):
            if isinstance(percent, int):
                yield cls.of_masks(ops.fit_threshold(fitted.ones, len(sample), width, percent))
                continue
            if percent is None:
                yield cls.of_masks(fitted.masks[i])
            yield cls.of_masks(ops.fit_sweep(sample, fitted.ones, width))

    @classmethod
    def of_masks(cls, masks: Masks) -> "IBPCodec":
        """The codec with these masks; the width of the chunks is that of their dtype."""
        return cls(masks.mask, masks.bitval, 8 * masks.mask.itemsize)

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

    def decode_row(self, stored: bytes) -> bytes:
        """One encoded row, by the NumPy definition: slow. Raises FormatError that says what is wrong."""
        return decode_row(stored, Masks(self.mask, self.bitval))

    def describe(self) -> dict[str, object]:
        """Its parameters in words and numbers, for people."""
        return {
            "version": self.version,
            "chunk_bits": self.chunk_bits,
            "num_chunks": len(self.mask),
            "row_bits": 8 * self.row_bytes,
            "invariant_bits": int(np.unpackbits(self.mask.view(np.uint8)).sum()),
        }

    def part_bits(self, rows: Bytes) -> dict[str, int]:
        """Bits by part of a stored row, of all `rows`, uint8 (N, row_bytes), together; for people."""
        masks = Masks(self.mask, self.bitval)
        sizes = ops.stored_sizes(self, rows)
        is_encoded = sizes < self.row_bytes
        takes_part = participation(as_chunks(rows[is_encoded], self.chunk_bits), masks)
        payload_bits = takes_part.size * self.chunk_bits - int((takes_part @ popcount(self.mask)).sum())
        return {
            "participation": takes_part.size,
            "payload": payload_bits,
            "padding": 8 * int(sizes[is_encoded].sum()) - takes_part.size - payload_bits,
            "raw rows": 8 * int(sizes[~is_encoded].sum()),
        }

    def __repr__(self) -> str:
        return f"IBPCodec({self.row_bytes} bytes in chunks of {self.chunk_bits} bits)"

    def __reduce__(self) -> tuple[object, ...]:
        return IBPCodec, (self.mask, self.bitval, self.chunk_bits)


def check_chunk_bits(chunk_bits: int, row_bytes: int = 0) -> None:
    """Raises ValueError unless chunks of `chunk_bits` bits exist and divide rows of `row_bytes` bytes."""
    if chunk_bits not in CHUNK_BITS:
        raise ValueError(f"chunk_bits is {chunk_bits}, want 8, 16, 32 or 64")
    if row_bytes % (chunk_bits // 8):
        raise ValueError(f"chunk_bits is {chunk_bits}, which does not divide rows of {row_bytes} bytes")


def _chunk_bits_for(row_bytes: int) -> list[int]:
    """The widths that automatic fitting tries, the preferred first."""
    dividing = [bits for bits in CHUNK_BITS if row_bytes % (bits // 8) == 0]
    return [bits for bits in dividing if bits != 8] or dividing


def threshold_percent(threshold: Threshold) -> int | Literal["sweep"] | None:
    """The paper's threshold as a whole number of percent; "sweep" and None stay. ValueError for others."""
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
