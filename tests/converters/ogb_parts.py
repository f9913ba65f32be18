"""What is read from folders of OGB, and members of its archives that are replaced."""

from pathlib import Path

import numpy as np

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.converters.ogb import ogb_parts

PAPERS = "ogbn-papers100M"


def parts_of(name: str, root: Path) -> DatasetParts:
    return ogb_parts(name, root, root, print)


def edges_of(parts: DatasetParts, first: int = 0) -> np.ndarray:
    blocks = list(parts.edge_index.blocks(first))
    return np.concatenate([np.stack(block) for block in blocks], axis=1) if blocks else np.empty((2, 0), int)
