"""A graph of the shape of ogbn-papers100M, of any size: drawn block by block, never held.

Every block has a generator of its own, so that edges and rows can be read from anywhere, and again.
"""

import gzip
import math
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.converters.ogb_table import ogb_dataset
from gnn_ibp.converters.synthetic import WordVectorRows
from gnn_ibp.progress import progress

NAME = "ogbn-papers100M"
NUM_NODES, NUM_EDGES, NUM_COLUMNS, NUM_CLASSES = 111_059_956, 1_615_685_872, 128, 172
NUM_TRAIN = 1_207_179

BLOCK = 1 << 22
"""Edges, nodes or values that are drawn by one generator."""

AHEAD = 2
"""Blocks that are drawn in threads while one is written."""

SOURCE_POWER, TARGET_POWER = 3, 2
"""A node's chance to be an end falls like rank^(1 / power - 1): out-degrees have the heavier tail."""


@dataclass(frozen=True)
class PapersShape:
    """Counts of the graph. num_eval: nodes for validation, and as many for the test; the original has more.

    Splits are drawn among all nodes; those in none of them have no label, as in the original.
    """

    num_nodes: int = NUM_NODES
    num_edges: int = NUM_EDGES
    num_columns: int = NUM_COLUMNS
    num_train: int = NUM_TRAIN
    num_eval: int = 10_240
    seed: int = 0

    @cached_property
    def classes(self) -> NDArray[np.uint8]:
        """(num_nodes,): of every node, in a split or not."""
        return self._generator("classes", 0).integers(0, NUM_CLASSES, self.num_nodes, np.uint8)

    @cached_property
    def splits(self) -> dict[str, NDArray[np.int64]]:
        """Ascending ids, no node in two of them."""
        count = self.num_train + 2 * self.num_eval
        drawn = self._generator("splits", 0).choice(self.num_nodes, count, replace=False)
        train, val, test = np.split(drawn, [self.num_train, self.num_train + self.num_eval])
        return {"train": np.sort(train), "val": np.sort(val), "test": np.sort(test)}

    @property
    def rows(self) -> WordVectorRows:
        return WordVectorRows(self.classes, self.seed, self.num_columns, NUM_CLASSES)

    def labels(self) -> NDArray[np.int16]:
        """(num_nodes,), -1 for none."""
        labels = np.full(self.num_nodes, -1, np.int16)
        for ids in self.splits.values():
            labels[ids] = self.classes[ids]
        return labels

    def sources(self, block: int) -> NDArray[np.int64]:
        """Where the edges of a block begin."""
        return self._ends("sources", block, SOURCE_POWER)

    def targets(self, block: int) -> NDArray[np.int64]:
        return self._ends("targets", block, TARGET_POWER)

    def edges(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.sources(block), self.targets(block)

    @property
    def num_blocks(self) -> int:
        return -(-self.num_edges // BLOCK)

    def _ends(self, purpose: str, block: int, power: int) -> NDArray[np.int64]:
        count = min(BLOCK, self.num_edges - block * BLOCK)
        drawn = self._generator(purpose, block).random(count)
        share = drawn.copy()
        for _ in range(power - 1):
            share *= drawn
        share *= self.num_nodes
        rank = np.minimum(share.astype(np.uint64), self.num_nodes - 1)
        return ((rank * self._stride + ord(purpose[0])) % self.num_nodes).view(np.int64)

    @cached_property
    def _stride(self) -> np.uint64:
        """Times a rank, modulo the nodes: scatters the ranks over the ids, one to one."""
        stride = int(0.618 * self.num_nodes) | 1
        while math.gcd(stride, self.num_nodes) > 1:
            stride += 2
        return np.uint64(stride)

    def _generator(self, purpose: str, block: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.seed, *purpose.encode(), block]))


@dataclass(frozen=True)
class DrawnEdges:
    """The edges as a stream."""

    shape: PapersShape
    dtype = np.dtype(np.int64)

    @property
    def num_edges(self) -> int:
        return self.shape.num_edges

    def blocks(self, first: int = 0) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        begin, skip = divmod(first, BLOCK)
        numbers = range(begin, self.shape.num_blocks)
        for src, dst in _ahead(self.shape.edges, numbers):
            yield src[skip:], dst[skip:]
            skip = 0


def drawn_parts(shape: PapersShape) -> DatasetParts:
    """The parts of a data set, without any file."""
    return DatasetParts(
        name="papers-shape",
        source={"kind": "papers-shape", **asdict(shape)},
        num_nodes=shape.num_nodes,
        edge_index=DrawnEdges(shape),
        labels=shape.labels(),
        num_classes=NUM_CLASSES,
        splits=shape.splits,
        features={"x": shape.rows},
        directed=True,
    )


def raw_bytes(shape: PapersShape) -> int:
    """Disk that the raw folder takes."""
    return shape.num_edges * 16 + shape.num_nodes * (4 * shape.num_columns + 8 + 4)


def write_raw_folder(shape: PapersShape, root: Path) -> Path:
    """Writes root/ogbn_papers100M in OGB's raw layout; members are stored, not deflated."""
    dataset = ogb_dataset(NAME)
    folder = root / dataset.folder
    raw, split = folder / "raw", folder / "split" / dataset.split
    raw.mkdir(parents=True, exist_ok=True)
    split.mkdir(parents=True, exist_ok=True)
    theirs = {"train": "train", "val": "valid", "test": "test"}
    for name, ids in shape.splits.items():
        with gzip.open(split / f"{theirs[name]}.csv.gz", "wt", compresslevel=1) as file:
            file.writelines(f"{node}\n" for node in ids.tolist())
    nodes, edges = shape.num_nodes, range(shape.num_blocks)
    with _Npz(raw / "node-label.npz") as npz:
        npz.add("node_label", np.float32, (nodes, 1), _label_blocks(shape))
    with _Npz(raw / "data.npz") as npz:
        npz.add("num_nodes_list", np.int64, (1,), iter([np.array([nodes])]))
        npz.add("num_edges_list", np.int64, (1,), iter([np.array([shape.num_edges])]))
        ends = chain(_ahead(shape.sources, edges), _ahead(shape.targets, edges))
        npz.add("edge_index", np.int64, (2, shape.num_edges), ends)
        npz.add("node_feat", np.float32, (nodes, shape.num_columns), shape.rows.blocks())
        npz.add("node_year", np.int64, (nodes, 1), _year_blocks(nodes))
    return folder


def _label_blocks(shape: PapersShape) -> Iterator[NDArray[np.float32]]:
    labels = shape.labels()
    for first in range(0, shape.num_nodes, BLOCK):
        part = labels[first : first + BLOCK].astype(np.float32)
        part[part < 0] = np.nan
        yield part


def _year_blocks(num_nodes: int) -> Iterator[NDArray[np.int64]]:
    for first in range(0, num_nodes, BLOCK):
        yield 1990 + np.arange(first, min(first + BLOCK, num_nodes)) % 30


def _ahead(draw: Any, numbers: range) -> Iterator[Any]:
    """draw(number) for every number in order, some drawn ahead in threads."""
    with ThreadPoolExecutor(AHEAD) as threads:
        jobs = map(partial(threads.submit, draw), numbers)
        waiting = list(islice(jobs, AHEAD))
        while waiting:
            drawn = waiting.pop(0).result()
            waiting += islice(jobs, 1)
            yield drawn


class _Npz:
    """An .npz file, written block by block; it appears when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(f"{path.name}.partial")
        self._zip = zipfile.ZipFile(self._partial, "w")

    def add(self, name: str, dtype: Any, shape: tuple[int, ...], blocks: Iterator[Any]) -> None:
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        with (
            self._zip.open(f"{name}.npy", "w", force_zip64=True) as file,
            progress(f"writing {name}", math.prod(shape), "values") as bar,
        ):
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(np.ascontiguousarray(block).view(np.uint8).data)
                bar.update(block.size)

    def __enter__(self) -> "_Npz":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._zip.close()
        if kind is None:
            self._partial.replace(self._path)
