"""A data set made of arrays, and its rows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from some_rows import all_rows

from gnn_ibp import Dataset

NUM_NODES, NUM_EDGES = 40, 150
RNG = np.random.default_rng(5)
X = RNG.standard_normal((NUM_NODES, 6)).astype(np.float32)
Y = RNG.integers(0, 4, NUM_NODES)
EDGES = RNG.integers(0, NUM_NODES, (2, NUM_EDGES))
SPLIT = {"train": np.arange(0, 20), "val": np.arange(20, 30), "test": np.arange(30, 40)}


def write(path: Path, **changes: Any) -> Dataset:
    return Dataset.from_arrays(path, **{"edge_index": EDGES, "x": X, "y": Y, "split": SPLIT, **changes})


def rows(dataset: Dataset, name: str = "x", raw: bool = False) -> torch.Tensor:
    """All rows of a feature, encoded or of its raw twin."""
    with dataset.feature_file(name, raw) as file:
        return all_rows(file)
