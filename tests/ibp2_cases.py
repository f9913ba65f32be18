"""Cases for row format version 2: golden vectors, legal parameters however strange, and rows for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.params import NUM_LEAVES, NUM_SYMBOLS, Code, Params, num_symbols
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.rows import Bytes

GOLDEN: list[dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "ibp2_golden.json").read_text())
GOLDEN_NAMES = [golden["name"] for golden in GOLDEN]

SPLITS = [(32, 1, 8), (16, 1, 8), (16, 1, 5), (64, 1, 11), (8, 1, 4), (8, 1, 5)]
"""(W, sf, E) of the floating-point dtypes."""

NUM_CHUNKS = [0, 1, 7, 255, 256, 257, 513]


def golden_named(name: str) -> dict[str, Any]:
    return GOLDEN[GOLDEN_NAMES.index(name)]


def golden_params(golden: dict[str, Any]) -> Params:
    return Params.from_bytes(bytes.fromhex(golden["block"]), golden["V"])


def random_params(rng: np.random.Generator, kind: str, num_chunks: int) -> Params:
    """Legal parameters: any widths, tables with repeated symbols, bases and leaves anywhere."""
    chunk_bits, sign_bits, head_bits = SPLITS[rng.integers(len(SPLITS))]
    if rng.random() < 0.5:
        chunk_bits, sign_bits = int(rng.choice([8, 16, 32, 64])), int(rng.integers(2))
        head_bits = int(rng.choice([1, rng.integers(1, chunk_bits - sign_bits + 1), chunk_bits - sign_bits]))
    zero_bits = int(rng.choice([0, rng.integers(chunk_bits - sign_bits - head_bits + 1)]))
    num_classes = int(rng.integers(1, 5)) if kind == "D" else 1
    is_spread = rng.random() < 0.3
    leaves = noise(rng, NUM_LEAVES, head_bits if is_spread else min(head_bits, 3)).tolist()
    bases = noise(rng, num_chunks if kind == "D" else 1, head_bits).tolist()
    return Params(
        kind,  # type: ignore[arg-type]
        num_chunks,
        *(chunk_bits, sign_bits, head_bits, zero_bits),
        0 if kind == "D" else int(rng.integers(1, 4)),
        tuple(random_code(rng, sign_bits) for _ in range(num_classes)),
        tuple(leaves),
        0 if kind == "D" else int(noise(rng, 1, int(rng.choice([0, chunk_bits])))[0]),
        tuple(
            Position(int(rng.integers(num_classes)), int(rng.integers(sign_bits + 1)), base) for base in bases
        ),
    )


def random_code(rng: np.random.Generator, sign_bits: int) -> Code:
    k1 = int(rng.integers(4))
    g = int(rng.integers(3)) if k1 else 0
    size = num_symbols(k1, g)
    symbols = rng.integers(NUM_LEAVES, size=size) | rng.integers(sign_bits + 1, size=size) << 6
    return Code(k1, g, bytes(symbols.tolist()))


def rows_for(rng: np.random.Generator, params: Params, num_rows: int) -> Bytes:
    """(num_rows, row_bytes): what the symbols stand for, RAW here and there where the code has it.

    The first row is noise, the last all `zero`.
    """
    if params.row_bytes == 0:
        return np.empty((num_rows, 0), np.uint8)
    shape = num_rows, params.num_chunks
    position = np.arange(params.num_chunks) if params.kind == "D" else np.zeros(params.num_chunks, np.int64)
    top = params.tops[position, (NUM_SYMBOLS * rng.random(shape) ** 3).astype(np.int64)]
    has_raw = np.array([code.g > 0 for code in params.codes])[params.cls[position]]
    is_raw = has_raw & (rng.random(shape) < rng.choice([0, 0.01, 0.3]))
    top[is_raw] = noise(rng, int(is_raw.sum()), params.top_bits)
    tail = noise(rng, shape, params.tail_bits)
    chunks = top << np.uint64(params.chunk_bits - params.top_bits) | tail << np.uint64(params.zero_bits)
    if params.kind == "S":
        chunks[rng.random(shape) < rng.choice([0.2, 0.5, 0.99])] = params.zero
    chunks[0] = noise(rng, params.num_chunks, params.chunk_bits)
    chunks[-1] = params.zero
    return chunks.astype(f"<u{params.chunk_bytes}").view(np.uint8)


def noise(rng: np.random.Generator, shape: int | tuple[int, int], bits: int) -> NDArray[np.uint64]:
    """Numbers of so many bits, 0 to 64."""
    return rng.integers(0, (1 << bits) - 1, shape, np.uint64, endpoint=True)


def special_floats(dtype: str, num_chunks: int, zeros: float) -> NDArray[Any]:
    """(8, num_chunks): NaN with payloads, -0, denormals and infinities among numbers, so many of them 0."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((8, num_chunks)).astype(dtype)
    rows[rng.random(rows.shape) < zeros] = 0
    word = rows.view(f"u{rows.itemsize}")
    infinity = int(np.array(np.inf, dtype).view(word.dtype))
    specials = np.array([infinity + 1, infinity + 77, infinity, 0, 1, 2, 3], word.dtype)
    specials = np.concatenate([specials, specials | word.dtype.type(1 << 8 * rows.itemsize - 1)])
    is_special = rng.random(rows.shape) < 0.03
    word[is_special] = rng.choice(specials, int(is_special.sum()))
    return rows
