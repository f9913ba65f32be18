"""Dataset: a folder with a graph, its features, labels and splits."""

import errno
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.column_stats import Statistics
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts, Format
from gnn_ibp.conversion.dataset_writer import write_dataset, write_raw_twin
from gnn_ibp.conversion.pyg_parts import pyg_parts
from gnn_ibp.conversion.row_stream import Rows, RowStream, as_random_access, as_stream
from gnn_ibp.dataset_meta import ArrayInfo, FeatureInfo, Meta, raw_twin_name
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import FormatError, unknown_name
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.format import read_header
from gnn_ibp.graph import Graph
from gnn_ibp.ibp_codec import Threshold
from gnn_ibp.npy import npy_layout, read_npy
from gnn_ibp.row_type import dtype_name

if TYPE_CHECKING:
    from torch_geometric.data import Data  # takes seconds, which a conversion can do without

TWIN_ROWS = 4096
"""Rows of a raw twin that are compared with those it was made of, whenever it is opened."""


class Dataset:
    """A data set on disk; it may lie in a read-only folder and be moved. Pickled, it is its path.

    path, meta (all of meta.json), name, num_nodes, num_edges, num_classes, undirected, dedup, metric tell
    what it is.
    features: name -> `FeatureInfo`, of nodes and edges. arrays: name -> `ArrayInfo`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.meta = Meta.read(self.path)
        for name, info in self.meta.files.items():
            self._check_size(name, info.num_bytes)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Dataset":
        """The data set in the folder `path`. Reads meta.json and looks at the sizes of the files, no more.

        FileNotFoundError where there is none; FormatError for a damaged meta.json, and naming a file that is
        missing or has another size than when it was written.
        """
        return cls(path)

    @classmethod
    def from_arrays(
        cls,
        path: str | os.PathLike[str],
        *,
        edge_index: Any = None,
        x: Rows | Iterable[Rows] | RowStream | None = None,
        y: NDArray[Any] | Tensor | None = None,
        split: Mapping[str, NDArray[Any] | Tensor] | None = None,
        num_nodes: int | None = None,
        num_classes: int | None = None,
        features: Mapping[str, Rows | Iterable[Rows] | RowStream] | None = None,
        edge_features: Mapping[str, Rows] | None = None,
        arrays: Mapping[str, NDArray[Any] | Tensor] | None = None,
        edge_arrays: Mapping[str, NDArray[Any] | Tensor] | None = None,
        name: str | None = None,
        metric: str = "accuracy",
        undirected: bool = False,
        dedup: bool = False,
        chunk_bits: int | None = None,
        threshold: Threshold = None,
        layout: str = "condensed",
        align: int | None = None,
        seed: int = 0,
        format: Format = None,
    ) -> "Dataset":
        """Writes a data set into the new folder `path` and opens it. All arrays are NumPy or torch.

        edge_index: integers (2, E), sources and targets; or a pair of (E,).
        x, features: (num_nodes, *row_shape), in memory or memory-mapped; or an iterable of such blocks of
            rows, which is read once, in bounded memory. x is the feature "x".
        y: (num_nodes,), integers or floats; NaN and negative numbers mean no label. num_classes: by default
            the highest label + 1.
        split: "train", "val", "test" or others -> node ids, or a bool mask (num_nodes,).
        edge_features: (E, *row_shape), in the order of edge_index; they are stored in the order of the CSC.
        arrays, edge_arrays: attributes that stay plain arrays instead of feature files.
        The rest is explained at `ConversionSettings`.

        Raises as `write_dataset`.
        """
        settings = ConversionSettings(undirected, dedup, chunk_bits, threshold, layout, align, seed, format)
        given = {**({} if x is None else {"x": x}), **(features or {})}
        streams = {key: as_stream(rows, key) for key, rows in given.items()}
        labels = None if y is None else _as_numpy(y, "y")
        counts = [rows.num_rows for rows in streams.values() if rows.num_rows is not None]
        counts += [] if labels is None else [*labels.shape[:1]]
        counts += [len(array) for array in (arrays or {}).values() if np.ndim(array)]
        if num_nodes is None and not streams and not counts and edge_index is not None:
            raise ValueError("num_nodes is needed: there are neither features nor labels that tell it")
        parts = DatasetParts(
            name=name or Path(path).name,
            source={"kind": "arrays"},
            num_nodes=num_nodes if num_nodes is not None or not counts else counts[0],
            edge_index=edge_index,
            labels=labels,
            num_classes=num_classes,
            splits={key: _as_numpy(ids, key) for key, ids in (split or {}).items()},
            features=streams,
            edge_features={key: as_random_access(rows, key) for key, rows in (edge_features or {}).items()},
            arrays={key: _as_numpy(array, key) for key, array in (arrays or {}).items()},
            edge_arrays={key: _as_numpy(array, key) for key, array in (edge_arrays or {}).items()},
            metric=metric,
            fingerprint=None,
        )
        return cls.open(write_dataset(parts, path, settings))

    @classmethod
    def from_pyg(
        cls,
        data: "Data",
        path: str | os.PathLike[str],
        undirected: bool = False,
        dedup: bool = False,
        **settings: Any,
    ) -> "Dataset":
        """Writes `data` into the new folder `path` and opens it; see `pyg_parts`, `ConversionSettings`."""
        parts = pyg_parts(data, Path(path).name)
        return cls.open(write_dataset(parts, path, ConversionSettings(undirected, dedup, **settings)))

    @property
    def name(self) -> str:
        return self.meta.name

    @property
    def num_nodes(self) -> int:
        return self.meta.num_nodes

    @property
    def num_edges(self) -> int:
        return self.meta.num_edges

    @property
    def num_classes(self) -> int:
        return self.meta.num_classes

    @property
    def metric(self) -> str:
        return self.meta.metric

    @property
    def undirected(self) -> bool:
        """Whether the conversion added the reverse of every edge."""
        return self.meta.undirected

    @property
    def dedup(self) -> bool:
        """Whether the conversion was asked to remove duplicate edges."""
        return self.meta.dedup

    @property
    def features(self) -> Mapping[str, FeatureInfo]:
        return MappingProxyType(dict(self.meta.features))

    @property
    def arrays(self) -> Mapping[str, ArrayInfo]:
        return MappingProxyType(dict(self.meta.arrays))

    @cached_property
    def graph(self) -> Graph:
        """The topology, in memory; `mapped_graph` leaves it on the disk."""
        return self._checked_graph(Graph.open(self.path))

    def mapped_graph(self) -> Graph:
        """The topology with its `indices` memory-mapped: where they do not fit into memory."""
        return self._checked_graph(Graph.open_mapped(self.path))

    @property
    def indices_bytes(self) -> int:
        """Of the topology's `indices`, wherever they lie."""
        return npy_layout(self.path / "indices.npy", (np.int32, np.int64)).num_bytes

    def _checked_graph(self, graph: Graph) -> Graph:
        if (graph.num_nodes, graph.num_edges) != (self.num_nodes, self.num_edges):
            raise FormatError(
                f"{self.path}: indptr.npy and indices.npy are of {graph.num_nodes} nodes and "
                f"{graph.num_edges} edges, the data set has {self.num_nodes} and {self.num_edges}"
            )
        return graph

    @cached_property
    def y(self) -> Tensor | None:
        """int64 (num_nodes,), -1 for no label; None where the data set has no labels."""
        return self._ids("y.npy", self.num_nodes) if self.meta.has_labels else None

    @cached_property
    def split(self) -> dict[str, Tensor]:
        """Node ids int64 by name: "train", "val", "test"."""
        return {name: self._split(f"split_{name}.npy", count) for name, count in self.meta.splits.items()}

    def array(self, name: str) -> Tensor:
        """The plain array `name`, with a row per node, or per edge in the order of `graph.indices`."""
        if name not in self.arrays:
            raise KeyError(unknown_name("array", name, self.arrays))
        info = self.arrays[name]
        array = read_npy(self.path / info.file, (info.dtype,), len(info.shape))
        if array.shape != info.shape:
            raise FormatError(
                f"{self.path / info.file} has shape {array.shape}, the data set says {info.shape}"
            )
        return torch.from_numpy(array)

    def feature_file(self, name: str = "x", raw: bool = False) -> FeatureFile:
        """The rows of the feature `name`; with `raw` from its twin, which stores every row raw.

        KeyError for an unknown name, FormatError for a damaged file.
        """
        info = self._feature(name)
        path = self.raw_twin(name) if raw else self.path / info.file
        file = FeatureFile.open(path)
        if (file.num_rows, file.row_type) != (info.num_rows, info.row_type):
            remedy = "; delete it, it is made again" if raw else ""
            raise FormatError(
                f"{path} holds {file.num_rows} rows of {file.dtype} {file.row_shape}, the data set has "
                f"{info.num_rows} of {info.dtype} {info.row_shape}{remedy}"
            )
        if not raw and info.fingerprint not in (None, file.fingerprint):
            raise FormatError(
                f"{path} is whole, but is not the file that this data set was written with; the data set has "
                "to be copied or made again"
            )
        if raw:
            self._check_twin(name, file)
        return file

    def row_format(self, name: str = "x") -> int:
        """The version of the row format of the feature `name`. Reads the file's header, no more."""
        file = DiskFile(self.path / self._feature(name).file)
        try:
            return read_header(file).codec
        finally:
            file.close()

    def raw_twin(self, name: str = "x") -> Path:
        """The file beside that of the feature `name` that stores every row raw; written at the first call."""
        path = self.path / raw_twin_name(name)
        if not path.exists():
            try:
                with self.feature_file(name) as file:
                    write_raw_twin(file, path)
            except OSError as error:
                if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                    message = f"{path.name} cannot be written there, which is needed once; copy the data set"
                    raise OSError(error.errno, message, str(self.path)) from error
                raise
        return path

    def statistics(self, name: str = "x") -> Statistics | None:
        """Mean and scale of each column of the feature `name`; None where it does not hold floats."""
        return self._feature(name).statistics

    def _check_twin(self, name: str, twin: FeatureFile) -> None:
        """FormatError unless `twin` has the rows of the feature, as far as some of them tell: it may be of an
        older data set. `gnn-ibp verify` looks at all."""
        if not twin.num_rows or not twin.row_bytes:
            return
        ids = np.linspace(0, twin.num_rows - 1, min(twin.num_rows, TWIN_ROWS)).astype(np.int64)
        pair = np.empty((2, len(ids), twin.row_bytes), np.uint8)
        with self.feature_file(name) as file:
            for source, rows in zip((file, twin), pair, strict=True):
                source.read(ids, twin.row_type.from_bytes(rows))
        if not np.array_equal(*pair):
            raise FormatError(f"{twin.path} holds other rows than {file.path}; delete it, it is made again")

    def _feature(self, name: str) -> FeatureInfo:
        if name not in self.features:
            raise KeyError(unknown_name("feature", name, self.features))
        return self.features[name]

    def _split(self, file: str, count: int) -> Tensor:
        ids = self._ids(file, count)
        bad = (ids < 0) | (ids >= self.num_nodes)
        if bad.any():
            raise FormatError(
                f"{self.path / file} is damaged: it names node {ids[bad][0]}, there are {self.num_nodes}; "
                "the data set has to be copied or made again"
            )
        return ids

    def _ids(self, file: str, count: int) -> Tensor:
        ids = read_npy(self.path / file, (np.int64,))
        if len(ids) != count:
            raise FormatError(f"{self.path / file} has {len(ids)} entries, meta.json says {count}")
        return torch.from_numpy(ids)

    def _check_size(self, name: str, num_bytes: int) -> None:
        try:
            file = DiskFile(self.path / name)
        except FileNotFoundError as error:
            raise FormatError(
                f"{self.path / name} is missing; the data set has to be copied or made again"
            ) from error
        file.close()
        if file.size != num_bytes:
            what = "is cut short" if file.size < num_bytes else "has grown"
            raise FormatError(
                f"{self.path / name} {what}: {num_bytes} bytes were written, {file.size} are there"
            )

    def __reduce__(self) -> tuple[type["Dataset"], tuple[Path]]:
        return Dataset, (self.path.resolve(),)

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r}: {self.num_nodes} nodes, {self.num_edges} edges)"


def _as_numpy(array: NDArray[Any] | Tensor, what: str) -> NDArray[Any]:
    if not isinstance(array, Tensor):
        return np.asarray(array)
    if not hasattr(np, dtype_name(array.dtype)):
        raise TypeError(f"{what} is a tensor of {array.dtype}, which only features can be; convert it")
    return array.detach().cpu().numpy()
