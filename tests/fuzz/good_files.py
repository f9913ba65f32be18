"""Small files of every kind, undamaged: what the fuzzer begins with."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from file_parts import FileParts

from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import MAGIC, ROWS_AT, Header
from gnn_ibp.ibp2.fit import fit_sparse
from gnn_ibp.ibp2.split import Split
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_bytes import Array, as_row_bytes
from gnn_ibp.row_codec import RowCodec

Region = tuple[int, int]

IN_VERSION_2 = {
    *("float32", "sparse", "int16", "float64", "bfloat16"),
    *("bytes", "wide", "noise", "no-rows", "no-columns"),
}
"""Files that there are in both versions of the row format."""


@dataclass(frozen=True)
class GoodFile:
    """name tells its kind; data: its bytes; regions: where its parts begin and end."""

    name: str
    data: bytes
    regions: list[Region]

    @classmethod
    def of(cls, name: str, data: bytes) -> "GoodFile":
        """Of a file of any kind: arrays have a header, feature files many parts."""
        ends = [len(data)]
        if name.endswith(".npy"):
            ends = [128, *ends]
        if data.startswith(MAGIC):
            parts = FileParts.of(data)
            tail = [ROWS_AT + len(parts.rows)]  # behind what the preamble says, its rest, its checksum
            for section in Header.SECTIONS:
                tail.append(tail[-1] + len(parts.sections[section]))
            ends = [40, ROWS_AT - 8, ROWS_AT, *tail, len(data)]
        return cls(name, data, [pair for pair in pairwise([0, *ends]) if pair[0] < pair[1]])


def good_files(folder: Path) -> list[GoodFile]:
    """Written in `folder`, which is left empty."""
    rng = np.random.default_rng(0)
    half = rng.uniform(0.5, 1, (75, 20)).astype(np.float32)
    half[::5] = rng.integers(0, 256, (15, 80), np.uint8).view(np.float32)
    few = (rng.random((40, 130)) < 0.05).astype(np.float32)
    years = rng.integers(1990, 2030, 100).astype(np.int16)
    wide = rng.integers(0, 256, (3, 66_001), np.uint8) & np.uint8(3)
    doubles = rng.normal(size=(33, 8, 2))
    cases: dict[str, tuple[np.ndarray | torch.Tensor, dict[str, object]]] = {
        "float32": (half, {"block_bytes": 1024}),
        "float32-in-place": (half, {"block_bytes": 512, "layout": "in-place"}),
        "float32-align-32": (half[:64], {"align": 32, "block_bytes": 4096}),
        "sparse": (few, {"block_bytes": 700}),
        "sparse-in-place": (few, {"layout": "in-place", "block_bytes": 1 << 20}),
        "numbers": (years, {"block_bytes": 64}),
        "int16": (years.reshape(10, 10), {"block_bytes": 64}),
        "float64": (doubles, {"block_bytes": 256}),
        "bfloat16": (torch.from_numpy(half[:40, :9].copy()).bfloat16(), {"align": 12}),
        "bytes": (wide[:, :33], {"block_bytes": 100}),
        "wide": (wide, {"block_bytes": 20_000}),
        "wide-in-place": (wide, {"layout": "in-place"}),
        "noise": (rng.integers(0, 256, (20, 24), np.uint8), {}),
        "no-rows": (half[:0], {}),
        "no-columns": (half[:50, :0], {}),
        "no-columns-in-place": (half[:50, :0], {"layout": "in-place"}),
        "one-row": (half[1:2], {}),
    }
    made = []
    for name, (rows, options) in cases.items():
        codecs: dict[str, RowCodec] = {name: IBPCodec.fit(rows)}
        if name in IN_VERSION_2:
            codecs[f"{name}-2"] = IBP2Codec.fit(rows) if name != "wide" else _sparse_codec(rows)
        for full_name, codec in codecs.items():
            path = folder / f"{full_name}.ibp"
            write_feature_file(path, rows, codec, **options)  # type: ignore[arg-type]
            made.append(GoodFile.of(full_name, path.read_bytes()))
            path.unlink()
    return made


def _sparse_codec(rows: Array) -> RowCodec:
    """Of kind S, whose parameters are as short for rows of any length."""
    return IBP2Codec(next(fit_sparse(as_row_bytes(rows), Split(8, 0, 8))))
