"""Rows of real graphs and models, and how much of them version 2 saves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compare_rows import graph_features

GRAPHS = {
    "debian-w2v128": 18.5,
    "debian-hetero": 18.7,
    "cora": 99.4,
    "citeseer": 99.6,
    "amazon-photo": 97.0,
    "pubmed": 89.9,
    "tolokers": 65.0,
}
TENSORS = {
    "minilm-lasthidden-debiantext.f32": 15.8,
    "minilm-L1-keys-debiantext.bf16": 33.7,
    "minilm-wordemb-rows2000-6096.bf16": 33.0,
    "minilm-L0-ffn1.bf16": 33.0,
    "minilm-wordemb-rows2000-6096.f16": 14.4,
    "minilm-L0-ffn1.f16": 14.4,
}
"""Percent saved, by name."""

QUICK = ("debian-w2v128", "cora", "tolokers", *TENSORS)
"""Those that are tested within seconds."""

TOLERANCE = 0.2
"""Percent that may be missing."""


def rows_and_percent() -> list[Any]:
    """Name and percent of all, as the parameters of a test; most graphs are slow."""
    return [
        pytest.param(name, percent, marks=() if name in QUICK else pytest.mark.slow)
        for name, percent in (GRAPHS | TENSORS).items()
    ]


def real_rows(folder: Path, name: str) -> torch.Tensor:
    """The rows (N, ...) called `name`, out of the shared data in `folder`."""
    if name in TENSORS:
        rows = torch.from_numpy(np.load(folder / "tensors" / f"{name}.npy"))
        return rows.view(torch.bfloat16) if name.endswith(".bf16") else rows
    return torch.from_numpy(graph_features(folder, name))
