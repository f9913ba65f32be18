"""Raw folders in OGB's exact layout, made of small arrays."""

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnn_ibp.converters.ogb_table import ogb_dataset


@dataclass
class SmallGraph:
    """The arrays that the files of a raw folder are made of, as OGB's own reader gives them back."""

    num_nodes: int = 60
    num_edges: int = 240
    num_columns: int = 8
    num_classes: int = 5
    seed: int = 0
    unlabelled: bool = False
    edge_index: Any = field(init=False)
    node_feat: Any = field(init=False)
    node_year: Any = field(init=False)
    node_label: Any = field(init=False)
    split: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.edge_index = rng.integers(0, self.num_nodes, (2, self.num_edges))
        self.node_feat = rng.standard_normal((self.num_nodes, self.num_columns)).astype(np.float32)
        self.node_year = rng.integers(1950, 2021, (self.num_nodes, 1))
        self.node_label = rng.integers(0, self.num_classes, (self.num_nodes, 1))
        order = rng.permutation(self.num_nodes)
        train, valid, test, rest = np.split(order, [self.num_nodes // 2, self.num_nodes // 2 + 8, -10])
        self.split = {"train": np.sort(train), "valid": np.sort(valid), "test": np.sort(test)}
        if self.unlabelled:
            self.node_label = self.node_label.astype(np.float32)
            self.node_label[rest] = np.nan


def write_csv(path: Path, rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        for row in np.asarray(rows):
            file.write(",".join(map(repr, np.atleast_1d(row).tolist())) + "\n")


def write_raw_folder(root: Path, name: str, graph: SmallGraph, *, compress: bool = True) -> Path:
    """Writes root/ogbn_NAME in the layout of the data set `name`, and returns it."""
    dataset = ogb_dataset(name)
    folder = root / dataset.folder
    raw, split = folder / "raw", folder / "split" / dataset.split
    raw.mkdir(parents=True)
    (folder / f"RELEASE_v{dataset.version}.txt").write_text("# Release note\n")
    if dataset.binary:
        save = np.savez_compressed if compress else np.savez
        save(
            raw / "data.npz",
            num_nodes_list=np.array([graph.num_nodes]),
            edge_index=graph.edge_index,
            num_edges_list=np.array([graph.num_edges]),
            node_feat=graph.node_feat,
            node_year=graph.node_year,
        )
        save(raw / "node-label.npz", node_label=graph.node_label)
    else:
        write_csv(raw / "num-node-list.csv.gz", [graph.num_nodes])
        write_csv(raw / "num-edge-list.csv.gz", [graph.num_edges])
        write_csv(raw / "edge.csv.gz", graph.edge_index.T)
        write_csv(raw / "node-feat.csv.gz", graph.node_feat)
        write_csv(raw / "node-label.csv.gz", graph.node_label)
        for name in dataset.node_files:
            write_csv(raw / f"{name}.csv.gz", getattr(graph, name))
    for name, ids in graph.split.items():
        write_csv(split / f"{name}.csv.gz", ids)
    return folder


def write_split_dict(folder: Path, split: dict[str, Any]) -> None:
    """The other form of a split: one saved dictionary instead of three tables."""
    for path in folder.glob("*.csv.gz"):
        path.unlink()
    torch.save(split, folder / "split_dict.pt")
