"""Converts and trains on a graph of the shape of ogbn-papers100M, of any size, inside a memory budget.

python tests/bench/scale.py FOLDER [--nodes 11000000] [--columns 128] [--memory-budget 8GiB] …

The graph is drawn block by block into FOLDER, as OGB's raw folder (--source raw) or on its way into the data
set (--source direct). Then it is converted, and trained on with caches of several shares of the features'
bytes, compressed and raw, each in a process of its own whose memory is watched. Where memory cgroups can be
made, each process has one that also bounds the pages of files it uses, none of which are in the system's
cache when training begins. What is there already is used. The report is a table on the terminal, and
FOLDER/scale.json.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memory_watch import watch
from papers_shape import (
    NAME,
    NUM_EDGES,
    NUM_NODES,
    NUM_TRAIN,
    PapersShape,
    drawn_parts,
    raw_bytes,
    write_raw_folder,
)

from gnn_ibp.budget import format_bytes, parse_bytes, used_memory
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.need import ConversionNeed
from gnn_ibp.dataset import Dataset

PROGRAM_BYTES = 512 << 20
"""Of a budget, what a process that converts holds before it begins."""

PROGRAM = [sys.executable, "-c", "from gnn_ibp.train.start import main; raise SystemExit(main())"]


@dataclass(frozen=True)
class Plan:
    """What is asked for on the command line."""

    folder: Path
    shape: PapersShape
    source: str
    undirected: bool
    memory_budget: str
    shares: list[int]
    batches: int
    epochs: int
    train_flags: list[str]
    child: bool
    args: Sequence[str]

    @property
    def settings(self) -> ConversionSettings:
        return ConversionSettings(undirected=self.undirected)

    @property
    def dataset(self) -> Path:
        return self.folder / f"from-{self.source}{'-undirected' * self.undirected}"

    @property
    def direction(self) -> list[str]:
        return ["--undirected"] * self.undirected

    @property
    def raw_root(self) -> Path:
        return self.folder / "raw"


def main(args: Sequence[str] | None = None) -> None:
    plan = parse(args)
    plan.folder.mkdir(parents=True, exist_ok=True)
    if plan.child:
        convert_direct(plan)
        return
    print(check_disk(plan), flush=True)
    result: dict[str, Any] = {"shape": asdict(plan.shape), "undirected": plan.undirected}
    if plan.source == "raw":
        result["made"] = make_raw(plan)
    result["converted"] = convert(plan)
    result["runs"] = [train(plan, share, raw) for share in plan.shares for raw in (False, True)]
    (plan.folder / "scale.json").write_text(json.dumps(result, indent=1))
    print(table(plan, result))


def parse(args: Sequence[str] | None) -> Plan:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--nodes", type=int, default=NUM_NODES, help=f"default {NUM_NODES:,}")
    parser.add_argument("--edges", type=int, help="default: in the proportion of the original")
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument(
        "--eval-nodes", type=int, default=10_240, help="for validation, and as many for the test"
    )
    parser.add_argument("--source", choices=("raw", "direct"), default="raw")
    parser.add_argument("--directed", action="store_true", help="without the reverse edges")
    parser.add_argument("--memory-budget", default="16GiB", metavar="SIZE")
    parser.add_argument(
        "--shares", default="25,50,100", help="of the features' bytes that the cache gets, %%"
    )
    parser.add_argument("--batches", type=int, default=60, help="of an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train-flags", default="", help="more flags of `gnn-ibp train`, in one word")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    got = parser.parse_args(args)
    edges = got.edges or round(NUM_EDGES * got.nodes / NUM_NODES)
    train = max(1, round(NUM_TRAIN * got.nodes / NUM_NODES))
    shape = PapersShape(got.nodes, edges, got.columns, train, min(got.eval_nodes, got.nodes // 10))
    return Plan(
        got.folder.absolute(),
        shape,
        got.source,
        not got.directed,
        got.memory_budget,
        [int(share) for share in got.shares.split(",") if share],
        got.batches,
        got.epochs,
        got.train_flags.split(),
        got.child,
        sys.argv[1:] if args is None else args,
    )


def check_disk(plan: Plan) -> str:
    """The disk that all of it takes, in words. Exits where it is not free."""
    conversion = parse_bytes(plan.memory_budget) - PROGRAM_BYTES
    need = ConversionNeed(drawn_parts(plan.shape), plan.settings, conversion)
    features = plan.shape.num_nodes * plan.shape.num_columns * 4
    parts = {
        "raw files": raw_bytes(plan.shape) if plan.source == "raw" else 0,
        "data set, while it is made": need.disk_bytes or 0,
        "features once more, raw": features if plan.shares else 0,
    }
    there = sum(file.stat().st_size for file in plan.folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(plan.folder).free
    needed = sum(parts.values())
    words = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items() if size)
    line = f"disk needed: at most {format_bytes(needed)} ({words}); {format_bytes(free)} free"
    if needed > free + there:
        sys.exit(f"{line}; free some space, choose another folder, or ask for fewer --nodes or --columns")
    return line


def make_raw(plan: Plan) -> dict[str, Any]:
    if (plan.raw_root / "ogbn_papers100M" / "raw" / "data.npz").exists():
        print("raw files are there already", flush=True)
        return {}
    began = time.monotonic()
    write_raw_folder(plan.shape, plan.raw_root)
    seconds = time.monotonic() - began
    print(f"raw files made: {format_bytes(raw_bytes(plan.shape))} in {seconds:.0f} s", flush=True)
    return {"seconds": seconds, "bytes": raw_bytes(plan.shape)}


def convert(plan: Plan) -> dict[str, Any]:
    if plan.dataset.exists():
        print("the data set is there already", flush=True)
        return {}
    if plan.source == "raw":
        places = [NAME, plan.dataset, "--raw-root", plan.raw_root, "--memory-budget", plan.memory_budget]
        command = [*PROGRAM, "convert", *map(str, places), *plan.direction]
    else:
        command = [sys.executable, __file__, *plan.args, "--child"]
    watched = watch(command, parse_bytes(plan.memory_budget))
    print(f"converted: {watched}", flush=True)
    if watched.status:
        sys.exit(watched.status)
    return asdict(watched)


def convert_direct(plan: Plan) -> None:
    """In the watched process: what `gnn-ibp convert` does, from a source that is drawn."""
    memory = parse_bytes(plan.memory_budget) - used_memory()
    write_dataset(drawn_parts(plan.shape), plan.dataset, plan.settings, memory, say=print)


def train(plan: Plan, share: int, raw: bool) -> dict[str, Any]:
    """A run of `gnn-ibp train` with a cache of `share` % of the features' raw bytes."""
    cache = plan.shape.num_nodes * plan.shape.num_columns * 4 * share // 100
    report = plan.folder / f"train-{share}{'-raw' * raw}.json"
    settings = {
        "dataset": plan.dataset,
        "memory-budget": plan.memory_budget,
        "cache-bytes": cache,
        "max-batches": plan.batches,
        "epochs": plan.epochs,
        "eval-every": plan.epochs,
        "report": report,
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    if raw:
        Dataset.open(plan.dataset).raw_twin()
    forget_pages(plan.dataset)
    watched = watch(
        [*PROGRAM, "train", *flags, *plan.direction, *["--raw"] * raw, *plan.train_flags],
        parse_bytes(plan.memory_budget),
    )
    print(f"trained, cache of {share} %{', raw' * raw}: {watched}", flush=True)
    run = json.loads(report.read_text()) if not watched.status else {"epochs": []}
    return {"share": share, "raw": raw, **asdict(watched), "report": run}


def forget_pages(folder: Path) -> None:
    """Nothing of the files is in the system's cache then: what a process reads is charged to its cgroup."""
    os.sync()
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def table(plan: Plan, result: dict[str, Any]) -> str:
    """What was measured, as Markdown."""
    shape = plan.shape
    edges = Dataset.open(plan.dataset).meta.num_edges
    lines = [
        f"{shape.num_nodes:,} nodes, {edges:,} edges, {shape.num_columns} columns, "
        f"budget {plan.memory_budget}, epochs of {plan.batches} minibatches",
        "",
        "| cache / features | rows | peak | batches/s, epoch 1 | 2 | hit rate, epoch 1 | 2 | from disk |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for run in result["runs"]:
        rows = f"| {run['share']} % | {'raw' if run['raw'] else 'compressed'} |"
        epochs = run["report"]["epochs"]
        if not epochs:
            lines.append(f"{rows} does not fit | | | | | |")
            continue
        speeds = [epoch["batches"] / epoch["seconds"]["total"] for epoch in (epochs[0], epochs[-1])]
        rates = [hit_rate(epoch["sources"]) for epoch in (epochs[0], epochs[-1])]
        disk = epochs[-1]["sources"].get("disk", {}).get("physical_bytes", 0)
        cells = [
            format_bytes(run["report"]["peak_anon_bytes"] or run["peak_bytes"]),
            *(f"{speed:.2f}" for speed in speeds),
            *(f"{100 * rate:.1f} %" for rate in rates),
            format_bytes(disk),
        ]
        lines.append(f"{rows} {' | '.join(cells)} |")
    return "\n".join(lines)


def hit_rate(sources: dict[str, Any]) -> float:
    return float(sources.get("cache", {}).get("hit_rate") or 0)


if __name__ == "__main__":
    main()
