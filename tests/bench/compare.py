"""Row formats beside compressors of bytes, in one table: make compare, or

python tests/bench/compare.py [--only NAME …] [--quick] [--json FILE]

saved: of all bytes, where each row is compressed by itself, then at the unit where the codec saves most:
row, 4 KiB, 64 KiB or file, in whole rows. Beside each stands what a random row takes, in µs: a call that
decodes the unit it lies in. Our formats decode many rows by one call, too: `batch` is what a row takes then.
GB/s are of raw bytes, decoded and encoded in order at the best unit, on 1 and on 2 threads; `file` is then
a file for each thread. Seconds are medians of rounds in which all codecs and memcpy take turns; our formats
and memcpy decode into memory that is there, the others into memory of their own. Whatever is decoded is
compared with the raw rows, byte for byte. Settings are each package's usual ones.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median

import numpy as np
from bench import machine, machine_text
from compare_codecs import Codec, FormatRows, Memcpy, PieceCodec, RowFormat, Stored
from compare_rows import MAX_BYTES, ROWS, Rows
from compressors import COMPRESSORS, ELSEWHERE
from timing import Run, rounds, threads

from gnn_ibp import IBP2Codec, IBPCodec
from gnn_ibp.rows import Bytes

UNITS = {"row": 0, "4 KiB": 4096, "64 KiB": 65536, "file": 1 << 62}
"""Bytes that are compressed together, in whole rows, one at least."""

NUM_THREADS = (1, 2)
BATCH_ROWS = 1000
CALLS_SECONDS = 0.2
"""So long are calls repeated for the time of one."""


@dataclass(frozen=True)
class AtUnit:
    """row_us: that a random row takes; batch_row_us: by a call for many, where the codec has one."""

    unit: str
    saved: float
    row_us: float
    batch_row_us: float | None


@dataclass(frozen=True)
class Rates:
    """GB/s of raw bytes on `threads` threads."""

    threads: int
    decode: float
    encode: float


@dataclass(frozen=True)
class Line:
    """Of a codec on some rows. by_row: each by itself. best: where most is saved, as are the rates."""

    rows: str
    codec: str
    by_row: AtUnit
    best: AtUnit
    rates: list[Rates]


@dataclass(frozen=True)
class Missing:
    """A line for what is not measured, and why."""

    rows: str
    codec: str
    why: str


def compare(name: str, rows: Rows, num_rounds: int) -> Iterator[Line | Missing]:
    """memcpy, then each codec. Raises RuntimeError where one gives other bytes back."""
    raw, codecs = rows.bytes, open_codecs(rows)
    at_units = {codec: list(measure_units(f"{codec}, {name}", codecs[codec], raw)) for codec in codecs}
    best = {codec: max(measured, key=lambda one: one.saved) for codec, measured in at_units.items()}
    units = {codec: one.unit for codec, one in best.items()}
    rates = [measure_rates(name, codecs, units, raw, number, num_rounds) for number in NUM_THREADS]
    for codec in ["memcpy", "version 1", "version 2", *COMPRESSORS]:
        if codec in codecs:
            yield Line(name, codec, at_units[codec][0], best[codec], [one[codec] for one in rates])
        else:
            yield Missing(name, codec, "not installed")
    for codec, need in ELSEWHERE.items():
        yield Missing(name, codec, need)


def open_codecs(rows: Rows) -> dict[str, Codec]:
    """Those there are, fitted on the rows or made for their dtype."""
    codecs: dict[str, Codec] = {
        "memcpy": Memcpy(),
        "version 1": RowFormat(IBPCodec.fit(rows.array)),
        "version 2": RowFormat(IBP2Codec.fit(rows.array)),
    }
    for name, entry in COMPRESSORS.items():
        try:
            entry.make(rows.dtype)
        except ImportError:
            continue
        codecs[name] = PieceCodec(partial(entry.make, rows.dtype))
    return codecs


def piece_rows(raw: Bytes, unit: str, num_threads: int = 1) -> int:
    """Rows in a unit."""
    in_file = -(-len(raw) // num_threads)
    return max(1, min(in_file, UNITS[unit] // raw.shape[1]))


def measure_units(what: str, codec: Codec, raw: Bytes) -> Iterator[AtUnit]:
    """By row, and by other units where the codec makes use of them."""
    ids = np.random.default_rng(1).integers(0, len(raw), BATCH_ROWS)
    for unit in UNITS if isinstance(codec, PieceCodec) else ["row"]:
        stored = codec.encode(raw, piece_rows(raw, unit), 1)
        check(f"{what}, by {unit}", stored, raw)
        calls = (partial(stored.row, i) for i in ids.tolist())
        row_us = 1e6 * median_seconds(calls)
        batch_row_us = None
        if isinstance(stored, FormatRows):
            batch_row_us = 1e6 * median_seconds([partial(stored.rows, ids)] * 100) / len(ids)
        yield AtUnit(unit, 1 - stored.num_bytes / raw.nbytes, row_us, batch_row_us)


def check(what: str, stored: Stored, raw: Bytes) -> None:
    """Raises RuntimeError unless all rows, and some by themselves, come back from `stored`."""
    some = range(0, len(raw), max(1, len(raw) // 10))
    if b"".join(map(bytes, stored.decode())) != raw.tobytes() or any(
        bytes(stored.row(i)) != raw[i].tobytes() for i in some
    ):
        raise RuntimeError(f"{what}: other bytes come back")


def median_seconds(calls: Iterator[Run] | Sequence[Run]) -> float:
    """Of one of the calls; the first warms up, and they end after CALLS_SECONDS."""
    seconds: list[float] = []
    for call in calls:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
        if len(seconds) > 2 and sum(seconds) > CALLS_SECONDS:
            break
    return median(seconds[1:])


def measure_rates(
    name: str, codecs: dict[str, Codec], units: dict[str, str], raw: Bytes, number: int, num_rounds: int
) -> dict[str, Rates]:
    """Of each codec at its unit, on `number` threads."""
    with threads(number):
        encode = {
            codec: partial(codecs[codec].encode, raw, piece_rows(raw, units[codec], number), number)
            for codec in codecs
        }
        stored = {codec: encode[codec]() for codec in codecs}
        for codec in codecs:
            check(f"{codec}, {name}, on {number} threads", stored[codec], raw)
        decode_s = rounds({codec: stored[codec].decode for codec in codecs}, num_rounds)
        encode_s = rounds(encode, num_rounds)
    return {
        codec: Rates(number, *(raw.nbytes / seconds[codec] / 1e9 for seconds in (decode_s, encode_s)))
        for codec in codecs
    }


def packages() -> list[str]:
    """The compressors that are installed, with their versions."""
    versions = []
    for package in sorted({entry.package for entry in COMPRESSORS.values()}):
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{package} {metadata.version(package)}")
    return versions


def head() -> str:
    """The names of the table's columns."""
    by_row, best = f"{'by row':>7} {'µs':>8} {'batch':>6}", f"{'best':>7} {'at':<6} {'µs':>9}"
    rates = [f"{f'{verb} {number}':>8}" for verb in ("decode", "encode") for number in NUM_THREADS]
    return f"{'':<18} {by_row}  {best}  {' '.join(rates)}"


def text(line: Line | Missing) -> str:
    """As it stands in the table."""
    if isinstance(line, Missing):
        return f"{line.codec:<18} {line.why}"
    one, best = line.by_row, line.best
    batch = "" if one.batch_row_us is None else f"{one.batch_row_us:.2f}"
    by_row = f"{one.saved:>7.1%} {one.row_us:>8.1f} {batch:>6}"
    rates = [
        f"{rate:>8.2f}" for verb in ("decode", "encode") for rate in (getattr(r, verb) for r in line.rates)
    ]
    return (
        f"{line.codec:<18} {by_row}  {best.saved:>7.1%} {best.unit:<6} {best.row_us:>9.1f}  {' '.join(rates)}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    args = parser.parse_args(argv)
    facts, lines = machine(), []
    print(machine_text(facts), ", ".join(packages()), sep="\n", flush=True)
    for name in args.only:
        try:
            rows = ROWS[name]().first(40_000 if args.quick else MAX_BYTES)
        except FileNotFoundError as error:
            print(f"\n{name}: not here, {error.filename} is missing")
            continue
        num_rows, row_bytes = rows.bytes.shape
        print(f"\n{name}: {num_rows} rows of {row_bytes} bytes, {rows.dtype}", head(), sep="\n", flush=True)
        for line in compare(name, rows, num_rounds=1 if args.quick else 5):
            lines.append(asdict(line))
            print(text(line), flush=True)
    if args.json:
        numbers = {"machine": facts, "packages": packages(), "lines": lines}
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
