"""What `gnn-ibp convert`, `info` and `verify` do. Each returns the exit status."""

from pathlib import Path

from gnn_ibp import ops
from gnn_ibp.budget import format_bytes, parse_bytes
from gnn_ibp.conversion.dataset_parts import ConversionSettings, parse_format
from gnn_ibp.converters.prepare import convert_source
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import SettingsError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.ibp_codec import Threshold
from gnn_ibp.train.config import MAX_THREADS
from gnn_ibp.train.damages import damages
from gnn_ibp.train.feature_lines import feature_lines, table


def convert(
    source: str,
    out: Path,
    *,
    raw_root: Path | None = None,
    num_classes: int | None = None,
    format: str | int | None = None,
    chunk_bits: int | None = None,
    threshold: str | float | None = None,
    layout: str = "condensed",
    align: int | None = None,
    undirected: bool = False,
    dedup: bool = False,
    threads: int | None = None,
    memory_budget: str | int | None = None,
) -> int:
    """Writes the data set of `source` (a name, npz:PATH, or a data set's folder) into the folder `out`."""
    if threads is not None:
        if not 1 <= threads <= MAX_THREADS:
            raise SettingsError(f"--threads is {threads}, it must be from 1 to {MAX_THREADS}")
        ops.set_num_threads(threads)
    settings = ConversionSettings(
        undirected=undirected,
        dedup=dedup,
        chunk_bits=chunk_bits,
        threshold=_threshold(threshold),
        layout=layout,
        align=align,
        format=parse_format(format),
    )
    try:
        budget = None if memory_budget is None else parse_bytes(memory_budget)
    except ValueError as error:
        raise SettingsError(f"--memory-budget: {error}") from None
    path = convert_source(
        source,
        out,
        raw_root=raw_root,
        num_classes=num_classes,
        settings=settings,
        memory_budget=budget,
        say=_say,
    )
    print(info_text(path))
    return 0


def info(path: Path) -> int:
    """Prints what is in a data set's folder or a feature file."""
    print(info_text(path))
    return 0


def info_text(path: Path) -> str:
    """What is in a data set's folder or a feature file, with sizes and bytes saved, as a few tables."""
    if not path.is_dir():
        with FeatureFile.open(path) as file:
            return "\n".join(feature_lines({path.name: file}))
    dataset = Dataset.open(path)
    meta = dataset.meta
    source = ", ".join(f"{key} {value}" for key, value in meta.source.items())
    changed = {k: v for k, v in meta.settings.items() if v != getattr(ConversionSettings(), k, None)}
    facts = {
        "data set": f"{meta.name}, in {path}",
        "made by": f"{meta.program}, from {source}",
        "settings": ", ".join(f"{key} = {value}" for key, value in changed.items()) or "defaults",
        "nodes": f"{meta.num_nodes:,}",
        "edges": f"{meta.num_edges:,}" + ", reverse edges added" * meta.undirected,
        "classes": f"{meta.num_classes:,}, metric {meta.metric}" if meta.has_labels else "no labels",
        "splits": ", ".join(f"{name} {count:,}" for name, count in meta.splits.items()) or "none",
    }
    lines = [f"{name:9} {value}" for name, value in facts.items()]
    files = {name: dataset.feature_file(name) for name in dataset.features}
    if files:
        lines += ["", *feature_lines(files)]
    sizes = {name: info.num_bytes for name, info in meta.files.items()}
    sizes |= {twin.name: twin.stat().st_size for twin in meta.raw_twins(path).values()}
    rows = [[name, format_bytes(size)] for name, size in sizes.items()]
    lines += ["", *table([["file", "size"], *rows, ["total", format_bytes(sum(sizes.values()))]])]
    return "\n".join(lines)


def verify(path: Path) -> int:
    """Reads a data set or a feature file whole and compares every checksum. 1 where something is damaged.

    One line for each damage names the file, and in feature files the block and its rows. Raises
    ForeignFileError for a file that is no feature file, or one of a newer version.
    """
    num_damages = 0
    for damage in damages(path):
        print(damage, flush=True)
        num_damages += 1
    found = "1 damage" if num_damages == 1 else f"{num_damages} damages"
    print(f"{path}: {f'{found} found' if num_damages else 'no damage, every checksum is right'}")
    return 1 if num_damages else 0


def _say(line: str) -> None:
    print(line, flush=True)


def _threshold(threshold: str | float | None) -> Threshold:
    if threshold is None or threshold == "sweep":
        return None if threshold is None else "sweep"
    try:
        return float(threshold)
    except ValueError as error:
        raise SettingsError(f"--threshold is {threshold!r}, wanted 0.50 to 0.99, or sweep") from error
