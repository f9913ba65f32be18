"""Parameters of row format version 2: what all rows of a file share, and the block that holds them.

    byte 0   kind ('D' or 'S'), W, sf, E, z, levels (D: 0), number of classes, 0
         8   4 times 22 bytes, a class each: k1, g, 20 symbols; all that is unused is 0
        96   leaf, 32 numbers of W bits
             zero, one (D: 0)
             cls | sgn << 7, a byte for each of the n positions
             base, a number of W bits for each; n = V, or 1 for kind S

All little-endian. A chunk of W bits is s (sf bits) | e (E bits) | tail (w bits) | z zero bits, the most
significant first; its `top` is s and e as one number of sf + E bits.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.positions import Position, Positions
from gnn_ibp.ibp2.split import Split

Kind = Literal["D", "S"]

MAX_CLASSES = 4
NUM_LEAVES = 32
NUM_SYMBOLS = 20
"""The most that one code has: k1 = 3, g = 2."""

CLASS_BYTES = 2 + NUM_SYMBOLS
HEAD_BYTES = 8 + MAX_CLASSES * CLASS_BYTES


@dataclass(frozen=True)
class Code:
    """The code of a class: 2^k1 fields on level 1, the last g of them go on to level 2.

    symbols: a byte each, t << 6 | leaf number: those of A, then, if g > 0, those of B and C.
    """

    k1: int
    g: int
    symbols: bytes

    def __post_init__(self) -> None:
        """Raises FormatError for what is none; whether t may be 1 is not its concern."""
        _require_levels(self.k1, self.g)
        want = num_symbols(self.k1, self.g)
        _require(len(self.symbols) == want, f"a code has {len(self.symbols)} symbols, want {want}")
        for symbol in self.symbols:
            _require(not symbol & 0b1010_0000, "a symbol has a bit other than 6 and 4 to 0")

    @classmethod
    def from_bytes(cls, block: bytes) -> "Code":
        """The code in its 22 bytes. Raises FormatError, naming the rule that is broken."""
        k1, g = block[:2]
        _require_levels(k1, g)
        end = 2 + num_symbols(k1, g)
        _require(not any(block[end:]), "an unused symbol is not 0")
        return cls(k1, g, block[2:end])

    def to_bytes(self) -> bytes:
        """Its 22 bytes."""
        return bytes((self.k1, self.g)) + self.symbols.ljust(NUM_SYMBOLS, b"\0")

    @property
    def num_first(self) -> int:
        """|A|"""
        return (1 << self.k1) - self.g

    @property
    def num_second(self) -> int:
        """|B|"""
        return 4 * self.g - 1 if self.g else 0


@dataclass(frozen=True)
class Params:
    """The words of the format: `num_chunks` V, `chunk_bits` W, `sign_bits` sf, `head_bits` E, `zero_bits` z.

    codes: one a class. leaves: 32 numbers of E bits. zero: kind S, the chunk that is left out.
    positions: V of them, or 1 for kind S. Raises FormatError, naming the rule, for parameters that are none.
    """

    kind: Kind
    num_chunks: int
    chunk_bits: int
    sign_bits: int
    head_bits: int
    zero_bits: int
    levels: int
    codes: tuple[Code, ...]
    leaves: tuple[int, ...]
    zero: int
    positions: Sequence[Position]

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", Positions.of(self.positions))
        self._check_chunk()
        self._check_kind()
        self._check_codes()
        self._check_positions()

    @classmethod
    def from_bytes(cls, block: bytes, num_chunks: int) -> "Params":
        """The parameters in `block`, of rows of `num_chunks` chunks. Raises FormatError, naming the rule."""
        _require(len(block) >= HEAD_BYTES, f"{len(block)} bytes, want {HEAD_BYTES} and more")
        kind, chunk_bits, sign_bits, head_bits, zero_bits, levels, num_classes, reserved = block[:8]
        _require_width(chunk_bits)
        _require_classes(num_classes, MAX_CLASSES)
        _require(reserved == 0, f"byte 7 is {reserved}, want 0")
        num_positions = 1 if kind == ord("S") else num_chunks
        want = block_bytes(chunk_bits, num_positions)
        _require(len(block) == want, f"{len(block)} bytes, want {want}")

        classes_end = 8 + num_classes * CLASS_BYTES
        _require(not any(block[classes_end:HEAD_BYTES]), "an unused class is not 0")
        word = f"<u{chunk_bits // 8}"
        numbers = np.frombuffer(block, word, NUM_LEAVES + 1, HEAD_BYTES).tolist()
        positions_at = want - num_positions * (1 + chunk_bits // 8)
        cls_sgn = np.frombuffer(block, np.uint8, num_positions, positions_at).astype(np.int64)
        base = np.frombuffer(block, word, num_positions, positions_at + num_positions).astype(np.uint64)
        return cls(
            cast(Kind, chr(kind)),
            num_chunks,
            *(chunk_bits, sign_bits, head_bits, zero_bits, levels),
            tuple(Code.from_bytes(block[at:][:CLASS_BYTES]) for at in range(8, classes_end, CLASS_BYTES)),
            tuple(numbers[:NUM_LEAVES]),
            numbers[NUM_LEAVES],
            Positions(cls_sgn & 0x7F, cls_sgn >> 7, base),
        )

    def to_bytes(self) -> bytes:
        """The parameter block."""
        word = f"<u{self.chunk_bytes}"
        head = struct.pack(
            "8B",
            ord(self.kind),
            *(self.chunk_bits, self.sign_bits, self.head_bits, self.zero_bits),
            *(self.levels, len(self.codes), 0),
        )
        codes = b"".join(code.to_bytes() for code in self.codes)
        return b"".join(
            (
                head,
                codes.ljust(MAX_CLASSES * CLASS_BYTES, b"\0"),
                np.array((*self.leaves, self.zero), word).tobytes(),
                (self.cls | self.sgn << 7).astype(np.uint8).tobytes(),
                self.base.astype(word).tobytes(),
            )
        )

    @property
    def chunk_bytes(self) -> int:
        """S"""
        return self.chunk_bits // 8

    @property
    def row_bytes(self) -> int:
        """Of a raw row."""
        return self.num_chunks * self.chunk_bytes

    @property
    def unit(self) -> int:
        """Encoded rows are multiples of so many bytes."""
        return max(4, self.chunk_bytes)

    @property
    def split(self) -> Split:
        """W, sf and E."""
        return Split(self.chunk_bits, self.sign_bits, self.head_bits)

    @property
    def top_bits(self) -> int:
        """sf + E, of a RAW field."""
        return self.sign_bits + self.head_bits

    @property
    def tail_bits(self) -> int:
        """w"""
        return self.chunk_bits - self.top_bits - self.zero_bits

    @property
    def cls(self) -> NDArray[np.int64]:
        """(positions,) the class of each."""
        return self._positions.cls

    @property
    def sgn(self) -> NDArray[np.int64]:
        """(positions,) of each."""
        return self._positions.sgn

    @property
    def base(self) -> NDArray[np.uint64]:
        """(positions,) of each."""
        return self._positions.base

    @property
    def _positions(self) -> Positions:
        return cast(Positions, self.positions)

    @cached_property
    def tops(self) -> NDArray[np.uint64]:
        """(positions, 20) s and e that each symbol of its class stands for; unused ones repeat the first."""
        leaf = np.array(self.leaves, np.uint64)
        sgn, base = self.sgn.astype(np.uint64)[:, None], self.base[:, None]
        symbols = [code.symbols + code.symbols[:1] * (NUM_SYMBOLS - len(code.symbols)) for code in self.codes]
        symbol = np.frombuffer(b"".join(symbols), np.uint8).reshape(-1, NUM_SYMBOLS)[self.cls]
        e = (base + leaf[symbol & 31]) & np.uint64((1 << self.head_bits) - 1)
        s = sgn ^ (symbol >> 6)
        tops: NDArray[np.uint64] = s << np.uint64(self.head_bits) | e if self.sign_bits else e
        return tops

    def _check_chunk(self) -> None:
        _require(self.num_chunks >= 0, f"V is {self.num_chunks}, want 0 or more")
        _require_width(self.chunk_bits)
        _require(self.sign_bits in (0, 1), f"sf is {self.sign_bits}, want 0 or 1")
        most = self.chunk_bits - self.sign_bits
        _require(1 <= self.head_bits <= most, f"E is {self.head_bits}, want 1 to {most}")
        most -= self.head_bits
        _require(0 <= self.zero_bits <= most, f"z is {self.zero_bits}, want 0 to {most}")

    def _check_kind(self) -> None:
        _require(self.kind in ("D", "S"), f"kind is {self.kind!r}, want 'D' or 'S'")
        if self.kind == "D":
            _require(self.levels == 0, f"levels is {self.levels}, want 0 for kind D")
            _require(self.zero == 0, f"zero is {self.zero}, want 0 for kind D")
        else:
            _require(1 <= self.levels <= 3, f"levels is {self.levels}, want 1 to 3 for kind S")
            _require(0 <= self.zero < 1 << self.chunk_bits, f"zero is {self.zero}, want W bits")

    def _check_codes(self) -> None:
        most = MAX_CLASSES if self.kind == "D" else 1
        _require_classes(len(self.codes), most)
        has_sign = any(symbol >> 6 for code in self.codes for symbol in code.symbols)
        _require(self.sign_bits == 1 or not has_sign, "a symbol has t = 1, want 0 where sf is 0")
        _require(len(self.leaves) == NUM_LEAVES, f"{len(self.leaves)} leaves, want {NUM_LEAVES}")
        for number, leaf in enumerate(self.leaves):
            _require(
                0 <= leaf < 1 << self.head_bits, f"leaf {number} is {leaf:#x}, want {self.head_bits} bits"
            )

    def _check_positions(self) -> None:
        want = self.num_chunks if self.kind == "D" else 1
        _require(len(self.positions) == want, f"{len(self.positions)} positions, want {want}")
        bad = (self.cls < 0) | (self.cls >= len(self.codes)) | (self.sgn < 0) | (self.sgn > self.sign_bits)
        bad |= self.base > self.split.head_mask
        for j in np.flatnonzero(bad)[:1].tolist():
            cls, sgn, base = self.positions[j]
            _require(0 <= cls < len(self.codes), f"position {j} has class {cls} of {len(self.codes)}")
            _require(0 <= sgn <= self.sign_bits, f"position {j} has sgn {sgn}, want 0 where sf is 0")
            _require(False, f"position {j} has base {base:#x}, want {self.head_bits} bits")


def num_symbols(k1: int, g: int) -> int:
    """|A| + |B| + |C|"""
    return (1 << k1) - g + (4 * g - 1 + 7 if g else 0)


def block_bytes(chunk_bits: int, num_positions: int) -> int:
    """Bytes of the parameter block."""
    chunk_bytes = chunk_bits // 8
    return HEAD_BYTES + (NUM_LEAVES + 1) * chunk_bytes + num_positions * (1 + chunk_bytes)


def _require_width(chunk_bits: int) -> None:
    _require(chunk_bits in (8, 16, 32, 64), f"W is {chunk_bits}, want 8, 16, 32 or 64")


def _require_classes(count: int, most: int) -> None:
    _require(1 <= count <= most, f"number of classes is {count}, want 1 to {most}")


def _require_levels(k1: int, g: int) -> None:
    _require(0 <= k1 <= 3, f"k1 is {k1}, want 0 to 3")
    _require(0 <= g <= 2, f"g is {g}, want 0 to 2")
    _require(k1 > 0 or g == 0, f"g is {g}, want 0 where k1 is 0")  # and so g <= 2^k1


def _require(rule_is_kept: bool, broken: str) -> None:
    if not rule_is_kept:
        raise FormatError(f"the parameters of row format 2 are damaged: {broken}")
