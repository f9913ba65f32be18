"""Rows, codecs and requests of row format version 2 for the gather-decode kernels, made from a seed."""

from collections.abc import Iterator

import numpy as np
from gather_cases import Case, request
from ibp2_cases import random_params, rows_for

from gnn_ibp import IBP2Codec, ops
from gnn_ibp.ibp2.params import Params

ROW_BYTES = (2, 4, 6, 8, 12, 20, 64, 100, 124, 128, 132, 200, 256, 400, 512, 516, 520, 1024, 2408, 3072)
LONG_ROW_BYTES = (4608, 14812, 40000)
STAGED_BYTES = {"D": 4096, "S": 2048}
"""Stored rows of a kind that are longer are read where they lie."""

HOSTS = ("condensed", "some")
"""What the second source holds: every row, without a slot table, or some of the rows."""


def cases(
    kind: str, chunk_bits: int, row_bytes: tuple[int, ...] = ROW_BYTES, first_seed: int = 0
) -> Iterator[Case]:
    """For every row length that the chunks divide: each kind of host, tables of their own."""
    number = first_seed
    for size in row_bytes:
        if size % (chunk_bits // 8):
            continue
        for host in HOSTS:
            yield make_case(kind, chunk_bits, size, host, number)
            number += 1


def make_case(kind: str, chunk_bits: int, row_bytes: int, host: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, chunk_bits, row_bytes])
    params = params_for(rng, kind, chunk_bits, row_bytes)
    rows = rows_for(rng, params, 70 if row_bytes <= 4096 else 9)
    name = f"{row_bytes} bytes of {chunk_bits}-bit chunks, kind {kind}, host {host}, seed {seed}"
    codec = IBP2Codec(params)
    reads_once = ops.stored_sizes(codec, rows).max() <= STAGED_BYTES[kind]
    return request(name, codec, rows, host, seed, reads_once)


def params_for(rng: np.random.Generator, kind: str, chunk_bits: int, row_bytes: int) -> Params:
    """Legal parameters of rows of that kind, whatever else."""

    def drawn(seed: int, num_chunks: int) -> Params:
        return random_params(np.random.default_rng(seed), kind, num_chunks)

    seeds = iter(lambda: int(rng.integers(1 << 32)), -1)
    seed = next(seed for seed in seeds if drawn(seed, 1).chunk_bits == chunk_bits)
    return drawn(seed, 8 * row_bytes // chunk_bits)
