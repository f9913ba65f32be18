"""RowCodec: the narrow interface all row formats share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Self, TypeVar

import numpy as np

from gnn_ibp import _kernels, ops
from gnn_ibp.packed_rows import PackedRows
from gnn_ibp.row_bytes import Array, as_row_bytes, from_row_bytes
from gnn_ibp.rows import Bytes

Codec = TypeVar("Codec", bound="RowCodec")


class RowCodec(ABC):
    """A row format with its parameters: all that files, caches and readers know of one. Immutable.

    version:        of the row format, as in file headers.
    read_since:     the first gnn_ibp that reads it, as told to those that do not; "" of version 1.
    announces_size: whether an encoded row tells its size, which the in-place layout needs.
    """

    version: ClassVar[int]
    read_since: ClassVar[str]
    announces_size: ClassVar[bool]

    @classmethod
    @abstractmethod
    def from_params(cls, row_bytes: int, params: bytes) -> Self:
        """The codec with these `params`. Raises FormatError where they are no codec's for such rows."""

    @property
    @abstractmethod
    def params(self) -> bytes:
        """What `from_params` makes the codec of again."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Of a raw row."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """Stored rows are multiples of this many bytes."""

    @property
    @abstractmethod
    def kernel(self) -> _kernels.RowCodec:
        """What the CPU kernels take."""

    @property
    @abstractmethod
    def device_kernel(self) -> ops.DeviceKernel | None:
        """What decodes its rows on a device; None where nothing does."""

    @abstractmethod
    def decode_row(self, stored: bytes) -> bytes:
        """One encoded row, by the NumPy definition: slow. Raises FormatError that says what is wrong."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Its parameters in words and numbers, for people."""

    @abstractmethod
    def part_bits(self, rows: Bytes) -> dict[str, int]:
        """Bits by part of a stored row, of all `rows`, uint8 (N, row_bytes), together; for people."""

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
        return type(other) is type(self) and other.params == self.params

    def __hash__(self) -> int:
        return hash((self.version, self.params))


def smallest(codecs: Iterable[Codec], sample: Bytes) -> Codec:
    """The one that stores `sample`, uint8 (N, row_bytes), in the fewest bytes; the first of equals."""
    return min(codecs, key=lambda codec: int(ops.stored_sizes(codec, sample).sum()))
