"""A raw folder of OGB's, in one of its two layouts: streams of what its files hold.

raw/num-node-list.csv.gz   raw/num-edge-list.csv.gz      counts, one row for each graph; there is one
raw/edge.csv.gz            source, target                int64
raw/node-feat.csv.gz                                     float32
raw/node-label.csv.gz      raw/node_year.csv.gz          a column

raw/data.npz               num_nodes_list, num_edges_list, edge_index (2, E), node_feat, node_year (N, ...)
raw/node-label.npz         node_label (N, 1), float, NaN for none

split/NAME/                split_dict.pt; or train.csv.gz, valid.csv.gz, test.csv.gz
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.labels import LABELS_PER_BLOCK, Ids
from gnn_ibp.conversion.row_stream import RowStream
from gnn_ibp.converters.class_labels import class_labels
from gnn_ibp.converters.csv_edges import CsvEdges
from gnn_ibp.converters.csv_table import CsvRows, CsvTable
from gnn_ibp.converters.ogb_table import OgbDataset
from gnn_ibp.converters.saved_dict import id_array, load_dict
from gnn_ibp.converters.zip_arrays import ZipArray, ZipArrays
from gnn_ibp.converters.zip_edges import ZipEdges
from gnn_ibp.converters.zip_rows import ZipRows
from gnn_ibp.edges.edge_stream import EdgeStream
from gnn_ibp.errors import FormatError
from gnn_ibp.row_type import RowType

SPLITS = {"train": "train", "valid": "val", "test": "test"}


@dataclass(frozen=True)
class OgbRaw:
    """edges: as OGB orders them, each followed by its reverse where the files hold it once.

    labels: small integers, -1 for none, read from the file `labels_file`.
    """

    num_nodes: int
    edges: EdgeStream
    features: dict[str, RowStream]
    labels: NDArray[Any]
    labels_file: Path


def read_raw(dataset: OgbDataset, folder: Path) -> OgbRaw:
    """What lies in `folder`, raw/. FormatError names the file and what is wrong with it."""
    return _read_binary(dataset, folder) if dataset.binary else _read_csv(dataset, folder)


def read_splits(folder: Path) -> dict[str, Ids]:
    """Node ids of "train", "val" and "test" from a folder below split/."""
    saved = folder / "split_dict.pt"
    if not saved.exists():
        return {
            ours: CsvTable(folder / f"{theirs}.csv.gz").column(np.int64) for theirs, ours in SPLITS.items()
        }
    loaded = load_dict(saved)
    missing = [name for name in SPLITS if name not in loaded]
    if missing:
        raise FormatError(f"{saved}: {', '.join(missing)} is missing")
    return {ours: id_array(loaded[theirs], f"{saved}: {theirs}") for theirs, ours in SPLITS.items()}


def _read_csv(dataset: OgbDataset, folder: Path) -> OgbRaw:
    num_nodes = _csv_count(folder / "num-node-list.csv.gz")
    num_edges = _csv_count(folder / "num-edge-list.csv.gz")
    labels_file = folder / "node-label.csv.gz"
    blocks = CsvTable(labels_file).blocks(np.float64, LABELS_PER_BLOCK)
    labels = class_labels(blocks, num_nodes, dataset.num_classes, str(labels_file))
    features = {"x": _csv_rows(folder / "node-feat.csv.gz", num_nodes, "float32")}
    features |= {
        name: _csv_rows(folder / f"{name}.csv.gz", num_nodes, "int64") for name in dataset.node_files
    }
    edges = CsvEdges(CsvTable(folder / "edge.csv.gz"), num_edges, dataset.add_inverse_edge)
    return OgbRaw(num_nodes, edges, features, labels, labels_file)


def _csv_count(path: Path) -> int:
    counts = CsvTable(path).column(np.int64)
    if len(counts) != 1 or counts[0] < 0:
        raise FormatError(f"{path} holds {counts.tolist()[:3]}, wanted the count of a single graph")
    return int(counts[0])


def _csv_rows(path: Path, num_rows: int, dtype: str) -> RowStream:
    table = CsvTable(path)
    parsed = np.float64 if dtype == "float32" else dtype  # as OGB rounds: numbers are parsed as float64
    return CsvRows(table, num_rows, RowType(dtype, (table.num_columns(),)), parsed)


def _read_binary(dataset: OgbDataset, folder: Path) -> OgbRaw:
    path = folder / "data.npz"
    arrays = _open_zip(path)
    num_nodes, num_edges = (_zip_count(arrays, name) for name in ("num_nodes_list", "num_edges_list"))
    edges = ZipEdges(arrays, "edge_index", dataset.add_inverse_edge)
    if edges.num_given != num_edges:
        raise FormatError(f"{path}: edge_index has {edges.num_given} edges, num_edges_list says {num_edges}")
    members = {"x": "node_feat", **{name: name for name in dataset.node_files}}
    rows = {ours: ZipRows(arrays, member) for ours, member in members.items()}
    for ours, stream in rows.items():
        if stream.num_rows != num_nodes:
            raise FormatError(
                f"{path}: {members[ours]} has {stream.num_rows} rows, num_nodes_list says {num_nodes}"
            )
    labels_file = folder / "node-label.npz"
    member = _open_zip(labels_file).open("node_label")
    labels = class_labels(_label_blocks(member), num_nodes, dataset.num_classes, member.where)
    return OgbRaw(num_nodes, edges, dict(rows), labels, labels_file)


def _label_blocks(member: ZipArray) -> Iterator[NDArray[Any]]:
    if not member.shape:
        raise FormatError(f"{member.where} is a single number, wanted one for each node")
    for at in range(0, member.shape[0], LABELS_PER_BLOCK):
        yield member.take(min(LABELS_PER_BLOCK, member.shape[0] - at))


def _open_zip(path: Path) -> ZipArrays:
    try:
        return ZipArrays(path)
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing") from error


def _zip_count(arrays: ZipArrays, name: str) -> int:
    counts = arrays.read(name)
    if counts.shape != (1,) or counts.dtype.kind not in "iu" or counts[0] < 0:
        raise FormatError(
            f"{arrays.path}: {name} is {counts.dtype} {counts.shape}, wanted the count of a single graph"
        )
    return int(counts[0])
