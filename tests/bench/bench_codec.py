"""Rows encoded, decoded and gathered, beside memcpy and gathers of raw rows: lines of tests/bench/bench.py.

Bytes are those of the raw rows.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from timing import Row, Setting, compare, rounds, threads

from gnn_ibp import IBPCodec, ops
from gnn_ibp.fit_sample import SAMPLE_ROWS
from gnn_ibp.ops import Source

Rows = NDArray[np.float32]
NUM_COLUMNS = 128
CHUNK_BITS = (64, 32, 16, 8)
SPARSE = {1433: 0.013, 3703: 0.009}
"""Share of ones in binary rows, by the number of columns: those of Cora and CiteSeer."""


def dense_rows(num_rows: int) -> Rows:
    """Rows like averaged word vectors: columns of a common sign and scale, and noise."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal(NUM_COLUMNS, np.float32)
    rows = rng.standard_normal((num_rows, NUM_COLUMNS), np.float32)
    rows *= 0.1
    rows += means
    return rows


def sparse_rows(num_rows: int, num_columns: int) -> Rows:
    """Bags of words: ones among zeros."""
    rng = np.random.default_rng(0)
    return (rng.random((num_rows, num_columns), np.float32) < SPARSE[num_columns]).astype(np.float32)


def as_bytes(rows: Rows) -> NDArray[np.uint8]:
    return rows.view(np.uint8).reshape(len(rows), -1)


def measure_decode(setting: Setting) -> Iterator[Row]:
    """Rows in order on one thread, beside a copy of the raw ones: 2 MB again and again, then 100 MB."""
    rows = dense_rows(1000 if setting.quick else 200_000)
    cached = rows[:4096]
    with threads(1):
        for bits in CHUNK_BITS:
            yield from _decode(cached, IBPCodec.fit(rows, bits), f"in cache, {bits}-bit chunks", 20, setting)
        codec = IBPCodec.fit(rows)
        yield from _decode(rows, codec, f"from memory, {codec.chunk_bits}-bit chunks", 1, setting)


def _decode(rows: Rows, codec: IBPCodec, where: str, times: int, setting: Setting) -> Iterator[Row]:
    raw = as_bytes(rows)
    out = np.zeros_like(raw)
    encoded = ops.encode_rows(codec, raw, align=8)
    runs = {
        f"128 float32 {where}": lambda: [ops.decode_all(codec, encoded, out) for _ in range(times)],
        "memcpy": lambda: [np.copyto(out, raw) for _ in range(times)],
    }
    note = f"{1 - int(ops.stored_sizes(codec, raw).sum()) / raw.nbytes:.1%} saved"
    yield from compare(times * raw.nbytes, "bytes", runs, "memcpy", setting.num_rounds, note=note)


def measure_gather(setting: Setting) -> Iterator[Row]:
    """Random rows from memory, many times the caches, beside gathers of the raw ones."""
    rows = dense_rows(1000 if setting.quick else 2_000_000)
    num_ids = 1000 if setting.quick else 200_000
    yield from _gathers(rows, num_ids, "128 float32, random rows", setting)


def measure_sparse(setting: Setting) -> Iterator[Row]:
    """Random rows of ones among zeros, beside gathers of the raw ones."""
    for num_columns in SPARSE:
        rows = sparse_rows(100 if setting.quick else 64_000_000 // num_columns, num_columns)
        num_ids = 100 if setting.quick else 20_000_000 // num_columns
        yield from _gathers(rows, num_ids, f"{num_columns} binary float32, random rows", setting)


def _gathers(rows: Rows, num_ids: int, what: str, setting: Setting) -> Iterator[Row]:
    codec = IBPCodec.fit(rows[:SAMPLE_ROWS])
    raw = as_bytes(rows)
    source = Source(ops.encode_rows(codec, raw, align=max(4, codec.unit)), None, codec)
    table, ids = torch.from_numpy(rows), np.random.default_rng(1).integers(0, len(rows), num_ids)
    out = np.zeros((num_ids, rows.shape[1]), np.float32)
    out_bytes, out_table, ids_table = as_bytes(out), torch.from_numpy(out), torch.from_numpy(ids)
    for number in (1, 2):
        name = f"{what}, {number} thread{'s' * (number > 1)}"
        baselines: dict[str, Callable[[], object]] = {
            "torch index_select, raw": lambda: torch.index_select(table, 0, ids_table, out=out_table)
        }
        if number == 1:
            baselines["numpy.take, raw"] = lambda: np.take(rows, ids, axis=0, out=out, mode="clip")
            baselines["memcpy in order"] = lambda: np.copyto(out, rows[:num_ids])
        runs = {name: lambda: ops.gather_decode(ids, [source], out_bytes), **baselines}
        with threads(number):
            seconds = rounds(runs, setting.num_rounds)
        for baseline in baselines:
            yield Row(name, out.nbytes, "bytes", seconds[name], baseline, seconds[baseline])


def measure_encode(setting: Setting) -> Iterator[Row]:
    """Rows encoded into fresh memory on one thread, beside a copy into fresh memory."""
    dense = dense_rows(1000 if setting.quick else 200_000)
    sparse = sparse_rows(100 if setting.quick else 20_000, 1433)
    with threads(1):
        for what, rows in {"128 float32": dense, "1433 binary float32": sparse}.items():
            codec, raw = IBPCodec.fit(rows), as_bytes(rows)
            runs = {
                what: lambda c=codec, raw=raw: ops.encode_rows(c, raw, align=8),
                "copy": lambda raw=raw: raw.copy(),
            }
            yield from compare(raw.nbytes, "bytes", runs, "copy", setting.num_rounds)


def measure_fit(setting: Setting) -> Iterator[Row]:
    """A codec fitted on a sample of rows on one thread, beside a copy of the sample."""
    rows = dense_rows(1000 if setting.quick else SAMPLE_ROWS)
    with threads(1):
        for bits in CHUNK_BITS[:3]:
            runs = {
                f"128 float32, {bits}-bit chunks": lambda bits=bits: IBPCodec.fit(rows, bits),
                "copy": lambda: rows.copy(),
            }
            yield from compare(rows.nbytes, "bytes", runs, "copy", setting.num_rounds)
