"""IBP2Codec: short codes for signs and exponents, row format version 2."""

from collections.abc import Iterator
from functools import cached_property

from gnn_ibp import _kernels, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.fit_sample import fit_sample
from gnn_ibp.ibp2 import fit
from gnn_ibp.ibp2.params import Params
from gnn_ibp.ibp2.parts import part_bits
from gnn_ibp.ibp2.reference import decode_row
from gnn_ibp.ibp2.split import Split
from gnn_ibp.row_bytes import Array, DType
from gnn_ibp.row_codec import RowCodec, smallest
from gnn_ibp.row_type import dtype_name
from gnn_ibp.rows import Bytes


class IBP2Codec(RowCodec):
    """Row format version 2. Signs and exponents of the chunks become short codes, the rest stays as it is.

    tables: what all rows share. Exact for whatever bits the rows hold. `gnn_ibp.ibp2` defines the format.
    """

    version = 2
    read_since = "0.1.0"
    announces_size = False

    def __init__(self, tables: Params) -> None:
        self.tables = tables

    @classmethod
    def fit(cls, rows: Array, seed: int = 0) -> "IBP2Codec":
        """The codec that stores a seeded sample of `rows` (N, ...), NumPy or torch, in the fewest bytes.

        The dtype says which bits of a number are its sign and exponent; those of integers are found.
        """
        sample = fit_sample(rows, seed)
        return smallest(cls.candidates(sample, split_of(rows.dtype)), sample)

    @classmethod
    def candidates(cls, sample: Bytes, split: Split) -> "Iterator[IBP2Codec]":
        """Those that may store `sample`, uint8 (N, row_bytes), in the fewest bytes, the preferred first."""
        return map(cls, fit.candidates(sample, split, ops.KernelCounting()))

    @classmethod
    def from_bytes(cls, block: bytes | memoryview, num_chunks: int) -> "IBP2Codec":
        """The codec with this parameter block, for rows of `num_chunks` chunks.

        Raises FormatError that names the rule which the block breaks.
        """
        return cls(Params.from_bytes(bytes(block), num_chunks))

    def to_bytes(self) -> bytes:
        """The parameter block."""
        return self.tables.to_bytes()

    @classmethod
    def from_params(cls, row_bytes: int, params: bytes) -> "IBP2Codec":
        """The codec with this parameter block, for rows of `row_bytes` bytes. Raises as `from_bytes`."""
        chunk_bytes = max(1, params[1] // 8) if len(params) > 1 else 1
        if row_bytes % chunk_bytes:
            raise FormatError(
                f"the codec's parameters are damaged: W is {params[1]}, rows have {row_bytes} bytes"
            )
        return cls.from_bytes(params, row_bytes // chunk_bytes)

    @cached_property
    def params(self) -> bytes:
        """The parameter block."""
        return self.to_bytes()

    @property
    def row_bytes(self) -> int:
        """Of a raw row."""
        return self.tables.row_bytes

    @property
    def unit(self) -> int:
        """S, bytes of a chunk; stored rows are multiples of it."""
        return self.tables.chunk_bytes

    @cached_property
    def kernel(self) -> _kernels.RowCodec:
        """What the CPU kernels take."""
        return ops.ibp2_codec(self.params, self.row_bytes)

    @cached_property
    def device_kernel(self) -> ops.DeviceKernel | None:
        """What decodes its rows on a device; None for 8-bit chunks."""
        return ops.ibp2_kernel(self.tables)

    def decode_row(self, stored: bytes) -> bytes:
        """One encoded row, by the NumPy definition: slow. Raises FormatError that says what is wrong."""
        return decode_row(stored, self.tables)

    def describe(self) -> dict[str, object]:
        """Its parameters in words and numbers, for people."""
        tables = self.tables
        sparse = {"zero": f"{tables.zero:#x}", "levels": tables.levels} if tables.kind == "S" else {}
        return {
            "version": self.version,
            "kind": tables.kind,
            "chunk_bits": tables.chunk_bits,
            "num_chunks": tables.num_chunks,
            "sign_bits": tables.sign_bits,
            "head_bits": tables.head_bits,
            "tail_bits": tables.tail_bits,
            "zero_bits": tables.zero_bits,
            **sparse,
            "codes (k1/g)": " ".join(f"{code.k1}/{code.g}" for code in tables.codes),
        }

    def part_bits(self, rows: Bytes) -> dict[str, int]:
        """Bits by part of a stored row, of all `rows`, uint8 (N, row_bytes), together; for people."""
        return part_bits(rows, self.tables)

    def __repr__(self) -> str:
        chunks = f"{self.row_bytes} bytes in chunks of {self.tables.chunk_bits} bits"
        return f"IBP2Codec({chunks}, kind {self.tables.kind})"

    def __reduce__(self) -> tuple[object, ...]:
        return IBP2Codec.from_bytes, (self.params, self.tables.num_chunks)


def split_of(dtype: DType) -> Split:
    """Which bits of a number of this dtype are its sign and exponent; of integers all, the fit tells more."""
    return Split.of(dtype_name(dtype), dtype.itemsize)
