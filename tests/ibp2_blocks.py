"""Parameter blocks of row format version 2 that are legal and strange, and rows that suit them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels, ops

Bytes = NDArray[np.uint8]
Words = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class KernelCodec:
    """What `ops` needs of a codec, made of nothing but a parameter block."""

    block: bytes
    row_bytes: int
    kernel: _kernels.RowCodec = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", ops.ibp2_codec(self.block, self.row_bytes))

    @property
    def unit(self) -> int:
        return self.kernel.unit


@dataclass(frozen=True)
class Shape:
    """Kind D or S, V chunks of W bits: sf sign bits, E head bits, z zero bits; levels of the bitmap."""

    kind: str
    num_chunks: int
    chunk_bits: int
    sign_bits: int
    head_bits: int
    zero_bits: int = 0
    levels: int = 0

    @property
    def word(self) -> str:
        return f"<u{self.chunk_bits // 8}"

    @property
    def num_positions(self) -> int:
        return self.num_chunks if self.kind == "D" else 1


def random_shape(rng: np.random.Generator, num_chunks: int) -> Shape:
    chunk_bits = int(rng.choice([8, 16, 32, 64]))
    sign_bits = int(rng.integers(0, 2))
    head_bits = int(rng.integers(1, chunk_bits - sign_bits + 1))
    zero_bits = int(rng.integers(0, chunk_bits - sign_bits - head_bits + 1)) * int(rng.integers(0, 2))
    kind = str(rng.choice(["D", "S"]))
    levels = int(rng.integers(1, 4)) if kind == "S" else 0
    return Shape(kind, num_chunks, chunk_bits, sign_bits, head_bits, zero_bits, levels)


def random_block(rng: np.random.Generator, shape: Shape) -> bytes:
    """Any classes, symbols, leaves and positions that the format allows."""
    num_classes = int(rng.integers(1, 5)) if shape.kind == "D" else 1
    head = [ord(shape.kind), shape.chunk_bits, shape.sign_bits, shape.head_bits, shape.zero_bits]
    head += [shape.levels, num_classes, 0]
    classes = b"".join(_random_class(rng, shape.sign_bits) for _ in range(num_classes))
    cls_sgn = rng.integers(0, num_classes, shape.num_positions)
    cls_sgn |= rng.integers(0, shape.sign_bits + 1, shape.num_positions) << 7
    zero = _words(rng, shape, 1, shape.chunk_bits * int(rng.integers(0, 2)))
    return b"".join(
        (
            bytes(head),
            classes.ljust(4 * 22, b"\0"),
            _words(rng, shape, 32, shape.head_bits).tobytes(),
            zero.tobytes() if shape.kind == "S" else bytes(shape.chunk_bits // 8),
            cls_sgn.astype(np.uint8).tobytes(),
            _words(rng, shape, shape.num_positions, shape.head_bits).tobytes(),
        )
    )


def suitable_rows(rng: np.random.Generator, shape: Shape, block: bytes, num_rows: int) -> Bytes:
    """(num_rows, row_bytes) rows with more and more chunks that have no symbol; the first has none."""
    size = shape.chunk_bits // 8
    words = np.frombuffer(block, shape.word, 33, 96)
    positions = 96 + 33 * size
    cls_sgn = np.frombuffer(block, np.uint8, shape.num_positions, positions)
    base = np.frombuffer(block, shape.word, shape.num_positions, positions + shape.num_positions)
    rows = np.zeros((num_rows, shape.num_chunks), np.uint64)
    for i in range(num_rows):
        for j in range(shape.num_chunks):
            at = j if shape.kind == "D" else 0
            rows[i, j] = _coded(rng, shape, block, words[:32], int(cls_sgn[at]), int(base[at]))
    strange = rng.random(rows.shape) < np.linspace(0, 0.5, num_rows)[:, None] ** 2
    rows[strange] = rng.integers(0, 1 << 64, rows.shape, np.uint64)[strange] << np.uint64(shape.zero_bits)
    if shape.kind == "S":
        zeros = rng.random(rows.shape) < rng.choice([0, 0.5, 0.95, 1], (num_rows, 1))
        rows[zeros] = int(words[32])
    return rows.astype(shape.word).view(np.uint8)


def _coded(
    rng: np.random.Generator,
    shape: Shape,
    block: bytes,
    leaf: Words,
    cls_sgn: int,
    base: int,
) -> int:
    """A chunk with a symbol of its class, and any tail."""
    made = block[8 + 22 * (cls_sgn & 127) :][:22]
    k1, g = made[:2]
    num_symbols = (1 << k1) - g + (4 * g + 6 if g else 0)
    symbol = made[2 + min(int(rng.geometric(0.3)) - 1, num_symbols - 1)]
    e = (base + int(leaf[symbol & 31])) % (1 << shape.head_bits)
    s = (cls_sgn >> 7) ^ (symbol >> 6)
    tail_bits = shape.chunk_bits - shape.sign_bits - shape.head_bits
    tail = int(rng.integers(0, 1 << 63)) % (1 << tail_bits) >> shape.zero_bits << shape.zero_bits
    return (s << shape.head_bits | e) << tail_bits | tail


def _random_class(rng: np.random.Generator, sign_bits: int) -> bytes:
    k1 = int(rng.integers(0, 4))
    g = int(rng.integers(0, 3)) if k1 else 0
    num_symbols = (1 << k1) - g + (4 * g + 6 if g else 0)
    symbols = rng.integers(0, 32, num_symbols) | rng.integers(0, sign_bits + 1, num_symbols) << 6
    return bytes([k1, g, *symbols.tolist()]).ljust(22, b"\0")


def _words(rng: np.random.Generator, shape: Shape, count: int, bits: int) -> Words:
    """Numbers of `bits` bits, many of them near each other."""
    wide = rng.integers(0, 1 << 64, count, np.uint64)
    near = rng.integers(-8, 8, count).astype(np.int64).view(np.uint64)
    numbers = np.where(rng.random(count) < 0.5, wide, near)
    return (numbers & np.uint64((1 << bits) - 1)).astype(shape.word)
