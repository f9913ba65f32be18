"""The parts of a data set that PyG holds in memory as a `Data`."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.row_stream import ArrayRows, RandomAccessRows, RowStream
from gnn_ibp.conversion.sparse_rows import sparse_tensor_rows
from gnn_ibp.conversion.splits import DISJOINT

if TYPE_CHECKING:
    from torch_geometric.data import Data

_MASK = "_mask"
_USUAL_MASKS = [f"{name}{_MASK}" for name in DISJOINT]


def pyg_parts(data: "Data", name: str, source: Mapping[str, Any] | None = None) -> DatasetParts:
    """x, edge_index, y; `NAME_mask` becomes the split NAME, other tensors of nodes and edges features.

    What has neither is left out, with a warning. TypeError for other than a homogeneous `Data` in memory, for
    x, edge_index and y that are no tensors, and usual masks that are none of bools; ValueError for masks of
    several columns: one of them is to be picked.
    """
    from torch_geometric.data import Data

    if not isinstance(data, Data):
        remedy = "; data.to_homogeneous() makes a Data of it" if hasattr(data, "to_homogeneous") else ""
        raise TypeError(f"data is a {type(data).__name__}, wanted a torch_geometric.data.Data{remedy}")
    if data.edge_index is None and data.get("adj_t") is not None:
        raise TypeError("data has adj_t and no edge_index; load it without the transform ToSparseTensor")
    for key in ("x", "edge_index", "y"):
        if not isinstance(value := data.get(key), Tensor | None):
            raise TypeError(
                f"data.{key} is a {type(value).__name__}, wanted a torch tensor: data.{key} = "
                f"torch.as_tensor(data.{key})"
            )
    if data.num_nodes is None:
        raise ValueError("data does not know its number of nodes; set data.num_nodes")
    num_nodes = int(data.num_nodes)
    splits: dict[str, Any] = {}
    features: dict[str, RowStream] = {}
    edge_features: dict[str, RandomAccessRows] = {}
    left_out: list[str] = []
    for key, value in data.to_dict().items():
        if key in ("edge_index", "y", "num_nodes") or value is None:
            continue
        if not isinstance(value, Tensor):
            left_out.append(key)
        elif _is_mask(key, value) and value.shape[:1] == (num_nodes,):
            splits[key.removesuffix(_MASK)] = _split(key, value)
        elif data.is_node_attr(key):
            is_dense = value.layout == torch.strided
            features[key] = _dense_rows(key, value) if is_dense else sparse_tensor_rows(value, key)
        elif data.is_edge_attr(key):
            edge_features[key] = _dense_rows(key, value)
        else:
            left_out.append(key)
    if left_out:
        warnings.warn(
            f"left out, no tensors with a row per node or edge: {', '.join(left_out)}",
            UserWarning,
            stacklevel=3,
        )
    return DatasetParts(
        name=name,
        source=source or {"kind": "pyg Data"},
        num_nodes=num_nodes,
        edge_index=None if data.edge_index is None else data.edge_index.cpu().numpy(),
        labels=None if data.y is None else data.y.detach().cpu().numpy(),
        splits=splits,
        features=features,
        edge_features=edge_features,
        fingerprint=None if source is None else "",
    )


def _dense_rows(key: str, value: Tensor) -> ArrayRows:
    if value.layout != torch.strided:
        raise TypeError(
            f"data.{key} has layout {value.layout}, rows of edges have to be dense: data.{key} = "
            f"data.{key}.to_dense()"
        )
    return ArrayRows(value.detach().cpu())


def _is_mask(key: str, value: Tensor) -> bool:
    return key in _USUAL_MASKS or (key.endswith(_MASK) and value.dtype == torch.bool)


def _split(key: str, mask: Tensor) -> Any:
    if mask.dtype != torch.bool:
        raise TypeError(
            f"data.{key} has dtype {mask.dtype}, wanted a mask of bools: data.{key} = data.{key}.bool()"
        )
    if mask.ndim != 1:
        raise ValueError(
            f"data.{key} has shape {tuple(mask.shape)}, one split is wanted: data.{key} = data.{key}[:, 0]"
        )
    return mask.cpu().numpy()
