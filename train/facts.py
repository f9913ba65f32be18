"""Facts about a run's data and caches, as they stand in its report."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from gnn_ibp.dataset import Dataset
from gnn_ibp.feature_store import FeatureStore


def data_facts(ds: Dataset, nodes: Mapping[str, Tensor]) -> dict[str, Any]:
    """Counts, bytes on disk, and how the features are stored; `nodes` are the labelled ones of each split."""
    x = ds.features["x"]
    return {
        "path": str(ds.path),
        "num_nodes": ds.num_nodes,
        "num_edges": ds.num_edges,
        "num_classes": ds.num_classes,
        "num_labelled": {name: len(ids) for name, ids in nodes.items()},
        "dtype": x.dtype,
        "row_shape": list(x.row_shape),
        "row_format": ds.row_format("x"),
        "raw_bytes": x.raw_bytes,
        "stored_bytes": x.stored_bytes,
        "disk_bytes": sum(file.stat().st_size for file in ds.path.iterdir() if file.is_file()),
    }


def cache_facts(store: FeatureStore) -> dict[str, Any]:
    """Of each cache of x: its bytes, everything included, its rows, and how many would fit in raw."""
    return {
        tier: {"bytes": cache.nbytes, "rows": cache.num_rows, "rows_if_raw": cache.num_rows_if_raw}
        for tier, cache in store.caches().items()
    }
