"""Report: a run's counters as a table on the terminal and as JSON.

`sources` is what `TieredRows.stats()` returns: {"cache": {"lookups": ..., "hits": ..., ...}, "disk": {...}}.
"""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnn_ibp.budget import format_bytes
from gnn_ibp.disk_file import NewFile
from gnn_ibp.stages import Stage, processors

Counters = Mapping[str, Any]
Sources = Mapping[str, Counters]

_COLUMNS = ("tier", "lookups", "hits", "hit rate", "logical", "encoded", "physical", "saved", "seconds")
_PARTS = ("total", "train", "wait", "sample", "fetch", "validate", "checkpoint")


def tiers_text(sources: Sources, indent: str = "") -> str:
    """The table of the tiers, and under it what crossed PCIe, where something did."""
    pcie = pcie_text(sources)
    return sources_table(sources, indent) + (f"\n{indent}{pcie}" if pcie else "")


def sources_table(sources: Sources, indent: str = "") -> str:
    """One line per tier under a line of names; `saved` is 1 - encoded / logical bytes of the tier's hits."""
    rows = [_COLUMNS, *(_tier_row(tier, counters) for tier, counters in sources.items())]
    return "\n".join(indent + line for line in _table(rows))


def pcie_text(sources: Sources) -> str | None:
    """What crossed PCIe: "PCIe: 3.21 GiB encoded in 3.40 GiB of sectors, 21.3 GB/s"; None where nothing did.

    The rate is over the seconds of the tiers whose rows crossed it, reads that overlap counted each. One pass
    serves both caches, so the seconds of the cache are counted with the host's.
    """
    crossed = [tier for tier, counters in sources.items() if counters.get("pcie_bytes", 0)]
    if not crossed:
        return None
    moved = sum(int(sources[tier]["pcie_bytes"]) for tier in crossed)
    encoded = sum(int(sources[tier]["encoded_bytes"]) for tier in crossed)
    timed = {*crossed, "cache"} if "host" in crossed else set(crossed)
    seconds = sum(float(sources[tier]["seconds"]) for tier in timed & sources.keys())
    rate = f", {moved / seconds / 1e9:.1f} GB/s" if seconds > 0 else ""
    return f"PCIe: {format_bytes(encoded)} encoded in {format_bytes(moved)} of sectors{rate}"


def settings_text(settings: Mapping[str, Any]) -> str:
    """All settings of a run in a few lines."""
    words = " ".join(f"{name}={_setting(value)}" for name, value in settings.items())
    return textwrap.fill(
        words, 110, initial_indent="settings: ", subsequent_indent="  ", break_on_hyphens=False
    )


_MEMORY_NOTES = {
    "program": "resident now, and room for threads",
    "labels": "and splits",
    "index": "where the rows of the features are",
    "staging": "page-locked, on the way to the device",
    "minibatches": "prepared ahead and in use, as measured, and a margin",
    "model": "weights, their copies, and layers",
    "start": "more than minibatches take: choosing hot rows, filling the cache",
}
_TOPOLOGY_NOTES = {"memory": "in memory", "mapped": "indptr in memory, indices read from the disk"}


def memory_text(memory: Mapping[str, Any]) -> str:
    """The memory budget and what gets how much of it, as a table."""
    notes = {**_MEMORY_NOTES, "topology": _TOPOLOGY_NOTES[memory["topology_in"]]}
    rows = {name: size for name, size in memory.items() if name not in ("budget", "topology_in")}
    lines = [f"memory budget {format_bytes(memory['budget'])}"]
    lines += [
        f"    {name:11}  {format_bytes(size):>9}  {notes.get(name, '')}".rstrip()
        for name, size in rows.items()
        if size or name in ("cache", "host")
    ]
    return "\n".join(lines)


def stage_lines(stages: Sequence[Stage]) -> list[str]:
    """The stages of a conversion as a table: how much went through each, how fast, and what held it up.

    busy: processors that were at work, on average. Where it comes near their number they are the limit, where
    not, the disk.
    """
    rows = [("stage", "amount", "seconds", "MB/s", "M edges/s", f"busy of {processors()}")]
    for stage in stages:
        seconds = max(stage.elapsed_s, 1e-9)
        edges = f"{stage.num_edges / seconds / 1e6:.1f}" if stage.num_edges else ""
        rate, busy = f"{stage.num_bytes / seconds / 1e6:.0f}", f"{stage.cpu_s / seconds:.1f}"
        rows.append((stage.name, format_bytes(stage.num_bytes), f"{seconds:.1f}", rate, edges, busy))
    return _table(rows)


def data_text(data: Counters, caches: Sources) -> str:
    """What is trained on, the disk it takes, and what the caches hold."""
    labelled = ", ".join(f"{format_count(count)} {name}" for name, count in data["num_labelled"].items())
    lines = [
        f"data: {data['path']}: {format_count(data['num_nodes'])} nodes ({labelled}), "
        f"{format_count(data['num_edges'])} edges, {data['num_classes']} classes, "
        f"{format_bytes(data['disk_bytes'])} on disk",
        f"features: {data['dtype']} {'x'.join(map(str, data['row_shape']))}, "
        f"row format {data['row_format']}, {format_bytes(data['raw_bytes'])} stored in "
        f"{format_bytes(data['stored_bytes'])}, "
        f"{format_share(saved(data['raw_bytes'], data['stored_bytes']))} saved",
    ]
    lines += [
        f"{tier}: {capacity_text(cache['bytes'], cache['rows'], cache['rows_if_raw'])}"
        for tier, cache in caches.items()
    ]
    return "\n".join(lines)


def epoch_text(epoch: Counters, num_epochs: int) -> str:
    """One line on an epoch, and a table of its tiers. A star marks the best validation so far."""
    parts = [f"epoch {epoch['epoch']}/{num_epochs}", f"loss {epoch['loss']:.4f}"]
    if epoch["val_acc"] is not None:
        parts.append(f"val {epoch['val_acc']:.4f}{'*' if epoch['best'] else ' '}")
    seconds = {name: f"{value:.1f}" for name, value in epoch["seconds"].items()}
    parts.append(
        f"{seconds['total']} s = train {seconds['train']} + wait {seconds['wait']}, "
        f"meanwhile sample {seconds['sample']}, fetch {seconds['fetch']}"
    )
    if epoch["peak_anon_bytes"]:
        parts.append(f"memory {format_bytes(epoch['peak_anon_bytes'])}")
    return "  ".join(parts) + "\n" + tiers_text(epoch["sources"], indent="    ")


def run_text(run: Mapping[str, Any]) -> str:
    """The report of a whole run: accuracy, time, tiers, capacity of the caches, memory."""
    epochs: list[Any] = run["epochs"]
    seconds = [epoch["seconds"] for epoch in epochs]
    parts = [name for name in _PARTS if any(name in of_epoch for of_epoch in seconds)]
    total = {name: sum(of_epoch.get(name, 0.0) for of_epoch in seconds) for name in parts}
    best = best_epoch(epochs)
    lines = ["", "report"]
    if run["test_acc"] is not None:
        how = "full neighborhoods" if run["inference"] == "exact" else "sampled neighborhoods"
        weights = f", weights of epoch {best['epoch']}" if best else ""
        precision = run["settings"]["precision"]
        lines.append(f"  test accuracy {run['test_acc']:.4f} ({how}{weights}, {precision})")
    lines.append("  seconds: " + ", ".join(f"{name} {value:.1f}" for name, value in total.items()))
    lines.append(tiers_text(run["sources"], indent="  "))
    lines += [
        f"  {tier}: {capacity_text(cache['bytes'], cache['rows'], cache['rows_if_raw'])}"
        for tier, cache in run["caches"].items()
    ]
    anon, device = run["peak_anon_bytes"], run.get("peak_device_bytes")
    lines.append(
        f"  peak memory {format_bytes(run['peak_rss_bytes'])}"
        + (f", without pages of files {format_bytes(anon)}" if anon else "")
        + (f", on the device {format_bytes(device)}" if device else "")
    )
    return "\n".join(lines)


def best_epoch(epochs: Sequence[Any]) -> Any:
    """The entry of a report's `epochs` whose weights are the best; None for no epochs."""
    return next((epoch for epoch in reversed(epochs) if epoch["best"]), None)


def saved(logical_bytes: int, encoded_bytes: int) -> float | None:
    """1 - encoded / logical bytes; None where nothing was read."""
    return 1 - encoded_bytes / logical_bytes if logical_bytes else None


def capacity_text(cache_bytes: int, num_rows: int, num_raw_rows: int) -> str:
    """What a cache holds, and would hold raw: "1.00 GiB holds 2.41 M rows instead of 2.10 M"."""
    return (
        f"{format_bytes(cache_bytes)} holds {format_count(num_rows)} rows "
        f"instead of {format_count(num_raw_rows)}"
    )


def format_count(count: int) -> str:
    """A count for people: "950", "12,345", "2.41 M"."""
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:.2f} M"


def format_share(share: float | None) -> str:
    """A share for people: "81.3 %", or "-" where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Writes the report whole or not at all; numbers that JSON lacks (NaN, infinity) become null."""
    text = json.dumps(_plain(report), indent=1, allow_nan=False)
    with NewFile(path) as file:
        file.write(f"{text}\n".encode())
        file.commit()


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of columns: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def _setting(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _tier_row(tier: str, counters: Counters) -> tuple[str, ...]:
    logical, encoded = int(counters.get("logical_bytes", 0)), int(counters.get("encoded_bytes", 0))
    return (
        tier,
        format_count(int(counters.get("lookups", 0))),
        format_count(int(counters.get("hits", 0))),
        format_share(counters.get("hit_rate")),
        format_bytes(logical),
        format_bytes(encoded),
        format_bytes(int(counters.get("physical_bytes", 0))),
        format_share(saved(logical, encoded)),
        f"{float(counters.get('seconds', 0.0)):.1f}",
    )


def _plain(value: Any) -> Any:
    """`value` in JSON's types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item"):  # a number of NumPy's or torch's
        return _plain(value.item())
    return value
