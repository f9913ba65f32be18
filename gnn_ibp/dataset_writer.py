"""Writes the parts of a data set into a folder, whole or not at all."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.codec import IBPCodec
from gnn_ibp.column_stats import ColumnStats
from gnn_ibp.dataset_meta import EDGE, NAME, NODE, ArrayInfo, FeatureInfo, Meta, file_info
from gnn_ibp.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.disk_file import NewFile, sync_folder
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import FeatureFileWriter
from gnn_ibp.graph import Graph, build_csc
from gnn_ibp.labels import checked_labels, checked_num_classes, checked_splits
from gnn_ibp.progress import progress
from gnn_ibp.row_stream import RowStream, TakenRows
from gnn_ibp.temporary_folder import temporary_folder
from gnn_ibp.version import __version__

_ATTRIBUTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

Ids = NDArray[np.int64]


def write_dataset(
    parts: DatasetParts, out: str | os.PathLike[str], settings: ConversionSettings | None = None
) -> Path:
    """Writes a data set into the new folder `out` and returns its path.

    Everything is written into a folder with a temporary name beside `out`, brought to the disk and renamed,
    so `out` holds a whole data set or is not there. What killed conversions left behind is removed first.
    The rows of features are read block by block; memory is needed for the edges and for about 100 MiB.

    Raises FileExistsError where `out` exists; ValueError, TypeError and IndexError for parts that
    contradict each other: labels, splits, edges of nodes that do not exist, features with another number
    of rows.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; remove it or choose another folder")
    with temporary_folder(out) as folder:
        _Conversion(parts, settings or ConversionSettings(), folder).run()
        try:
            folder.rename(out)
        except OSError as error:
            if out.exists():
                raise FileExistsError(
                    f"{out} was made by another process meanwhile; it is left as it is"
                ) from error
            raise
        sync_folder(out.parent)
    return out


def write_raw_twin(file: FeatureFile, path: Path) -> None:
    """Writes the rows of `file` to `path`, every one stored raw."""
    codec = IBPCodec.raw(file.row_bytes)
    with FeatureFileWriter(path, codec, file.row_type, layout=file.layout) as writer:
        for rows in file.decoded_blocks(progress=f"writing {path.name}"):
            writer.append(rows)


class _Conversion:
    """One run: parts in, the files of a data set out."""

    def __init__(self, parts: DatasetParts, settings: ConversionSettings, folder: Path) -> None:
        self._parts = parts
        self._settings = settings
        self._folder = folder
        self._features: dict[str, FeatureInfo] = {}
        self._arrays: dict[str, ArrayInfo] = {}
        self._check_names()

    def run(self) -> None:
        parts = self._parts
        num_nodes = parts.num_nodes
        if num_nodes is None:
            name, rows = next(iter(parts.features.items()))
            num_nodes = self._write_feature(NODE, name, rows, None)
        for name, rows in parts.features.items():
            _check_count(name, rows.num_rows, NODE, num_nodes)
        splits = checked_splits(parts.splits, num_nodes)
        num_classes = self._write_labels(num_nodes, splits)
        for name, ids in splits.items():
            self._save(f"split_{name}.npy", ids)
        num_edges = self._write_edges(num_nodes)
        for name, array in parts.arrays.items():
            self._write_array(NODE, name, array, num_nodes)
        for name, rows in parts.features.items():
            if name not in self._features:
                self._write_feature(NODE, name, rows, num_nodes)
        self._write_meta(num_nodes, num_edges, num_classes, splits)

    def _check_names(self) -> None:
        parts = self._parts
        kinds = (parts.features, parts.edge_features, parts.arrays, parts.edge_arrays)
        names = [name for attributes in kinds for name in attributes]
        for name in names:
            if not _ATTRIBUTE.fullmatch(name) or name in ("y", "edge_index") or names.count(name) > 1:
                raise ValueError(
                    f"attribute {name!r}: names are made of letters, digits, _ . -, each is used once, and "
                    "y and edge_index mean labels and edges"
                )
        for name in parts.splits:
            if not _ATTRIBUTE.fullmatch(name):
                raise ValueError(f"split {name!r}: names are made of letters, digits, _ . -")
        if parts.num_nodes is None and not parts.features:
            raise ValueError("num_nodes is not known: there are no features, labels or num_nodes to tell it")

    def _write_labels(self, num_nodes: int, splits: Mapping[str, Ids]) -> int:
        parts = self._parts
        if parts.labels is None:
            return parts.num_classes or 0
        labels = checked_labels(parts.labels, num_nodes)
        num_classes = checked_num_classes(labels, splits, parts.num_classes)
        self._save("y.npy", labels)
        return num_classes

    def _write_edges(self, num_nodes: int) -> int:
        parts = self._parts
        given_edges = parts.num_edges
        for name, count in (
            *((name, rows.num_rows) for name, rows in parts.edge_features.items()),
            *((name, len(array)) for name, array in parts.edge_arrays.items()),
        ):
            _check_count(name, count, EDGE, given_edges)
        graph, perm = self._sorted_edges(num_nodes)
        self._save("indptr.npy", graph.indptr)
        self._save("indices.npy", graph.indices)
        if parts.edge_features or parts.edge_arrays:
            original = (
                perm if parts.edge_perm is None else parts.edge_perm[slice(None) if perm is None else perm]
            )
            self._save("edge_perm.npy", np.arange(graph.num_edges) if original is None else original)
        for name, array in parts.edge_arrays.items():
            self._write_array(EDGE, name, array if perm is None else array[perm], graph.num_edges)
        for name, rows in parts.edge_features.items():
            self._write_feature(EDGE, name, rows if perm is None else TakenRows(rows, perm), graph.num_edges)
        return graph.num_edges

    def _sorted_edges(self, num_nodes: int) -> tuple[Graph, Ids | None]:
        """The graph, and where its edges stand in the parts; None for "as they are"."""
        parts = self._parts
        if parts.graph is not None:
            return parts.graph, None
        edges = np.empty((2, 0), np.int64) if parts.edge_index is None else parts.edge_index
        built = build_csc(edges, num_nodes, undirected=self._settings.undirected, dedup=self._settings.dedup)
        return built.graph, built.perm

    def _write_array(self, kind: str, name: str, array: NDArray[Any], num_rows: int) -> None:
        _check_count(name, len(array), kind, num_rows)
        file = f"{kind}.{name}.npy"
        self._save(file, array)
        self._arrays[name] = ArrayInfo(kind, str(array.dtype), tuple(array.shape), file)

    def _write_feature(self, kind: str, name: str, rows: RowStream, num_rows: int | None) -> int:
        """Writes a feature file; returns the number of its rows, `num_rows` where that is known."""
        row_type = rows.row_type
        codec = self._fit(rows)
        is_float = row_type.torch_dtype.is_floating_point
        stats = ColumnStats(row_type.shape) if is_float else None
        settings, path = self._settings, self._folder / f"{name}.ibp"
        count = 0
        with FeatureFileWriter(path, codec, row_type, layout=settings.layout, align=settings.align) as writer:
            for block in _with_bar(rows, name):
                writer.append(block)
                if stats:
                    stats.add(block)
                count += len(block)
            _check_count(name, count, kind, count if num_rows is None else num_rows)
        with FeatureFile.open(path) as file:
            self._features[name] = FeatureInfo(
                kind=kind,
                dtype=row_type.dtype,
                row_shape=row_type.shape,
                num_rows=count,
                file=path.name,
                raw_bytes=file.raw_bytes,
                stored_bytes=file.stored_bytes,
                num_raw_rows=file.num_raw_rows,
                density=stats.density if stats else None,
                statistics=stats.result() if stats else None,
                fingerprint=file.fingerprint,
            )
        return count

    def _fit(self, rows: RowStream) -> IBPCodec:
        settings = self._settings
        chunk_bits = settings.chunk_bits
        streams = (*self._parts.features.values(), *self._parts.edge_features.values())
        if chunk_bits and any(s.row_type.row_bytes % (chunk_bits // 8) == 0 for s in streams):
            chunk_bits = chunk_bits if rows.row_type.row_bytes % (chunk_bits // 8) == 0 else None
        sample = rows.sample(settings.seed)
        return IBPCodec.fit(sample, chunk_bits, settings.threshold, settings.seed)

    def _save(self, name: str, array: NDArray[Any]) -> None:
        with NewFile(self._folder / name) as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
            file.commit()

    def _write_meta(
        self, num_nodes: int, num_edges: int, num_classes: int, splits: Mapping[str, Ids]
    ) -> None:
        parts, settings = self._parts, self._settings
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
            files={path.name: file_info(path) for path in sorted(self._folder.iterdir())},
        )
        with NewFile(self._folder / NAME) as file:
            file.write(meta.to_json())
            file.commit()


def _check_count(name: str, count: int | None, kind: str, wanted: int) -> None:
    if count is not None and count != wanted:
        raise ValueError(f"{name!r} has {count} rows, the graph has {wanted} {kind}s")


def _with_bar(rows: RowStream, name: str) -> Iterator[Any]:
    """The blocks of `rows`, with a progress bar on a terminal when it takes more than a second."""
    with progress(f"encoding {name}", rows.num_rows, "rows") as bar:
        for block in rows.blocks():
            yield block
            bar.update(len(block))
