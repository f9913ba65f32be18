"""All measurements in one table, each beside its baseline in the same run: make bench, or

python tests/bench/bench.py [--only NAME …] [--quick] [--data data] [--json FILE]

A line is what was measured, its rate, the baseline and its rate, and the ratio of the two. Seconds are
medians of rounds in which the candidates and the baseline take turns.

To plug in: write `measure_NAME(setting: Setting) -> Iterator[Row]` in a bench_….py, name it in MEASURES,
and get its seconds from `timing.compare` or `timing.rounds`. It runs in seconds where setting.quick.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import bench_codec
import bench_epoch
import bench_sampler
import bench_step
import numpy as np
import torch
from timing import RATES, Row, Setting

from gnn_ibp import IBPCodec, ops
from gnn_ibp.progress import progress
from gnn_ibp.stages import processors
from gnn_ibp.train.machine import processor_name

MEASURES: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "decode": bench_codec.measure_decode,
    "gather": bench_codec.measure_gather,
    "sparse": bench_codec.measure_sparse,
    "encode": bench_codec.measure_encode,
    "fit": bench_codec.measure_fit,
    "sample": bench_sampler.measure_sample,
    "step": bench_step.measure_step,
    "epoch": bench_epoch.measure_epoch,
}


def machine() -> dict[str, str | int | float]:
    """What the numbers were measured on."""
    return {
        "processor": processor_name(),
        "processors": processors(),
        "simd": IBPCodec.raw(64).kernel.simd,
        "torch_simd": torch.backends.cpu.get_cpu_capability(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "torch_threads": torch.get_num_threads(),
        "threads": ops.num_threads(),
    }


def machine_text(facts: dict[str, str | int | float]) -> str:
    """One line of `machine()`."""
    return (
        f"{facts['processor']}, {facts['processors']} processors, {facts['memory_gib']} GiB, "
        f"SIMD level {facts['simd']}; torch {facts['torch']} ({facts['torch_simd']}) on "
        f"{facts['torch_threads']} threads, numpy {facts['numpy']}, Python {facts['python']}"
    )


def rate(row: Row, seconds: float) -> str:
    """What `row` moved per second, in the unit of its table line."""
    scale, unit = RATES[row.unit]
    return f"{row.moved / seconds / scale:7.2f} {unit:<9}"


def line(group: str, row: Row) -> str:
    """The line of a row in the table."""
    beside = f"{row.baseline:<28} {rate(row, row.baseline_seconds)}"
    return (
        f"{group:<7} {row.name:<54} {rate(row, row.seconds)}  {beside} {row.ratio:6.2f}  {row.note}".rstrip()
    )


def head() -> str:
    """The names of the table's columns."""
    return f"{'':<7} {'':<54} {'rate':>7} {'':<9}  {'baseline':<28} {'rate':>7} {'':<9} {'ratio':>6}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--data", type=Path, default=Path("data"), help="where synthetic datasets lie")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    args = parser.parse_args(argv)
    setting = Setting(args.quick, args.data)
    facts, rows = machine(), []
    print(machine_text(facts), head(), sep="\n", flush=True)
    with progress("bench", len(args.only)) as bar:
        for name in args.only:
            bar.set_postfix_str(name)
            for row in MEASURES[name](setting):
                rows.append({"group": name, **asdict(row), "ratio": row.ratio})
                bar.clear()
                print(line(name, row), flush=True)
            bar.update()
    if args.json:
        args.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
