"""The PyG face of a data set: compressed features behind a cache, labels, and whatever else it holds."""

import threading
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
import torch
import torch_geometric.data
from torch import Tensor
from torch_geometric.data import Data, TensorAttr

from gnn_ibp import ops
from gnn_ibp.budget import parse_bytes
from gnn_ibp.cache import RowCache
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import unknown_name
from gnn_ibp.graph import Graph
from gnn_ibp.hotset import degree_hot_set
from gnn_ibp.report import capacity_text, sources_table
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import Ids
from gnn_ibp.tiers import CACHE_TIERS, Stats, TieredRows, total

Allocate = Callable[[RowType, int], Tensor]
"""Gives memory for so many rows of a type: a tensor (num_rows, *row_type.shape)."""

HOT_SETS: dict[str, Callable[[Graph], Ids]] = {"degree": degree_hot_set}
"""Hot sets that the graph alone tells, by name."""


class _Attr(TensorAttr):  # type: ignore[misc]
    """PyG's compares an index with `!=`, which a NumPy array answers element by element."""

    _UNSET = TensorAttr().index

    def is_set(self, key: str) -> bool:
        return getattr(self, key) is not self._UNSET


class FeatureStore(torch_geometric.data.FeatureStore):  # type: ignore[misc]
    """Serves the rows of a `Dataset` by node or edge id, as a `torch_geometric.data.FeatureStore`.

    Rows of `x` are looked up in a cache of encoded rows first and read from the feature file where they are
    not in it; every value is bit for bit what was converted. Other features are read from their files.
    Reading is safe from many threads. A pickled store carries its path and settings, no rows; inside a
    DataLoader worker it opens without a cache, so that workers do not multiply its memory.

    Args:
        dataset: a `Dataset`, or the path of one.
        device: "cpu".
        cache_bytes: memory for the cache, everything included: an int, "512MiB", "4GiB", "0" or "auto"
            (what fits into half of the free memory). It is never exceeded.
        host_bytes: memory for a tier of host rows beside a GPU's cache; on the CPU "auto" or 0.
        hot_set: the ids to cache, hottest first; or "degree" (most often a neighbour first); or None: the
            cache stays empty.
        raw: read the twin of `x` that stores every row raw, for comparison.

    Raises:
        ValueError: a setting that does not exist or makes no sense on the device.
        FormatError: a damaged data set.
    """

    def __init__(
        self,
        dataset: Dataset | str | PathLike[str],
        device: str = "cpu",
        cache_bytes: int | str = "auto",
        host_bytes: int | str = "auto",
        hot_set: str | Tensor | Ids | None = "degree",
        raw: bool = False,
    ) -> None:
        super().__init__(_Attr)
        if device != "cpu":
            raise ValueError(f'device is {device!r}, this version has "cpu" only')
        if host_bytes not in ("auto", 0, "0"):
            raise ValueError(
                f"host_bytes is {host_bytes!r}: on the CPU there is no host tier beside the cache, "
                "give the memory to cache_bytes"
            )
        if isinstance(hot_set, str) and hot_set not in HOT_SETS:
            raise ValueError(
                f"{unknown_name('hot set', hot_set, HOT_SETS)}; or give ids, such as gnn_ibp.presample(…)"
            )
        self._cache_bytes = parse_bytes(cache_bytes)
        self._hot_set = hot_set
        self._raw = raw
        self._dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
        self._lock = threading.Lock()
        self._readers: dict[str, TieredRows] = {}
        self._arrays: dict[str, Tensor] = {}
        for name in self._dataset.features:
            self.rows(name)

    # ---- for our own loader ---------------------------------------------------------------------------

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    @property
    def num_nodes(self) -> int:
        return self._dataset.num_nodes

    def has(self, name: str) -> bool:
        """Whether there is a feature, label or array of this name."""
        return name in self._sizes()

    def rows(self, name: str = "x") -> TieredRows:
        """The reader of a feature. Raises KeyError where there is none of this name."""
        with self._lock:
            if name not in self._readers:
                self._readers[name] = self._open(name)
            return self._readers[name]

    def read(self, name: str, ids: Tensor | Ids, allocate: Allocate = RowType.empty) -> Tensor:
        """The rows `ids` of a feature, (len(ids), *row_shape), in memory that `allocate` gives.

        Raises:
            KeyError: there is no such feature.
            IndexError: an id out of range.
        """
        rows = self.rows(name)
        checked = ops.check_ids(ids, rows.num_rows)
        out = allocate(rows.row_type, len(checked))
        rows.read(checked, out)
        return out

    def labels(self, ids: Tensor) -> Tensor | None:
        """int64 (len(ids),) labels of nodes, -1 = none; None where the data set has no labels."""
        y = self._dataset.y
        return None if y is None else y[ids]

    def stats(self) -> Stats:
        """Counters of all features since the store was opened, per tier: the `sources` of a report."""
        with self._lock:
            readers = list(self._readers.values())
        return total([reader.stats() for reader in readers])

    def caches(self) -> dict[str, RowCache]:
        """The caches of x by the name of their tier; none where the data set has no x."""
        return dict(zip(CACHE_TIERS, self.rows("x").caches, strict=False)) if self.has("x") else {}

    def report(self) -> str:
        """A table of `stats()`, and what the caches hold."""
        return "\n".join(
            [
                sources_table(self.stats()),
                *(
                    f"{tier}: {capacity_text(cache.nbytes, cache.num_rows, cache.num_rows_if_raw)}"
                    for tier, cache in self.caches().items()
                ),
            ]
        )

    # ---- PyG's interface ------------------------------------------------------------------------------

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """What PyG's loaders fetch for the nodes of a batch. Edge features are not among them: PyG would
        look them up by node ids. See `add_edge_features`."""
        return [TensorAttr(group_name=None, attr_name=name) for name in self._names("node")]

    def add_edge_features(self, data: Data) -> Data:
        """Adds the edge features of a sampled `data` by its `e_id`; PyG's loaders take it as `transform`."""
        for name in self._names("edge"):
            data[name] = self._get_tensor(TensorAttr(None, name, data.e_id))
        return data

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        name, index = self._known(attr), attr.index
        num_rows = self._sizes()[name][0]
        one = isinstance(index, int | np.integer) and not isinstance(index, bool)
        ids: Any
        if index is None or isinstance(index, slice):
            ids = np.arange(*(index or slice(None)).indices(num_rows))
        else:
            ids = [index] if one else index
        if name in self._dataset.features:
            rows = self.read(name, ids)
        else:
            rows = self._array(name)[torch.from_numpy(ops.check_ids(ids, num_rows))]
        return rows[0] if one else rows

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return self._sizes()[self._known(attr)]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise TypeError("the store is read-only: make a data set that holds the tensor (Dataset.from_arrays)")

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise TypeError("the store is read-only: make a data set without the tensor (Dataset.from_arrays)")

    def __len__(self) -> int:
        return len(self._names("node"))

    def __repr__(self) -> str:
        return f"FeatureStore({str(self._dataset.path)!r}, cache_bytes={self._cache_bytes})"

    # ---- inside ---------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        names = ("_tensor_attr_cls", "_cache_bytes", "_hot_set", "_raw", "_dataset")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._readers, self._arrays = {}, {}  # opened at the first use

    def _sizes(self) -> dict[str, tuple[int, ...]]:
        """The shape of everything that can be asked for, by name."""
        dataset = self._dataset
        labels = {} if dataset.y is None else {"y": (dataset.num_nodes,)}
        features = {name: (info.num_rows, *info.row_shape) for name, info in dataset.features.items()}
        return features | labels | {name: info.shape for name, info in dataset.arrays.items()}

    def _names(self, kind: str) -> list[str]:
        features, arrays = self._dataset.features, self._dataset.arrays
        edges = {name for name, info in features.items() if info.kind == "edge"}
        edges |= {name for name, info in arrays.items() if info.kind == "edge"}
        return [name for name in self._sizes() if (name in edges) == (kind == "edge")]

    def _known(self, attr: TensorAttr) -> str:
        name = str(attr.attr_name)
        if attr.group_name is not None:
            raise KeyError(f"group_name is {attr.group_name!r}; the graph is homogeneous, use None")
        if not self.has(name):
            raise KeyError(unknown_name("feature", name, self._sizes()))
        return name

    def _array(self, name: str) -> Tensor:
        with self._lock:
            if name not in self._arrays:
                y = self._dataset.y
                self._arrays[name] = y if name == "y" and y is not None else self._dataset.array(name)
            return self._arrays[name]

    def _open(self, name: str) -> TieredRows:
        file = self._dataset.feature_file(name, raw=self._raw and name == "x")
        if name != "x":  # an empty cache, so that the misses of it are the lookups of the file here, too
            return TieredRows([RowCache.empty(file.codec, file.row_bytes)], file)
        in_worker = torch.utils.data.get_worker_info() is not None
        budget_bytes = 0 if in_worker else self._cache_bytes
        hot_set = self._hot_set
        if isinstance(hot_set, str) and budget_bytes:
            hot_set = HOT_SETS[hot_set](self._dataset.graph)
        if hot_set is None or isinstance(hot_set, str):
            hot_set = np.empty(0, np.int64)
        return TieredRows([RowCache.fill(file, hot_set, budget_bytes)], file)
