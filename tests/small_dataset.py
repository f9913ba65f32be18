"""A small data set whose features tell which row they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_meta import NAME, SUM, signed

NUM_NODES, NUM_EDGES, NUM_CLASSES = 500, 4000, 5


def make(path: Path) -> Dataset:
    """`x[i, 0] == i`, `edge_attr[e, 0]` is the place of edge e in the order it was given in."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_NODES, 16, generator=generator)
    x[:, 0] = torch.arange(NUM_NODES)
    edge_index = torch.randint(
        NUM_NODES - 1, (2, NUM_EDGES), generator=generator
    )  # the last node is isolated
    return Dataset.from_arrays(
        path,
        edge_index=edge_index,
        x=x,
        y=torch.randint(NUM_CLASSES, (NUM_NODES,), generator=generator),
        split={"train": torch.arange(0, 300), "val": torch.arange(300, 400), "test": torch.arange(400, 500)},
        features={"year": torch.arange(NUM_NODES, dtype=torch.int16), "image": torch.zeros(NUM_NODES, 2, 3)},
        edge_features={"edge_attr": torch.arange(NUM_EDGES, dtype=torch.float64).view(-1, 1)},
        arrays={"group": torch.arange(NUM_NODES) % 3},
    )


def edit_meta(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Changes what meta.json says, with a right checksum."""
    fields = json.loads((folder / NAME).read_text())
    del fields[SUM]
    edit(fields)
    (folder / NAME).write_bytes(signed(json.dumps(fields, indent=1).encode()))
