"""Raw folders of MAG240M's and IGB's papers in their exact layout, made of small arrays."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch


@dataclass
class SmallPapers:
    """The arrays that the files of a raw folder are made of."""

    dtype: str
    num_nodes: int = 90
    num_edges: int = 400
    num_columns: int = 16
    num_classes: int = 7
    seed: int = 0
    features: Any = field(init=False)
    labels: Any = field(init=False)
    edges: Any = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.features = rng.standard_normal((self.num_nodes, self.num_columns)).astype(self.dtype)
        self.labels = rng.integers(0, self.num_classes, self.num_nodes).astype(np.float32)
        self.edges = rng.integers(0, self.num_nodes, (2, self.num_edges))


def write_mag240m(root: Path, papers: SmallPapers, split: dict[str, Any]) -> Path:
    """Writes root/mag240m_kddcup2021; nodes outside of train and valid have no label."""
    folder = root / "mag240m_kddcup2021"
    unlabelled = np.ones(papers.num_nodes, bool)
    unlabelled[np.concatenate([split["train"], split["valid"]])] = False
    papers.labels[unlabelled] = np.nan
    _save(folder / "processed/paper/node_feat.npy", papers.features)
    _save(folder / "processed/paper/node_label.npy", papers.labels)
    _save(folder / "processed/paper___cites___paper/edge_index.npy", papers.edges)
    counts = {"paper": papers.num_nodes, "author": 12, "institution": 3, "num_classes": papers.num_classes}
    torch.save(counts, folder / "meta.pt")
    torch.save(split, folder / "split_dict.pt")
    return folder


def write_igb(root: Path, size: str, papers: SmallPapers, *, header: bool = True) -> Path:
    """Writes root/SIZE; without a header features and labels are written as bare values."""
    folder = root / size
    write = _save if header else _save_bare
    write(folder / "processed/paper/node_feat.npy", papers.features)
    for name in ("node_label_19.npy", "node_label_2K.npy"):
        write(folder / "processed/paper" / name, papers.labels)
    _save(folder / "processed/paper__cites__paper/edge_index.npy", np.ascontiguousarray(papers.edges.T))
    return folder


def _save(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def _save_bare(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array.tofile(path)
