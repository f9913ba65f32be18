"""Writes the parts of a data set into a folder, whole or not at all."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.budget import free_memory
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.feature_conversion import FeatureConversion
from gnn_ibp.conversion.folder import ConversionFolder, refuse_existing
from gnn_ibp.conversion.labels import checked_num_classes, label_blocks
from gnn_ibp.conversion.need import ConversionNeed
from gnn_ibp.conversion.row_settings import check_row_settings, divides
from gnn_ibp.conversion.row_stream import RowStream, TakenRows, checked_rows
from gnn_ibp.conversion.splits import Split, checked_splits, split_blocks
from gnn_ibp.conversion.topology_writer import TopologyWriter, permuted_blocks
from gnn_ibp.dataset_meta import EDGE, NAME, NODE, ArrayInfo, FeatureInfo, Meta, file_info
from gnn_ibp.disk_file import NewFile
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import FeatureFileWriter
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.npy import read_npy, write_npy_blocks
from gnn_ibp.progress import Say
from gnn_ibp.report import stage_lines
from gnn_ibp.stages import Stages
from gnn_ibp.version import __version__

_ATTRIBUTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

Ids = NDArray[np.int64]

TOLD_FROM_S = 1.0
"""Conversions that take so long tell at their end how long each stage took."""


def write_dataset(
    parts: DatasetParts,
    out: str | os.PathLike[str],
    settings: ConversionSettings | None = None,
    memory_bytes: int | None = None,
    say: Say | None = None,
) -> Path:
    """Writes a data set into the new folder `out` and returns its path.

    Everything is written into the folder .NAME.converting beside `out`, brought to the disk and renamed, so
    `out` holds a whole data set or is not there. Where `parts` tells which content it has, a conversion that
    was killed or stopped goes on there where it is asked for again, and gives the same bytes.

    memory_bytes: what may be taken beside what the process holds already; edges that do not fit are sorted
    through files. By default most of what is free. say: takes lines about what is done.

    Raises FileExistsError where `out` exists, RuntimeError where another process is making it; SettingsError
    where memory or disk does not suffice, or rows cannot be stored as asked, with what would do; ValueError,
    TypeError and IndexError for parts that contradict each other: labels, splits, edges of nodes that do not
    exist, features with another number of rows.
    """
    out, settings, say = Path(out), settings or ConversionSettings(), say or _nothing
    refuse_existing(out)
    parts = replace(
        parts,
        num_nodes=_count("num_nodes", parts.num_nodes),
        num_classes=_count("num_classes", parts.num_classes),
    )
    check_row_settings(parts, settings)
    if memory_bytes is None:
        free = free_memory() // 10 * 8
        need = ConversionNeed(parts, settings, free)
        need = replace(need, memory_bytes=max(free, need.smallest_memory_bytes))
    else:
        need = ConversionNeed(parts, settings, memory_bytes)
        need.check_memory()
    with ConversionFolder(out, _identity(parts, settings), say) as folder:
        disk = need.check_disk(out.parent, folder.num_bytes)
        say(f"converting {parts.name} into {out}: {disk}")
        stages = Stages()
        _Conversion(parts, settings, folder, need, stages).run()
        folder.finish()
        if stages.elapsed_s >= TOLD_FROM_S:
            for line in stage_lines(stages.done):
                say(line)
    return out


def _count(name: str, count: Any) -> int | None:
    """`count`, of whatever integer type, as an int; None as it is."""
    if count is None:
        return None
    if not hasattr(count, "__index__"):
        raise TypeError(f"{name} is {count!r}, an int is wanted")
    if count < 0:
        raise ValueError(f"{name} is {count}, it must not be negative")
    return index(count)


def _nothing(line: str) -> None:
    pass


def _identity(parts: DatasetParts, settings: ConversionSettings) -> Mapping[str, Any] | None:
    """What tells this conversion from every other; None where nothing does."""
    if parts.fingerprint is None:
        return None
    streams = {**parts.features, **parts.edge_features}
    return {
        "program": __version__,
        "name": parts.name,
        "source": dict(parts.source),
        "fingerprint": parts.fingerprint,
        "settings": asdict(settings),
        "counts": [parts.num_nodes, parts.num_edges, parts.num_classes],
        "features": {
            name: [rows.num_rows, rows.row_type.dtype, *rows.row_type.shape] for name, rows in streams.items()
        },
    }


def write_raw_twin(file: FeatureFile, path: Path) -> None:
    """Writes the rows of `file` to `path`, every one stored raw."""
    codec = IBPCodec.raw(file.row_bytes)
    with FeatureFileWriter(path, codec, file.row_type, layout=file.layout) as writer:
        for rows in file.decoded_blocks(progress=f"writing {path.name}"):
            writer.append(rows)


class _Conversion:
    """One run: parts in, the files of a data set out."""

    def __init__(
        self,
        parts: DatasetParts,
        settings: ConversionSettings,
        folder: ConversionFolder,
        need: ConversionNeed,
        stages: Stages,
    ) -> None:
        self._parts, self._settings, self._need, self._stages = parts, settings, need, stages
        self._folder, self._work, self._journal = folder.data, folder.work, folder.journal
        self._features: dict[str, FeatureInfo] = {}
        self._arrays: dict[str, ArrayInfo] = {}
        self._check_attributes()

    def run(self) -> None:
        parts = self._parts
        num_nodes = parts.num_nodes
        if num_nodes is None:
            name, rows = next(iter(parts.features.items()))
            num_nodes = self._write_feature(NODE, name, rows, None)
        for name, rows in parts.features.items():
            _check_count(name, rows.num_rows, NODE, num_nodes)
        if parts.labels is not None and parts.labels.ndim:
            _check_count("y", len(parts.labels), NODE, num_nodes)
        splits = checked_splits(parts.splits, num_nodes)
        num_classes = self._write_labels(num_nodes, splits)
        for name, ids in splits.items():
            path = self._folder / f"split_{name}.npy"
            write_npy_blocks(path, np.dtype(np.int64), (len(ids),), split_blocks(ids))
        num_edges = self._write_edges(num_nodes)
        for name, array in parts.arrays.items():
            self._write_array(NODE, name, array, num_nodes, None)
        for name, rows in parts.features.items():
            if name not in self._features:
                self._write_feature(NODE, name, rows, num_nodes)
        self._write_meta(num_nodes, num_edges, num_classes, splits)

    def _check_attributes(self) -> None:
        parts = self._parts
        kinds = (parts.features, parts.edge_features, parts.arrays, parts.edge_arrays)
        names = [name for attributes in kinds for name in attributes]
        for name in names:
            if not _ATTRIBUTE.fullmatch(name) or name in ("y", "edge_index") or names.count(name) > 1:
                raise ValueError(
                    f"attribute {name!r}: names are made of letters, digits, _ . -, each is used once, and "
                    "y and edge_index mean labels and edges"
                )
        if "x" in names and "x" not in parts.features:
            raise ValueError("attribute 'x': this name means features of nodes; choose another one")
        for name in (*parts.features, *parts.edge_features):
            if name.endswith(".raw"):
                raise ValueError(f"feature {name!r}: names that end in .raw are of files of raw rows")
        for name, array in (*parts.arrays.items(), *parts.edge_arrays.items()):
            checked_rows(array, name)
        for name in parts.splits:
            if not _ATTRIBUTE.fullmatch(name):
                raise ValueError(f"split {name!r}: names are made of letters, digits, _ . -")
        if parts.num_nodes is None and not parts.features:
            raise ValueError("num_nodes is not known: there are no features, labels or num_nodes to tell it")

    def _write_labels(self, num_nodes: int, splits: Mapping[str, Split]) -> int:
        parts = self._parts
        if parts.labels is None:
            return parts.num_classes or 0
        path = self._folder / "y.npy"
        if self._journal.get("labels") is None:
            blocks = label_blocks(parts.labels, num_nodes)
            write_npy_blocks(path, np.dtype(np.int64), (num_nodes,), blocks)
            labels = read_npy(path, (np.int64,), mmap=True)
            num_classes = checked_num_classes(labels, splits, parts.num_classes)
            self._journal.put("labels", num_classes=num_classes)
        state = self._journal.get("labels")
        assert state
        return int(state["num_classes"])

    def _write_edges(self, num_nodes: int) -> int:
        parts = self._parts
        for name, count in (
            *((name, rows.num_rows) for name, rows in parts.edge_features.items()),
            *((name, len(array)) for name, array in parts.edge_arrays.items()),
        ):
            _check_count(name, count, EDGE, parts.num_edges)
        writer = TopologyWriter(parts, self._folder, self._work, self._journal, self._stages)
        num_edges, perm = writer.write(self._need.sort_plan(num_nodes))
        for name, array in parts.edge_arrays.items():
            self._write_array(EDGE, name, array, num_edges, perm)
        for name, rows in parts.edge_features.items():
            self._write_feature(EDGE, name, rows if perm is None else TakenRows(rows, perm), num_edges)
        return num_edges

    def _write_array(
        self, kind: str, name: str, array: NDArray[Any], num_rows: int, perm: Ids | None
    ) -> None:
        """Writes a plain array, its rows in the order of `perm`."""
        _check_count(name, len(array if perm is None else perm), kind, num_rows)
        path, shape = self._folder / f"{kind}.{name}.npy", (num_rows, *array.shape[1:])
        if not path.exists():
            write_npy_blocks(path, array.dtype, shape, permuted_blocks(array, perm))
        self._arrays[name] = ArrayInfo(kind, str(array.dtype), shape, path.name)

    def _write_feature(self, kind: str, name: str, rows: RowStream, num_rows: int | None) -> int:
        """Writes a feature file; returns the number of its rows, `num_rows` where that is known."""
        settings = replace(
            self._settings, format=self._settings.needed_format, chunk_bits=self._chunk_bits(rows)
        )
        conversion = FeatureConversion(
            *(kind, name, rows, settings, self._folder, self._work, self._journal, self._stages),
            columns=self._parts.columns.get(name),
        )
        info = conversion.run()
        _check_count(name, info.num_rows, kind, info.num_rows if num_rows is None else num_rows)
        self._features[name] = info
        return info.num_rows

    def _chunk_bits(self, rows: RowStream) -> int | None:
        """The width that is asked for; None where it suits other features and not this one."""
        wanted = self._settings.chunk_bits
        return wanted if wanted and divides(wanted, rows.row_type) else None

    def _write_meta(
        self, num_nodes: int, num_edges: int, num_classes: int, splits: Mapping[str, Split]
    ) -> None:
        parts, settings = self._parts, self._settings
        names = sorted(path.name for path in self._folder.iterdir() if path.name != NAME)
        with self._stages.measure("checksums") as stage:
            files = {name: file_info(self._folder / name, f"checksum of {name}") for name in names}
            stage.num_bytes = sum(file.num_bytes for file in files.values())
        meta = Meta(
            name=parts.name,
            program=f"gnn_ibp {__version__}",
            source=parts.source,
            settings=asdict(settings),
            num_nodes=num_nodes,
            num_edges=num_edges,
            num_classes=num_classes,
            undirected=settings.undirected,
            dedup=settings.dedup,
            directed=parts.directed,
            metric=parts.metric,
            has_labels=parts.labels is not None,
            splits={name: len(ids) for name, ids in splits.items()},
            features=self._features,
            arrays=self._arrays,
            names=parts.names,
            files=files,
        )
        with NewFile(self._folder / NAME) as file:
            file.write(meta.to_json())
            file.commit()


def _check_count(name: str, count: int | None, kind: str, wanted: int) -> None:
    if count is not None and count != wanted:
        raise ValueError(f"{name!r} has {count} rows, the graph has {wanted} {kind}s")
