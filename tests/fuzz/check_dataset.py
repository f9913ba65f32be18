"""What holds for every folder with a data set, whatever its bytes: what it holds, exactly, or FormatError."""

import contextlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from check_file import Seen, require
from numpy.typing import NDArray

from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError
from gnn_ibp.graph import Graph
from gnn_ibp.samplers import NeighborSampler, reference
from gnn_ibp.train.commands import info_text, verify

FANOUTS = [3, -1]
MAX_ROWS = 10_000

Contents = dict[str, list[NDArray[Any]]]


def check_dataset(path: Path, truth: Contents, rng: Random, *, changed: bool) -> Seen:
    """Opens, verifies and reads all that the data set in the folder `path` holds, and samples its graph.

    truth: `contents` of the data set undamaged. changed: a file is not what its checksum is of, so that
    `verify` must find that. Raises BrokenPromiseError.
    """
    sound = is_sound(path)
    require(not (changed and sound), "verify finds nothing in a data set that was changed")
    try:
        dataset = Dataset.open(path)
        info_text(path)
    except FormatError:
        require(not sound, "verify finds nothing in a data set that cannot be opened")
        return Seen(refused=True)
    found = contents(dataset)
    if sound:
        missing = set(truth) & {*dataset.features, *dataset.arrays, "graph", "y", "split"} - set(found)
        require(not missing, f"verify finds nothing, and {missing} cannot be read")
    num_rows = sum(len(found[name][0]) for name in dataset.features if name in found)
    return Seen(num_rows=num_rows + check_samples(dataset, rng))


def is_sound(path: Path) -> bool:
    """Whether `gnn-ibp verify` finds nothing."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return verify(path) == 0
        except FormatError:
            return False


def contents(dataset: Dataset) -> Contents:
    """All parts that can be read; those that are refused are left out."""
    parts: dict[str, Callable[[], list[NDArray[Any]]]] = {
        "graph": lambda: [dataset.graph.indptr, dataset.graph.indices],
        "y": lambda: [] if dataset.y is None else [dataset.y.numpy()],
        "split": lambda: [ids.numpy() for _, ids in sorted(dataset.split.items())],
    }
    parts |= {name: partial(_array, dataset, name) for name in dataset.arrays}
    parts |= {name: partial(_rows, dataset, name) for name in dataset.features}
    found = {}
    for name, read in parts.items():
        with contextlib.suppress(FormatError):
            found[name] = read()
    return found


def same(a: Contents, b: Contents) -> bool:
    """Whether both hold the same bits."""
    if a.keys() != b.keys() or any(len(a[name]) != len(b[name]) for name in a):
        return False
    pairs = (pair for name in a for pair in zip(a[name], b[name], strict=True))
    return all((x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()) for x, y in pairs)


def check_samples(dataset: Dataset, rng: Random) -> int:
    """Samples of the graph that is left on the disk, which is checked where it is read; nodes drawn."""
    try:
        graph = dataset.mapped_graph()
    except FormatError:
        return 0
    seeds = [rng.randrange(graph.num_nodes) for _ in range(5 * (graph.num_nodes > 0))]
    try:
        sample = NeighborSampler(graph, FANOUTS, seed=7).sample(torch.tensor(seeds, dtype=torch.int64))
    except FormatError:
        require(_is_damaged(graph), "a good graph was refused")
        return 0
    key = reference.mix(7, 0, 0)
    expected = reference.sample(graph, seeds, FANOUTS, False, key)
    for name in ("node_ids", "indptr", "indices", "e_id"):
        require(torch.equal(getattr(sample, name), getattr(expected, name)), f"a sample has other {name}")
    return len(sample.node_ids)


def _is_damaged(graph: Graph) -> bool:
    try:
        graph.check()
    except FormatError:
        return True
    return False


def _array(dataset: Dataset, name: str) -> list[NDArray[Any]]:
    return [dataset.array(name).numpy()]


def _rows(dataset: Dataset, name: str) -> list[NDArray[Any]]:
    with dataset.feature_file(name) as file:
        num_rows = min(file.num_rows, MAX_ROWS)
        out = np.empty((num_rows, file.row_bytes), np.uint8)
        file.read(np.arange(num_rows), file.row_type.from_bytes(out))
        return [out]
