"""Test accuracy and bytes saved on real graphs, beside references: one Markdown table.

python tests/bench/accuracy.py --data FOLDER [--seeds 5] [--sets cora pubmed] [--root FOLDER] [--json FILE]

FOLDER has one NAME.npz per graph and a README.md with a table of their GraphSAGE accuracies. Every graph is
made and trained by `gnn-ibp train --dataset npz:FOLDER/NAME.npz`, with the settings of configs/NAME.toml.
Fails where one of three promises is broken: accuracy at most 2 points below the reference, the same losses
digit for digit with --raw --no-cache, and no fewer bytes saved than by the paper's sweep over thresholds.
"""

import argparse
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnn_ibp.converters.zip_arrays import ZipArrays
from gnn_ibp.dataset import Dataset
from gnn_ibp.train.cli import main as gnn_ibp

TOLERANCE = 0.02
"""Of accuracy, below the reference."""


@dataclass(frozen=True)
class Measured:
    """One graph. Accuracies and shares saved are from 0 to 1; the bytes are those of rows as stored.

    test_accs, seconds: per seed; seconds are those of the whole run, from the settings to the report.
    raw_identical: whether --raw --no-cache gave the first seed's losses and accuracies, digit for digit.
    """

    name: str
    num_nodes: int
    num_edges: int
    raw_bytes: int
    stored_bytes: int
    stored_bytes_sweep: int
    test_accs: list[float]
    reference_acc: float
    raw_identical: bool
    inference: str
    seconds: list[float]

    @property
    def test_acc(self) -> float:
        return statistics.mean(self.test_accs)

    @property
    def broken(self) -> list[str]:
        """Promises that do not hold."""
        promises = {
            "the accuracy is too far below the reference": self.test_acc >= self.reference_acc - TOLERANCE,
            "--raw --no-cache changed the losses": self.raw_identical,
            "the sweep saves more": self.stored_bytes <= self.stored_bytes_sweep,
        }
        return [f"{self.name}: {broken}" for broken, holds in promises.items() if not holds]


def reference_accuracies(readme: Path) -> dict[str, float]:
    """The column GraphSAGE of the table in `readme`, by the names in its column "set"."""
    tables = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in readme.read_text().splitlines()
        if line.startswith("|")
    ]
    header = next((row for row in tables if {"set", "GraphSAGE"} <= {*row}), None)
    if header is None:
        sys.exit(f"{readme} has no table with the columns set and GraphSAGE")
    rows = [dict(zip(header, row, strict=True)) for row in tables if len(row) == len(header)]
    numbers = [row for row in rows if row["GraphSAGE"].replace(".", "", 1).isdecimal()]
    return {row["set"]: float(row["GraphSAGE"]) for row in numbers}


def homogeneous_sets(data: Path) -> list[str]:
    """The graphs in `data` whose nodes are all of one type."""
    return sorted(path.stem for path in data.glob("*.npz") if "node_type" not in ZipArrays(path).names)


def run(*args: str) -> None:
    """Runs `gnn-ibp ARGS` without what it prints; an error ends the program."""
    with contextlib.redirect_stdout(io.StringIO()):
        status = gnn_ibp(args)
    if status:
        sys.exit(status)


def train(source: str, root: Path, *args: str) -> dict[str, Any]:
    """The report of `gnn-ibp train` on `source` with the settings of its config."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        run("train", "--dataset", source, "--root", str(root), "--report", str(path), *args)
        report: dict[str, Any] = json.loads(path.read_text())
    return report


def results(report: dict[str, Any]) -> list[str]:
    """What must not depend on how features are stored, with every digit."""
    losses = [f"{epoch['loss']!r} {epoch['val_acc']!r}" for epoch in report["epochs"]]
    return [*losses, repr(report["test_acc"])]


def measure(data: Path, name: str, reference_acc: float, num_seeds: int, root: Path) -> Measured:
    """Converts and trains `name`.npz; data sets are made in `root`, or taken from there."""
    source = f"npz:{data / name}.npz"
    sweep = root / f"{name}-sweep"
    if not sweep.exists():
        run("convert", source, str(sweep), "--threshold", "sweep")
    raw = train(source, root, "--raw", "--no-cache", "--seed", "0")
    reports, seconds = [], []
    for seed in range(num_seeds):
        began = time.perf_counter()
        reports.append(train(source, root, "--seed", str(seed)))
        seconds.append(time.perf_counter() - began)
        print(f"{name}, seed {seed}: {reports[-1]['test_acc']:.3f}, {seconds[-1]:.1f} s", file=sys.stderr)
    data_set = reports[0]["data"]
    return Measured(
        name=name,
        num_nodes=data_set["num_nodes"],
        num_edges=data_set["num_edges"],
        raw_bytes=data_set["raw_bytes"],
        stored_bytes=data_set["stored_bytes"],
        stored_bytes_sweep=Dataset.open(sweep).features["x"].stored_bytes,
        test_accs=[report["test_acc"] for report in reports],
        reference_acc=reference_acc,
        raw_identical=results(raw) == results(reports[0]),
        inference=", ".join(sorted({report["inference"] for report in reports})),
        seconds=seconds,
    )


def table(measured: Sequence[Measured]) -> str:
    """The Markdown table."""
    header = (
        "set, nodes, edges, saved %, saved by the sweep %, test accuracy, reference, difference, "
        "raw losses identical, seconds a run"
    )
    rows = [header.split(", "), ["---", *["---:"] * 7, ":---:", "---:"]]
    for m in measured:
        spread = statistics.stdev(m.test_accs) if len(m.test_accs) > 1 else 0.0
        rows.append(
            [
                m.name,
                f"{m.num_nodes:,}",
                f"{m.num_edges:,}",
                f"{100 * (1 - m.stored_bytes / m.raw_bytes):.2f}",
                f"{100 * (1 - m.stored_bytes_sweep / m.raw_bytes):.2f}",
                f"{m.test_acc:.3f} ± {spread:.3f}",
                f"{m.reference_acc:.3f}",
                f"{m.test_acc - m.reference_acc:+.3f}",
                "yes" if m.raw_identical else "NO",
                f"{statistics.median(m.seconds):.1f}",
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz and README.md")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0, 1 ... of the runs")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="by default all homogeneous graphs")
    parser.add_argument("--root", type=Path, help="keep the data sets here; by default they are removed")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    args = parser.parse_args()

    references = reference_accuracies(args.data / "README.md")
    names = args.sets or homogeneous_sets(args.data)
    unknown = [name for name in names if name not in references]
    if unknown:
        parser.error(f"{args.data / 'README.md'} has no accuracy of {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as temporary:
        root = args.root or Path(temporary)
        measured = [measure(args.data, name, references[name], args.seeds, root) for name in names]
    print(table(measured))
    if args.json:
        args.json.write_text(json.dumps([asdict(m) for m in measured], indent=1))
    broken = [line for m in measured for line in m.broken]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
