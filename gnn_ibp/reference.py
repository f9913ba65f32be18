"""Invariant Bit Packing in plain NumPy: the definition of row format version 1, and the oracle of the tests.

A row of V chunks of W bits (S = W / 8 bytes) becomes

    participation bits   bit j is byte j/8, bit j%8; zeros up to a multiple of S bytes
    payload              W-bit little-endian words, each filled from its most significant bit down: chunk j
                         adds, from high to low, the bits where mask[j] has a 0 if it participates, all W
                         bits if not; the unused low bits of the last word are 0

where chunk j participates if chunk & mask[j] == bitval[j]. A row that takes V * S bytes or more is stored
raw. The width of the chunks is that of `mask`'s dtype. Slow, and meant to be read.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError

Bytes = NDArray[np.uint8]
Words = NDArray[np.unsignedinteger]

SWEEP = range(70, 100, 5)
"""The thresholds, in percent, that the paper tries."""


@dataclass(frozen=True)
class Masks:
    """Per chunk position, shared by all rows: which bits are invariant, and their values. Both (V,)."""

    mask: Words
    bitval: Words


def as_chunks(rows: Bytes, chunk_bits: int) -> Words:
    """rows, uint8 (N, row_bytes), as (N, V) chunks; not a copy where none is needed."""
    word = np.dtype(f"<u{chunk_bits // 8}")
    shape = len(rows), rows.shape[1] // word.itemsize
    chunks = np.ascontiguousarray(rows).reshape(-1).view(word).reshape(shape)
    return chunks.astype(f"uint{chunk_bits}", copy=False)


def participation(chunks: Words, masks: Masks) -> NDArray[np.bool_]:
    """(N, V) whether each chunk has the invariant bits of its position."""
    takes_part: NDArray[np.bool_] = (chunks & masks.mask) == masks.bitval
    return takes_part


def popcount(words: Words) -> NDArray[np.int64]:
    """Ones in each word."""
    words = np.ascontiguousarray(words)
    bits = np.unpackbits(words.reshape(-1).view(np.uint8)).reshape(*words.shape, 8 * words.itemsize)
    counts: NDArray[np.int64] = bits.sum(axis=-1, dtype=np.int64)
    return counts


def stored_sizes(rows: Bytes, masks: Masks) -> NDArray[np.int64]:
    """(N,) bytes that each row takes when stored."""
    word_bytes, num_chunks = masks.mask.itemsize, len(masks.mask)
    takes_part = participation(as_chunks(rows, 8 * word_bytes), masks)
    payload_bits = 8 * word_bytes * num_chunks - takes_part @ popcount(masks.mask)
    encoded = participation_bytes(num_chunks, word_bytes) + -(-payload_bits // (8 * word_bytes)) * word_bytes
    return np.minimum(encoded, word_bytes * num_chunks)


def participation_bytes(num_chunks: int, word_bytes: int) -> int:
    """Bytes of the participation bits."""
    return -(-((num_chunks + 7) // 8) // word_bytes) * word_bytes


def encode_row(row: bytes, masks: Masks) -> bytes:
    """The row as stored: it is encoded if that is shorter than `row`, else it is `row`."""
    word_bytes, num_chunks = masks.mask.itemsize, len(masks.mask)
    chunks = as_chunks(np.frombuffer(row, np.uint8).reshape(1, -1), 8 * word_bytes)
    takes_part = participation(chunks, masks)[0]
    head = np.packbits(takes_part, bitorder="little").tobytes()
    head = head.ljust(participation_bytes(num_chunks, word_bytes), b"\0")
    stream = "".join(
        bit
        for j, chunk in enumerate(chunks[0])
        for bit, invariant in zip(_bits(chunk), _bits(masks.mask[j]), strict=True)
        if invariant == "0" or not takes_part[j]
    )
    width = 8 * word_bytes
    words = [stream[at : at + width].ljust(width, "0") for at in range(0, len(stream), width)]
    stored = head + b"".join(int(word, 2).to_bytes(word_bytes, "little") for word in words)
    return stored if len(stored) < len(row) else row


def decode_row(stored: bytes, masks: Masks) -> bytes:
    """The row that `encode_row` encoded; not for rows stored raw.

    Raises FormatError unless `stored` is exactly one well-formed encoded row.
    """
    word_bytes, num_chunks = masks.mask.itemsize, len(masks.mask)
    width = 8 * word_bytes
    head_bytes = participation_bytes(num_chunks, word_bytes)
    if len(stored) < head_bytes or len(stored) >= num_chunks * word_bytes:
        raise FormatError(f"no encoded row has {len(stored)} bytes here")
    head = np.unpackbits(np.frombuffer(stored[:head_bytes], np.uint8), bitorder="little")
    takes_part = head[:num_chunks].astype(np.bool_)
    payload_bits = int(num_chunks * width - takes_part @ popcount(masks.mask))
    if len(stored) != head_bytes + -(-payload_bits // width) * word_bytes:
        raise FormatError("the participation bits announce a payload of another size")
    words = np.frombuffer(stored[head_bytes:], f"<u{word_bytes}")
    stream = "".join(_bits(word) for word in words)
    if head[num_chunks:].any() or "1" in stream[payload_bits:]:
        raise FormatError("the padding is not zero")

    row, at = b"", 0
    for j in range(num_chunks):
        chunk = ""
        for invariant, value in zip(_bits(masks.mask[j]), _bits(masks.bitval[j]), strict=True):
            left_out = invariant == "1" and takes_part[j]
            chunk += value if left_out else stream[at]
            at += not left_out
        row += int(chunk, 2).to_bytes(word_bytes, "little")
    return row


def fit_threshold(rows: Bytes, chunk_bits: int, percent: int) -> Masks:
    """The paper's rule: a bit is invariant if more than `percent` of 100 rows, 50 to 99, agree on it."""
    num_rows = len(rows)
    ones = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    set_bits = 100 * ones > percent * num_rows
    clear_bits = 100 * ones < (100 - percent) * num_rows
    mask = np.packbits(set_bits | clear_bits, bitorder="little")
    bitval = np.packbits(set_bits, bitorder="little")
    return Masks(as_chunks(mask[None], chunk_bits)[0], as_chunks(bitval[None], chunk_bits)[0])


def fit_sweep(rows: Bytes, chunk_bits: int) -> Masks:
    """The paper's sweep: the threshold that saves the most bits; the smallest of equal ones."""

    def saved_bits(masks: Masks) -> int:
        takes_part = participation(as_chunks(rows, chunk_bits), masks)
        return int(np.maximum(0, takes_part @ popcount(masks.mask) - len(masks.mask)).sum())

    return max((fit_threshold(rows, chunk_bits, percent) for percent in SWEEP), key=saved_bits)


def fit_positions(rows: Bytes, chunk_bits: int) -> Masks:
    """Each position by itself: bits are added one by one, see `fit_position`."""
    fitted = [fit_position(column) for column in as_chunks(rows, chunk_bits).T]
    dtype = f"uint{chunk_bits}"
    return Masks(np.array([m for m, _ in fitted], dtype), np.array([v for _, v in fitted], dtype))


def fit_position(chunks: Words) -> tuple[int, int]:
    """mask and bitval of one position, from its chunks (N,).

    Each step adds the bit, with the value, that the most of the rows still matching agree on; the highest of
    equal bits, 0 before 1. Of the prefixes of this sequence the one with the largest (bits * rows matching)
    is kept, the shortest of equal ones.
    """
    width = 8 * chunks.itemsize
    mask = bitval = best_mask = best_bitval = best_score = 0
    matching = [int(chunk) for chunk in chunks]
    for length in range(1, width + 1):
        most, bit, value = -1, 0, 0
        for candidate in reversed(range(width)):
            if mask >> candidate & 1:
                continue
            ones = sum(chunk >> candidate & 1 for chunk in matching)
            for agree, agreed in ((len(matching) - ones, 0), (ones, 1)):
                if agree > most:
                    most, bit, value = agree, candidate, agreed
        mask |= 1 << bit
        bitval |= value << bit
        matching = [chunk for chunk in matching if chunk >> bit & 1 == value]
        if length * len(matching) > best_score:
            best_mask, best_bitval, best_score = mask, bitval, length * len(matching)
    return best_mask, best_bitval


def fit(rows: Bytes, chunk_bits: int) -> Masks:
    """The default: `fit_positions`, or `fit_sweep` where its masks store `rows` in fewer bytes."""
    candidates = fit_positions(rows, chunk_bits), fit_sweep(rows, chunk_bits)
    return min(candidates, key=lambda masks: int(stored_sizes(rows, masks).sum()))


def _bits(word: np.unsignedinteger) -> str:
    """The bits of a word, the highest first."""
    return f"{int(word):0{8 * word.itemsize}b}"
