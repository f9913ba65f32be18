"""The built-in data set: a power-law graph with homophilous labels and features like averaged word vectors.

Everything is drawn from counter-based generators keyed by (seed, purpose, block), block by block, so a graph
of any size is made in bounded memory beyond its edges, and the same on every machine with the same NumPy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.row_stream import Rows, skip_rows
from gnn_ibp.row_type import RowType

VERSION = 1
"""Raised whenever other bytes come out, so that an older data set is not taken for this one."""

NUM_NODES = 100_000
NUM_CLASSES = 40
NUM_COLUMNS = 128
MEAN_DEGREE = 12
HOMOPHILY = 0.42
"""Share of the edges that are drawn within a class; the others join any two classes, by size."""
SIGNAL = 0.21
"""Distance of a class's mean from the common one, in standard deviations of a column."""

EDGES_PER_BLOCK = 1 << 22
ROWS_PER_BLOCK = 16_384
SAMPLE_BLOCKS = 4
LARGE_NODES = 200_000

Ids = NDArray[np.int64]


def _generator(seed: int, purpose: int, block: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, purpose << 48 | block], np.uint64)))


def synthetic(num_nodes: int = NUM_NODES, seed: int = 0) -> DatasetParts:
    """The parts of a graph of `num_nodes` nodes: 40 classes, 128 float32 columns, about 12 edges a node."""
    if num_nodes < 1:
        raise ValueError(f"synthetic:{num_nodes} asks for {num_nodes} nodes, it must be at least 1")
    labels = draw_labels(num_nodes, seed)
    return DatasetParts(
        name="synthetic",
        source=synthetic_source(num_nodes, seed),
        num_nodes=num_nodes,
        edge_index=draw_edges(labels, seed),
        labels=labels,
        num_classes=NUM_CLASSES,
        splits=draw_splits(num_nodes, seed),
        features={"x": WordVectorRows(labels, seed)},
    )


def synthetic_source(num_nodes: int, seed: int = 0) -> dict[str, Any]:
    """What meta.json says of where the data set came from."""
    return {"kind": "synthetic", "version": VERSION, "num_nodes": num_nodes, "seed": seed}


def draw_labels(num_nodes: int, seed: int) -> Ids:
    """int64 (num_nodes,): the sizes of the classes fall like a power of their rank, 9 to 1."""
    weights = 1 / np.sqrt(np.arange(NUM_CLASSES) + 0.5)
    bounds = np.cumsum(weights) / weights.sum()
    return np.searchsorted(bounds[:-1], _generator(seed, 1).random(num_nodes), "right")


def draw_edges(labels: Ids, seed: int) -> NDArray[Any]:
    """(2, about 12 * num_nodes), int32 where it fits: no loops, no duplicates, ordered by target.

    A node's chance falls with its rank, r^(-2/3) for sources, r^(-1/2) for targets, the two ranks apart: the
    out-degrees, which are how often a node is sampled, have a power-law tail of exponent 2.5, the in-degrees
    one of exponent 3, as in graphs of citations.
    """
    num_nodes = len(labels)
    dtype = np.int32 if num_nodes <= 1 << 31 else np.int64
    shuffled = _generator(seed, 2).permutation(num_nodes)
    sources = _generator(seed, 3).permutation(num_nodes)
    members = shuffled[np.argsort(labels[shuffled], kind="stable")]  # by class, in each class by rank
    sizes = np.bincount(labels, minlength=NUM_CLASSES)
    starts = np.cumsum(sizes) - sizes

    num_edges = MEAN_DEGREE * num_nodes
    keys = np.empty(num_edges, np.int64)
    for block, first in enumerate(range(0, num_edges, EDGES_PER_BLOCK)):
        rng = _generator(seed, 4, block)
        count = min(EDGES_PER_BLOCK, num_edges - first)
        source = sources[_power_rank(rng, np.full(count, num_nodes), 3)]
        drawn = _power_rank(rng, sizes[labels[source]], 2)
        inside = members[starts[labels[source]] + drawn]
        outside = shuffled[_power_rank(rng, np.full(count, num_nodes), 2)]
        target = np.where(rng.random(count) < HOMOPHILY, inside, outside)
        keys[first : first + count] = np.where(source == target, -1, target * num_nodes + source)
    keys.sort()
    new = np.empty(num_edges, np.bool_)
    new[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    new &= keys >= 0
    keys = keys[new]
    edges = np.empty((2, len(keys)), dtype)
    np.divmod(keys, num_nodes, out=(edges[1], edges[0]), casting="unsafe")
    return edges


def _power_rank(rng: np.random.Generator, counts: Ids, power: int) -> Ids:
    """A rank below each count, the low ones more often: density proportional to rank^(1 / power - 1)."""
    uniform = rng.random(len(counts))
    drawn = uniform.copy()
    for _ in range(power - 1):
        drawn *= uniform
    return np.minimum((drawn * counts).astype(np.int64), counts - 1)


def draw_splits(num_nodes: int, seed: int) -> dict[str, Ids]:
    """60/20/20, seeded; above 200,000 nodes about 10/2/2, so that an epoch stays one for a coffee break."""
    train, val = int(0.6 * num_nodes), int(0.2 * num_nodes)
    if num_nodes > LARGE_NODES:
        train, val = (
            max(int(0.6 * LARGE_NODES), num_nodes // 10),
            max(int(0.2 * LARGE_NODES), num_nodes // 50),
        )
    order = np.random.default_rng(seed).permutation(num_nodes)
    test_end = num_nodes if num_nodes <= LARGE_NODES else train + 2 * val
    parts = {"train": order[:train], "val": order[train : train + val], "test": order[train + val : test_end]}
    return {name: np.sort(ids) for name, ids in parts.items()}


@dataclass(frozen=True)
class WordVectorRows:
    """Features float32 (num_nodes, num_columns): columns have an offset and a spread, classes a mean."""

    labels: NDArray[Any]
    seed: int
    num_columns: int = NUM_COLUMNS
    num_classes: int = NUM_CLASSES

    @property
    def row_type(self) -> RowType:
        return RowType("float32", (self.num_columns,))

    @property
    def num_rows(self) -> int:
        return len(self.labels)

    def blocks(self, first_row: int = 0) -> Iterator[Rows]:
        first_block, rest = divmod(first_row, ROWS_PER_BLOCK)
        return skip_rows(self._blocks_from(first_block), rest)

    def _blocks_from(self, first_block: int) -> Iterator[Rows]:
        means, spread = self._columns()
        for block in range(first_block, -(-self.num_rows // ROWS_PER_BLOCK)):
            yield self._block(block, means, spread)

    def sample(self, seed: int) -> Rows:
        """Rows of a few blocks drawn at random: all rows of a block are alike."""
        means, spread = self._columns()
        num_blocks = -(-self.num_rows // ROWS_PER_BLOCK)
        wanted = min(num_blocks, SAMPLE_BLOCKS)
        drawn = np.sort(np.random.default_rng(seed).choice(num_blocks, wanted, replace=False))
        return np.concatenate([self._block(block, means, spread) for block in drawn.tolist()])

    def _columns(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rng = _generator(self.seed, 5)
        spread = 0.12 + 0.12 * rng.random(self.num_columns)
        offset = 0.5 * spread * rng.standard_normal(self.num_columns)
        means = offset + SIGNAL * spread * rng.standard_normal((self.num_classes, self.num_columns))
        return means.astype(np.float32), spread.astype(np.float32)

    def _block(
        self, block: int, means: NDArray[np.float32], spread: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        labels = self.labels[block * ROWS_PER_BLOCK : (block + 1) * ROWS_PER_BLOCK]
        rows = _generator(self.seed, 6, block).standard_normal((len(labels), self.num_columns), np.float32)
        rows *= spread
        rows += means[labels]
        return rows
