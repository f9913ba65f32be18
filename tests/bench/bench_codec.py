"""Rows encoded, decoded and gathered, beside memcpy and gathers of raw rows: lines of tests/bench/bench.py.

Bytes are those of the raw rows. "version 1" and "version 2" are the row formats, each fitted on the rows.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from timing import Row, Run, Setting, compare, rounds, threads

from gnn_ibp import IBP2Codec, IBPCodec, ops
from gnn_ibp.fit_sample import SAMPLE_ROWS, fit_sample
from gnn_ibp.ops import Source
from gnn_ibp.row_codec import RowCodec

Rows = NDArray[np.float32]
NUM_COLUMNS = 128
CHUNK_BITS = (64, 32, 16, 8)
SPARSE = {1433: 0.013, 3703: 0.009}
"""Share of ones in binary rows, by the number of columns: those of Cora and CiteSeer."""

CACHED_BYTES = 2 << 20
"""Of dense rows that are decoded in cache, again and again."""

SPARSE_BYTES = {"in cache": 8 << 20, "past the caches": 32 << 20}
"""Of sparse rows; the second is a batch whose output does not stay in the caches."""

V1, V2, RAW_READER = "version 1", "version 2", "raw, same reader"


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


def fitted(rows: Rows) -> dict[str, RowCodec]:
    """A codec of each format."""
    sample = rows[:SAMPLE_ROWS]
    return {V1: IBPCodec.fit(sample), V2: IBP2Codec.fit(sample)}


def beside(
    what: str,
    moved: float,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]],
    setting: Setting,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """A row of the table for each pair of candidate and baseline, of `runs` that take turns."""
    seconds = rounds(runs, setting.num_rounds)
    for name, baseline in pairs:
        note = (notes or {}).get(name, "")
        yield Row(f"{what}, {name}", moved, "bytes", seconds[name], baseline, seconds[baseline], note)


def measure_decode(setting: Setting) -> Iterator[Row]:
    """Rows in order on one thread: dense ones beside a copy of the raw ones, sparse ones beside zeros."""
    rows = dense_rows(1000 if setting.quick else 200_000)
    cached = rows[: CACHED_BYTES // rows[0].nbytes]
    with threads(1):
        for bits in CHUNK_BITS:
            one = {f"{bits}-bit chunks": IBPCodec.fit(rows, bits)}
            yield from _decode(cached, one, "128 float32 in cache", 20, "memcpy", setting)
        codecs = fitted(rows)
        yield from _decode(cached, codecs, "128 float32 in cache", 20, "memcpy", setting)
        yield from _decode(rows, codecs, "128 float32 from memory", 1, "memcpy", setting)
        for num_columns in SPARSE:
            for where, num_bytes in SPARSE_BYTES.items():
                rows = sparse_rows(num_bytes // (40 if setting.quick else 4) // num_columns, num_columns)
                what = f"{num_columns} binary float32 {where}"
                yield from _decode(rows, fitted(rows), what, 3, "memset", setting)


def _decode(
    rows: Rows, codecs: Mapping[str, RowCodec], what: str, times: int, baseline: str, setting: Setting
) -> Iterator[Row]:
    raw = as_bytes(rows)
    out = np.zeros_like(raw)
    once: dict[str, Run] = {"memcpy": lambda: np.copyto(out, raw), "memset": lambda: out.fill(0)}
    runs = {baseline: lambda: [once[baseline]() for _ in range(times)]}
    notes = {}
    for name, codec in codecs.items():
        encoded = ops.encode_rows(codec, raw, align=8)
        runs[name] = lambda c=codec, e=encoded: [ops.decode_all(c, e, out) for _ in range(times)]
        notes[name] = f"{1 - int(ops.stored_sizes(codec, raw).sum()) / raw.nbytes:.1%} saved"
    pairs = [(name, baseline) for name in codecs] + ([(V2, V1)] if V2 in codecs else [])
    yield from beside(what, times * raw.nbytes, runs, pairs, setting, notes)


def measure_gather(setting: Setting) -> Iterator[Row]:
    """Random rows from memory, many times the caches, beside gathers of the raw ones."""
    rows = dense_rows(1000 if setting.quick else 1_000_000)
    num_ids = 1000 if setting.quick else 200_000
    yield from _gathers(rows, num_ids, "128 float32, random rows", setting)


def measure_sparse(setting: Setting) -> Iterator[Row]:
    """Random rows of ones among zeros, beside gathers of the raw ones."""
    for num_columns in SPARSE:
        rows = sparse_rows(100 if setting.quick else 64_000_000 // num_columns, num_columns)
        num_ids = 100 if setting.quick else 20_000_000 // num_columns
        yield from _gathers(rows, num_ids, f"{num_columns} binary, random rows", setting)


def _gathers(rows: Rows, num_ids: int, what: str, setting: Setting) -> Iterator[Row]:
    raw = as_bytes(rows)
    table, ids = torch.from_numpy(rows), np.random.default_rng(1).integers(0, len(rows), num_ids)
    out = np.zeros((num_ids, rows.shape[1]), np.float32)
    out_bytes, out_table, ids_table = as_bytes(out), torch.from_numpy(out), torch.from_numpy(ids)
    select = "torch index_select, raw"
    runs: dict[str, Run] = {select: lambda: torch.index_select(table, 0, ids_table, out=out_table)}
    pairs = [(V1, select), (RAW_READER, select), (V2, select), (V2, V1), (V2, RAW_READER)]
    for name, codec in {**fitted(rows), RAW_READER: IBPCodec.raw(raw.shape[1])}.items():
        source = Source(ops.encode_rows(codec, raw, align=max(4, codec.unit)), None, codec)
        runs[name] = lambda source=source: ops.gather_decode(ids, [source], out_bytes)
    with threads(2):
        yield from beside(f"{what}, 2 threads", out.nbytes, runs, pairs, setting)
    runs["numpy.take, raw"] = lambda: np.take(rows, ids, axis=0, out=out, mode="clip")
    runs["memcpy in order"] = lambda: np.copyto(out, rows[:num_ids])
    pairs += [(V2, "numpy.take, raw"), (V2, "memcpy in order")]
    with threads(1):
        yield from beside(f"{what}, 1 thread", out.nbytes, runs, pairs, setting)


def measure_encode(setting: Setting) -> Iterator[Row]:
    """Rows encoded into fresh memory on one thread, beside a copy into fresh memory."""
    dense = dense_rows(1000 if setting.quick else 200_000)
    sparse = sparse_rows(100 if setting.quick else 20_000, 1433)
    with threads(1):
        for what, rows in {"128 float32": dense, "1433 binary float32": sparse}.items():
            raw = as_bytes(rows)
            runs: dict[str, Run] = {"copy": lambda raw=raw: raw.copy()}
            for name, codec in fitted(rows).items():
                runs[name] = lambda c=codec, raw=raw: ops.encode_rows(c, raw, align=8)
            pairs = [(V1, "copy"), (V2, "copy"), (V2, V1)]
            yield from beside(what, raw.nbytes, runs, pairs, setting)


def measure_fit(setting: Setting) -> Iterator[Row]:
    """A codec fitted on a sample of rows on one thread, beside a copy of the sample."""
    dense = dense_rows(1000 if setting.quick else SAMPLE_ROWS)
    sparse = fit_sample(sparse_rows(100 if setting.quick else 12_000, 1433)).view(np.float32)
    with threads(1):
        for bits in CHUNK_BITS[:3]:
            runs = {
                f"128 float32, {bits}-bit chunks": lambda bits=bits: IBPCodec.fit(dense, bits),
                "copy": lambda: dense.copy(),
            }
            yield from compare(dense.nbytes, "bytes", runs, "copy", setting.num_rounds)
        for what, rows in {"128 float32": dense, "1433 binary float32": sparse}.items():
            fits: dict[str, Run] = {
                V1: lambda rows=rows: IBPCodec.fit(rows),
                V2: lambda rows=rows: IBP2Codec.fit(rows),
            }
            yield from beside(what, rows.nbytes, fits, [(V2, V1)], setting)
