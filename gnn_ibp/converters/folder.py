"""A data set's folder as a source: written again with other settings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.column_stats import ColumnFacts
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.row_stream import Rows, skip_rows
from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_meta import EDGE, NODE, file_info
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.fit_sample import fit_sample_ids
from gnn_ibp.graph import Graph
from gnn_ibp.row_type import RowType


@dataclass(frozen=True)
class FileRows:
    """Rows of a feature file; in order, checksums are compared."""

    file: FeatureFile

    @property
    def num_rows(self) -> int:
        return self.file.num_rows

    @property
    def row_type(self) -> RowType:
        return self.file.row_type

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        return skip_rows(self.file.decoded_blocks(), first_row)

    def sample(self, seed: int) -> Tensor:
        return self.take(fit_sample_ids(self.num_rows, self.row_type.row_bytes, seed))

    def take(self, ids: NDArray[np.int64]) -> Tensor:
        out = self.row_type.empty(len(ids))
        self.file.read(ids, out)
        return out


def folder_settings(dataset: Dataset, settings: ConversionSettings) -> ConversionSettings:
    """`settings`, and those of the data set: of its edges, which cannot be taken back; its row format, if
    none is asked for."""
    keeps_format = settings.format is None and settings.needed_format is None
    return replace(
        settings,
        undirected=settings.undirected or dataset.undirected,
        dedup=settings.dedup or dataset.dedup,
        format=dataset.meta.asked_format if keeps_format else settings.format,
    )


def folder_parts(dataset: Dataset, settings: ConversionSettings) -> DatasetParts:
    """The parts of `dataset`. Its edges are sorted anew only for other settings of edges.

    Raises FormatError where a file is damaged; those of features are checked while they are read.
    """
    _check_plain_files(dataset)
    graph = Graph.open(dataset.path, mmap=True)
    graph.check()
    resort = (settings.undirected, settings.dedup) != (dataset.undirected, dataset.dedup)
    kinds = {kind: [n for n, info in dataset.arrays.items() if info.kind == kind] for kind in (NODE, EDGE)}
    files = {name: FileRows(dataset.feature_file(name)) for name in dataset.features}
    return DatasetParts(
        name=dataset.name,
        source=dataset.meta.source,
        num_nodes=dataset.num_nodes,
        edge_index=_edge_index(graph) if resort else None,
        graph=None if resort else graph,
        edge_perm=graph.edge_perm,
        labels=None if dataset.y is None else dataset.y.numpy(),
        num_classes=dataset.num_classes,
        splits={name: ids.numpy() for name, ids in dataset.split.items()},
        features={name: rows for name, rows in files.items() if dataset.features[name].kind == NODE},
        edge_features={name: rows for name, rows in files.items() if dataset.features[name].kind == EDGE},
        arrays={name: dataset.array(name).numpy() for name in kinds[NODE]},
        edge_arrays={name: dataset.array(name).numpy() for name in kinds[EDGE]},
        names=dataset.meta.names,
        metric=dataset.metric,
        columns={
            name: ColumnFacts(info.density, info.statistics)
            for name, info in dataset.features.items()
            if info.density is not None and info.statistics is not None and (info.kind == NODE or not resort)
        },
        directed=dataset.meta.directed,
        fingerprint=dataset.meta.fingerprint,
    )


def _check_plain_files(dataset: Dataset) -> None:
    features = dataset.meta.feature_files
    for name, expected in dataset.meta.files.items():
        path = dataset.path / name
        if name not in features and file_info(path, f"checksum of {name}") != expected:
            raise FormatError(
                f"{path} is damaged: its checksum is another than when it was written; the data set has to "
                "be copied or made again"
            )


def _edge_index(graph: Graph) -> tuple[Any, Any]:
    targets = torch.repeat_interleave(torch.arange(graph.num_nodes), torch.from_numpy(np.diff(graph.indptr)))
    return graph.indices, targets.numpy().astype(graph.indices.dtype)
