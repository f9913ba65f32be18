"""Rows, codecs and requests for the gather-decode kernel, made from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import IBPCodec
from gnn_ibp.row_codec import RowCodec

Rows = NDArray[np.uint8]
Ids = NDArray[np.int64]

MASKS = ("none", "all", "one bit", "uniform", "random")
"""Which bits of the chunks are invariant."""

ROWS = ("mixed", "encoded", "raw")
"""How many of a row's chunks have them: some, all, none."""

HOSTS = ("in place", "condensed", "some")
"""What the second source holds: every row, without a slot table, or some of the rows."""

ROW_BYTES = (2, 4, 6, 8, 12, 20, 64, 100, 124, 128, 132, 200, 256, 400, 512, 516, 520, 1024, 2408, 3072, 5732)
LONG_ROW_BYTES = (14812, 65536, 100004, 100008)
TILES = (32, 1, 5, 8)


@dataclass(frozen=True)
class Case:
    """A request: rows ids[i] of the data set `rows` to out[at[i]].

    cache_ids: rows in the first source, condensed at `align` bytes. host: of HOSTS, or "nothing".
    reads_once: whether no row is so long that some of it is read twice.
    """

    name: str
    codec: RowCodec
    rows: Rows
    cache_ids: Ids
    host: str
    align: int
    ids: Ids
    at: Ids | None
    num_out: int
    tile: int
    grid: int | None
    reads_once: bool


def cases(chunk_bits: int, row_bytes: tuple[int, ...] = ROW_BYTES) -> Iterator[Case]:
    """For every row length that the chunks divide: each kind of host, kinds of masks and rows in turns."""
    number = 0
    for size in row_bytes:
        if size % (chunk_bits // 8):
            continue
        for host in HOSTS:
            yield make_case(chunk_bits, size, MASKS[-1 - number % 4], ROWS[number // 4 % 2], host, number)
            number += 1


def all_kinds(chunk_bits: int, row_bytes: int) -> Iterator[Case]:
    """Rows of one length: every kind of mask and of rows, kinds of host in turns."""
    for number, (mask, rows) in enumerate((mask, rows) for mask in MASKS for rows in ROWS):
        yield make_case(chunk_bits, row_bytes, mask, rows, HOSTS[number % 2], number)


def make_case(chunk_bits: int, row_bytes: int, mask: str, kind: str, host: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, chunk_bits, row_bytes])
    num_rows = 70 if row_bytes <= 4096 else 9
    codec = make_codec(chunk_bits, row_bytes, mask, rng)
    name = f"{row_bytes} bytes of {chunk_bits}-bit chunks, mask {mask}, rows {kind}, host {host}"
    reads_once = row_bytes <= 4096  # a head of more than 512 bytes is read twice
    return request(name, codec, make_rows(codec, num_rows, kind, rng), host, seed, reads_once)


def request(name: str, codec: RowCodec, rows: Rows, host: str, seed: int, reads_once: bool) -> Case:
    """For rows of a data set; some lie in the cache."""
    rng = np.random.default_rng([seed, len(rows)])
    num_rows, num_ids = len(rows), 3 * len(rows) // 2
    return Case(
        name,
        codec,
        rows,
        rng.permutation(num_rows)[: num_rows // 3],
        host,
        max(4, codec.unit) if seed % 2 else 16,
        rng.integers(0, num_rows, num_ids),
        rng.permutation(2 * num_ids)[:num_ids] if seed % 3 else None,
        2 * num_ids,
        TILES[seed % len(TILES)],
        1 + seed % 2 if seed % 5 else None,
        reads_once,
    )


def make_codec(chunk_bits: int, row_bytes: int, mask: str, rng: np.random.Generator) -> IBPCodec:
    """A codec with random values under masks of one of MASKS."""
    word = np.dtype(f"u{chunk_bits // 8}")
    num_chunks = row_bytes // word.itemsize
    ones = np.array(~np.zeros((), word))
    if mask == "none":
        masks = np.zeros(num_chunks, word)
    elif mask == "all":
        masks = np.full(num_chunks, ones)
    elif mask == "one bit":
        masks = np.left_shift(word.type(1), rng.integers(0, chunk_bits, num_chunks).astype(word))
    elif mask == "uniform":  # as many bits everywhere, at places of their own
        bits = np.zeros((num_chunks, chunk_bits), np.uint8)
        bits[:, : chunk_bits * 3 // 8] = 1
        masks = _words(rng.permuted(bits, axis=1), word)
    else:
        density = rng.random((num_chunks, 1))
        masks = _words((rng.random((num_chunks, chunk_bits)) < density).astype(np.uint8), word)
    return IBPCodec(masks, masks & _random_words(num_chunks, word, rng), chunk_bits)


def make_rows(codec: IBPCodec, num_rows: int, kind: str, rng: np.random.Generator) -> Rows:
    """uint8 (num_rows, row_bytes): of `kind`, one of ROWS."""
    words = codec.mask.dtype
    rows = _random_words(num_rows * len(codec.mask), words, rng).reshape(num_rows, -1)
    share = {"mixed": 1.5 * rng.random((num_rows, 1)), "encoded": 1.0, "raw": 0.0}[kind]
    takes_part = rng.random(rows.shape) < share
    return np.where(takes_part, (rows & ~codec.mask) | codec.bitval, rows).astype(words).view(np.uint8)


def _random_words(count: int, word: np.dtype[np.unsignedinteger], rng: np.random.Generator) -> NDArray:
    return rng.integers(0, 256, count * word.itemsize, np.uint8).view(word)


def _words(bits: NDArray[np.uint8], word: np.dtype[np.unsignedinteger]) -> NDArray:
    return np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(word)
