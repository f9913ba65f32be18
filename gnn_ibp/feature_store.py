"""The PyG face of a data set: compressed features behind a cache, labels, and whatever else it holds."""

import math
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import torch
import torch_geometric.data
from torch import Tensor
from torch_geometric.data import Data, TensorAttr

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.cuda import Cuda
from gnn_ibp.dataset import Dataset
from gnn_ibp.device.word import Device, device_word
from gnn_ibp.errors import unknown_name
from gnn_ibp.feature_readers import FeatureReaders, ReaderSettings
from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.report import capacity_text, tiers_text
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import AnyIds, Ids
from gnn_ibp.tiers import CACHE_TIERS, Stats, TieredRows

Allocate = Callable[[RowType, int], Tensor]
"""Gives memory for so many rows of a type: a tensor (num_rows, *row_type.shape)."""


class _Attr(TensorAttr):  # type: ignore[misc]
    """PyG's compares an index with `!=`, which a NumPy array answers element by element."""

    _UNSET = TensorAttr().index

    def is_set(self, key: str) -> bool:
        return getattr(self, key) is not self._UNSET


class FeatureStore(torch_geometric.data.FeatureStore):  # type: ignore[misc]
    """Serves the rows of a `Dataset` by node or edge id, as a `torch_geometric.data.FeatureStore`.

    Rows of `x` are looked up in caches of encoded rows first and read from the feature file where they are
    in none; every value is bit for bit what was converted. Other features are read from their files.
    Everything comes back on the store's device; ids may lie there or on the CPU. Reading is safe from many
    threads, on each one's current stream.

    A pickled store carries its path and settings, no rows. A forked child reads through the caches of its
    parent, whose memory it shares. A spawned DataLoader worker, and any child that was forked from a process
    with the store on a GPU, reads the files into CPU memory, without a cache: workers neither touch the GPU
    nor multiply memory. With `filter_per_worker=False` PyG's loaders fetch in the main process, through the
    caches, to the device.

    Args:
        dataset: a `Dataset`, or the path of one.
        device: "cpu", "cuda", "cuda:1" …; or "auto": the GPU where one can be used, the CPU otherwise.
        cache_bytes: memory for the cache on the device, everything included: an int, "512MiB", "4GiB", "0" or
            "auto" (what fits into half of the device's free memory). It is never exceeded.
        host_bytes: with a GPU, page-locked memory for the rows that come next, which it reads where they
            lie; "auto" is what fits into half of the free memory. On the CPU "auto" or 0.
        hot_set: the ids to cache, hottest first; or "degree" (most often a neighbour first); or None: the
            cache stays empty. Host memory also takes other rows, as long as there is room.
        raw: read the twin of `x` that stores every row raw, for comparison.

    Raises:
        ValueError: a setting that does not exist or makes no sense on the device.
        RuntimeError: a GPU was asked for that cannot be used.
        MemoryError: there is not as much memory on the device as the cache was given.
        FormatError: a damaged data set.
    """

    def __init__(
        self,
        dataset: Dataset | str | PathLike[str],
        device: Device = "cpu",
        cache_bytes: int | str = "auto",
        host_bytes: int | str = "auto",
        hot_set: str | Tensor | AnyIds | None = "degree",
        raw: bool = False,
    ) -> None:
        super().__init__(_Attr)
        settings = ReaderSettings(device, cache_bytes, host_bytes, hot_set, raw)
        self._dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
        self._readers = FeatureReaders(self._dataset, settings)
        self._arrays: dict[str, Tensor] = {}
        self._lock = ForkLock()
        for name in self._dataset.features:
            self.rows(name)

    # ---- for our own loader ---------------------------------------------------------------------------

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    @property
    def num_nodes(self) -> int:
        return self._dataset.num_nodes

    @property
    def cuda(self) -> Cuda | None:
        """The GPU that rows are read to; None for the CPU, also in a process that leaves the GPU alone."""
        return self._readers.cuda

    @property
    def device(self) -> torch.device:
        """Where everything comes back."""
        return torch.device("cpu") if self.cuda is None else self.cuda.device

    def has(self, name: str) -> bool:
        """Whether there is a feature, label or array of this name."""
        return name in self._sizes()

    def rows(self, name: str = "x") -> TieredRows:
        """The reader of a feature. Raises KeyError where there is none of this name."""
        return self._readers.open(name)

    def read(self, name: str, ids: Tensor | Ids, allocate: Allocate | None = None) -> Tensor:
        """The rows `ids` of a feature, (len(ids), *row_shape), on the store's device.

        ids: on the CPU or on the device. allocate: gives the memory; fresh memory where it is None.

        Raises:
            KeyError: there is no such feature.
            IndexError: an id out of range.
        """
        rows = self.rows(name)
        if rows.cuda is None or not isinstance(ids, Tensor) or ids.device != rows.cuda.device:
            ids = ops.check_ids(ids, rows.num_rows)  # on the device that is the kernel's work
        out = (allocate or self._empty)(rows.row_type, math.prod(ids.shape))
        rows.read(ids, out)
        return out

    def labels(self, ids: Tensor) -> Tensor | None:
        """int64 (len(ids),) labels of nodes on the store's device, -1 = none; None where there are none.

        ids: int64 on the CPU, known to be nodes.
        """
        y = self._dataset.y
        return None if y is None else self._to_device(y[ids])

    def forget_hot_set(self) -> None:
        """Gives back the list of hot rows, once the caches are filled. A copy of the store that is pickled
        and opened elsewhere has empty caches then."""
        self._readers.settings = replace(self._readers.settings, hot_set=None)

    def stats(self) -> Stats:
        """Counters of all features since the store was opened, per tier: the `sources` of a report."""
        return self._readers.stats()

    def caches(self) -> dict[str, RowCache]:
        """The caches of x by the name of their tier; none where the data set has no x."""
        return dict(zip(CACHE_TIERS, self.rows("x").caches, strict=False)) if self.has("x") else {}

    def report(self) -> str:
        """A table of `stats()`, and what the caches hold."""
        return "\n".join(
            [
                tiers_text(self.stats()),
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
        e_id = data.e_id  # a feature may have this name
        for name in self._names("edge"):
            data[name] = self._get_tensor(TensorAttr(None, name, e_id))
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
            if isinstance(ids, Tensor) and self.cuda is not None:
                ids = ids.cpu()
            at = ops.ids_tensor(ops.check_ids(ids, num_rows))
            rows = self._to_device(self._array(name)[at])
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
        settings = self._readers.settings
        where = f"device={device_word(settings.device)!r}, cache_bytes={settings.cache_bytes!r}"
        return f"FeatureStore({str(self._dataset.path)!r}, {where})"

    # ---- inside ---------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_tensor_attr_cls", "_dataset", "_readers")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._arrays, self._lock = {}, ForkLock()

    def _empty(self, row_type: RowType, num_rows: int) -> Tensor:
        if self.cuda is None:
            return row_type.empty(num_rows)
        return row_type.over(self.cuda.empty(num_rows * row_type.row_bytes), num_rows)

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor if self.cuda is None else self.cuda.upload(tensor)

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
