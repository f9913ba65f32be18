"""GB/s of raw rows encoded and decoded, beside memcpy and numpy.take: python tests/bench/bench_codec.py"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, ops
from gnn_ibp.ops import Source


def made_rows(num_rows: int, num_columns: int) -> NDArray[np.float32]:
    """Rows like averaged word vectors: columns of a common sign and scale, and noise."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal(num_columns).astype(np.float32)
    return means + 0.1 * rng.standard_normal((num_rows, num_columns), np.float32)


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The shortest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="a .npy file of rows; made up without it")
    parser.add_argument("--num-rows", type=int, default=200_000)
    parser.add_argument("--num-columns", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    ops.set_num_threads(args.threads)
    rows = np.load(args.rows) if args.rows else made_rows(args.num_rows, args.num_columns)
    num_rows, row_bytes = len(rows), rows.nbytes // len(rows)
    raw = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).reshape(num_rows, row_bytes)
    ids = np.random.default_rng(1).integers(0, num_rows, num_rows)
    out = np.zeros_like(raw)
    print(f"{num_rows} rows of {row_bytes} bytes, {args.threads} thread(s); GB/s of raw bytes")

    def report(name: str, run: Callable[[], object], note: str = "") -> None:
        print(f"{name:24}{raw.nbytes / seconds(run, args.repeats) / 1e9:8.2f}  {note}")

    report("memcpy", lambda: np.copyto(out, raw))
    report("numpy.take", lambda: np.take(raw, ids, axis=0, out=out, mode="clip"))
    for chunk_bits in (64, 32, 16, 8):
        if row_bytes % (chunk_bits // 8):
            continue
        codec = IBPCodec.fit(rows, chunk_bits)
        align = max(4, codec.unit)
        encoded = ops.encode_rows(codec, raw, align)
        source = Source(encoded, None, codec)
        stored_bytes = int(ops.stored_sizes(codec, raw).sum())
        name = f"{chunk_bits}-bit chunks"
        report(f"{name}: sizes", lambda codec=codec: ops.stored_sizes(codec, raw))
        report("  encode, allocated", lambda codec=codec, align=align: ops.encode_rows(codec, raw, align))
        report("  decode in order", lambda codec=codec, encoded=encoded: ops.decode_all(codec, encoded, out))
        saved = f"{1 - stored_bytes / raw.nbytes:.1%} saved"
        report("  decode by random id", lambda source=source: ops.gather_decode(ids, [source], out), saved)


if __name__ == "__main__":
    main()
