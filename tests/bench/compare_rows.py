"""Rows that tests/bench/compare.py compares codecs on: random ones, and real ones where they lie here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp.row_bytes import Array, as_row_bytes
from gnn_ibp.rows import Bytes

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class Rows:
    """array: (N, D), NumPy, or torch for bfloat16. dtype: of its elements, as NumPy calls it."""

    array: Array
    dtype: str

    @property
    def bytes(self) -> Bytes:
        """(N, row_bytes) uint8."""
        return as_row_bytes(self.array)

    def first(self, num_bytes: int) -> "Rows":
        """As many of the first rows as take at most so many bytes, one at least."""
        return Rows(self.array[: max(1, num_bytes // self.bytes.shape[1])], self.dtype)


def normal() -> Rows:
    shape = MAX_BYTES // 512, 128
    return Rows(np.random.default_rng(0).standard_normal(shape, np.float32), "float32")


def graph(name: str) -> Callable[[], Rows]:
    return lambda: Rows(graph_features(SHARED, name), "float32")


def graph_features(folder: Path, name: str) -> NDArray[np.float32]:
    """(N, D) the features of a real graph; of some only those that are not 0 lie there."""
    with np.load(folder / f"{name}.npz") as graph:
        if "x" in graph:
            return graph["x"]
        rows = np.zeros(graph["x_shape"], np.float32)
        row_of = np.repeat(np.arange(len(rows)), np.diff(graph["x_indptr"]))
        rows[row_of, graph["x_indices"]] = graph["x_data"]
        return rows


def tensor(name: str) -> Callable[[], Rows]:
    """A tensor of bfloat16, kept as integers of 16 bits."""

    def load() -> Rows:
        words = np.load(SHARED / "tensors" / f"{name}.npy")
        return Rows(torch.from_numpy(words.reshape(len(words), -1)).view(torch.bfloat16), "bfloat16")

    return load


ROWS: dict[str, Callable[[], Rows]] = {
    "N(0,1) float32 x 128": normal,
    "debian-w2v128": graph("debian-w2v128"),
    "cora": graph("cora"),
    "minilm-wordemb-rows2000-6096.bf16": tensor("minilm-wordemb-rows2000-6096.bf16"),
    "minilm-L0-ffn1.bf16": tensor("minilm-L0-ffn1.bf16"),
    "minilm-L1-keys-debiantext.bf16": tensor("minilm-L1-keys-debiantext.bf16"),
}
"""Raise FileNotFoundError where they are not here."""
