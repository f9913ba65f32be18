"""A graph in one .npz file.

    x                                     dense features (N, ...); or, as CSR,
    x_indptr, x_indices, x_data, x_shape  (N + 1,), (nnz,), (nnz,), [N, D]
    edge_index                            integers (2, E), row 0 source, row 1 target
    y                                     (N,), negative or NaN: no label
    train_idx, val_idx, test_idx          node ids
    directed                              false: every edge is there in both directions
    node_type, edge_type                  optional, integers (N,) and (E,)
    class_names, node_type_names, edge_type_names   optional, strings

Rows of features go from the zip member to the feature file in blocks; the rest is read into memory.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.row_stream import RowStream
from gnn_ibp.conversion.sparse_rows import SparseRows, check_indptr
from gnn_ibp.converters.zip_arrays import ZipArrays
from gnn_ibp.converters.zip_rows import ZipRows
from gnn_ibp.errors import FormatError, unknown_name
from gnn_ibp.row_type import RowType

SPARSE = ("x_indptr", "x_indices", "x_data", "x_shape")
PLAIN = ("x", "edge_index", "y", "directed", "node_type", "edge_type")
SPLITS = ("train_idx", "val_idx", "test_idx")
NAMES = ("class_names", "node_type_names", "edge_type_names")
KNOWN = (*PLAIN, *SPARSE, *SPLITS, *NAMES)


def npz_parts(path: Path) -> DatasetParts:
    """The parts of the graph in the file `path`.

    FileNotFoundError, FormatError for a file or member that cannot be read, and for one that is missing.
    Members that have no meaning here are left out with a warning.
    """
    if not path.is_file():
        what = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {what}; npz:PATH names an .npz file")
    arrays = ZipArrays(path)
    for name in arrays.names:
        if name not in KNOWN:
            warnings.warn(
                f"{path}: left out, {unknown_name('member', name, KNOWN)}", UserWarning, stacklevel=2
            )
    features: dict[str, RowStream] = {}
    sparse = [name for name in SPARSE if name in arrays]
    if sparse and "x" in arrays:
        raise FormatError(f"{path} holds features twice, as x and as {', '.join(sparse)}: leave one out")
    if sparse:
        features["x"] = _sparse_rows(arrays)
    elif "x" in arrays:
        features["x"] = ZipRows(arrays, "x")
    parts = {name: arrays.read(name) for name in PLAIN if name in arrays and name != "x"}
    _check_shapes(arrays, parts)
    names = {name.removesuffix("_names"): _names(arrays, name) for name in NAMES if name in arrays}
    return DatasetParts(
        name=path.stem,
        source={"kind": "npz", "path": str(path.resolve()), "fingerprint": arrays.fingerprint},
        num_nodes=_num_nodes(path, features, parts),
        edge_index=_edge_index(arrays, parts),
        labels=parts.get("y"),
        num_classes=len(names["class"]) if "class" in names else None,
        splits={name.removesuffix("_idx"): arrays.read(name) for name in SPLITS if name in arrays},
        features=features,
        arrays={name: parts[name] for name in ("node_type",) if name in parts},
        edge_arrays={name: parts[name] for name in ("edge_type",) if name in parts},
        names=names,
        directed=bool(parts["directed"].item()) if "directed" in parts else None,
    )


def _check_shapes(arrays: ZipArrays, parts: dict[str, NDArray[Any]]) -> None:
    directed = parts.get("directed")
    if directed is not None and (directed.size != 1 or directed.dtype.kind not in "biu"):
        raise FormatError(
            f"{arrays.path}: directed is {directed.dtype} {directed.shape}, wanted true or false"
        )
    for name in ("y", "node_type", "edge_type"):
        if name in parts and not parts[name].ndim:
            raise FormatError(f"{arrays.path}: {name} is a single number, wanted one per node or edge")


def _names(arrays: ZipArrays, name: str) -> list[str]:
    names = arrays.read(name)
    if names.ndim != 1 or names.dtype.kind != "U":
        raise FormatError(f"{arrays.path}: {name} is {names.dtype} {names.shape}, wanted strings (number,)")
    return [str(one) for one in names]


def _num_nodes(path: Path, features: dict[str, RowStream], parts: dict[str, NDArray[Any]]) -> int:
    for rows in features.values():
        if rows.num_rows is not None:
            return rows.num_rows
    for name in ("y", "node_type"):
        if name in parts:
            return len(parts[name])
    raise FormatError(f"{path} has neither x nor y nor node_type, so its number of nodes is unknown")


def _edge_index(arrays: ZipArrays, parts: dict[str, NDArray[Any]]) -> NDArray[Any] | None:
    edges = parts.get("edge_index")
    if edges is not None and (edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu"):
        raise FormatError(
            f"{arrays.path}: edge_index is {edges.dtype} {edges.shape}, wanted integers (2, E), sources and "
            "targets"
        )
    return edges if edges is None or edges.dtype in (np.int32, np.int64) else edges.astype(np.int64)


def _sparse_rows(arrays: ZipArrays) -> SparseRows:
    missing = [name for name in SPARSE if name not in arrays]
    if missing:
        raise FormatError(
            f"{arrays.path}: sparse features need {', '.join(SPARSE)}; {', '.join(missing)} is missing"
        )
    given = arrays.read("x_shape")
    if given.shape != (2,) or given.dtype.kind not in "iu" or (given.astype(np.int64) < 0).any():
        raise FormatError(f"{arrays.path}: x_shape is {given.tolist()}, wanted two counts, [N, D]")
    shape = given.tolist()
    indptr = arrays.read("x_indptr")
    columns, values = arrays.open("x_indices"), arrays.open("x_data")
    if columns.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise FormatError(f"{arrays.path}: x_indptr and x_indices must be integers")
    if indptr.shape != (shape[0] + 1,) or columns.shape != values.shape or len(values.shape) != 1:
        raise FormatError(
            f"{arrays.path}: x_indptr {indptr.shape}, x_indices {columns.shape} and x_data {values.shape} "
            f"do not make a matrix of {shape[0]} rows"
        )
    what = f"{arrays.path}: x"
    indptr = indptr.astype(np.int64)
    check_indptr(indptr, values.shape[0], what)
    try:
        row_type = RowType(values.dtype.name, (shape[1],))
    except TypeError as error:
        raise FormatError(f"{values.where}: {error}") from error
    return SparseRows(indptr, row_type, lambda: _ZipEntries(arrays), what)


class _ZipEntries:
    """Column numbers and values, read from their members side by side."""

    def __init__(self, arrays: ZipArrays) -> None:
        self._columns, self._values = arrays.open("x_indices"), arrays.open("x_data")

    def take(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._columns.take(count), self._values.take(count)
