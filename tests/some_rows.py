"""Rows for tests of files and caches: some encode, some stay raw, each tells its id."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp.dataset import Dataset
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.ibp2.params import NUM_LEAVES, Code, Params
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_bytes import Array
from gnn_ibp.row_codec import RowCodec

STORED = ["condensed", "in-place", "version 2"]
"""How rows can be stored in a file: by version 1 in either layout, or by version 2."""


def numbered_rows(num_rows: int, num_columns: int = 20, seed: int = 0) -> NDArray[np.float32]:
    """float32 (num_rows, num_columns): column 0 is the id; every fifth row is noise that does not encode."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.5, 1.0, (num_rows, num_columns)).astype(np.float32)
    noise = rng.integers(0, 256, (len(rows[::5]), num_columns * 4), np.uint8)
    rows[::5] = noise.view(np.float32)
    if num_columns:
        rows[:, 0] = np.arange(num_rows)
    return rows


def unit_codec(num_columns: int = 20) -> IBPCodec:
    """Takes float32 from 0.5 to 1 as sign and exponent that need not be stored."""
    return IBPCodec(
        np.full(num_columns, 0xFF800000, np.uint32), np.full(num_columns, 0x3F000000, np.uint32), 32
    )


def unit_codec2(num_columns: int = 20) -> IBP2Codec:
    """The same in version 2, but for column 0, which holds the id: it has a code with RAW."""
    codes = Code(1, 1, bytes(11)), Code(0, 0, bytes(1))
    positions = (Position(0, 0, 126), *(num_columns - 1) * [Position(1, 0, 126)])
    return IBP2Codec(Params("D", num_columns, 32, 1, 8, 0, 0, codes, NUM_LEAVES * (0,), 0, positions))


def numbered_file(
    path: Path, num_rows: int = 500, stored: str = "condensed", **options: object
) -> tuple[FeatureFile, NDArray[np.float32]]:
    """A feature file of `numbered_rows`, and these; small blocks unless `options` say otherwise.

    stored: one of `STORED`.
    """
    rows = numbered_rows(num_rows)
    codec = unit_codec2() if stored == "version 2" else unit_codec()
    options = {"block_bytes": 4096, "layout": layout_of(stored)} | options
    write_feature_file(path, rows, codec, **options)  # type: ignore[arg-type]
    return FeatureFile(path), rows


def byte_codec(num_columns: int, value: int, stored: str) -> RowCodec:
    """The codec of one of `STORED` that leaves out bytes of this value; of version 2, and codes no others."""
    if stored != "version 2":
        return IBPCodec(np.full(num_columns, 0xFF), np.full(num_columns, value), 8)
    codes, leaves, positions = (Code(0, 0, bytes(1)),), NUM_LEAVES * (0,), (Position(0, 0, 0),)
    return IBP2Codec(Params("S", num_columns, 8, 0, 8, 0, 3, codes, leaves, value, positions))


def layout_of(stored: str) -> str:
    """The layout of one of `STORED`."""
    return "in-place" if stored == "in-place" else "condensed"


def fitted_codec(rows: Array, stored: str) -> RowCodec:
    """The codec of one of `STORED` that is fitted on `rows`."""
    return IBP2Codec.fit(rows) if stored == "version 2" else IBPCodec.fit(rows)


def same_bits(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Whether two arrays have the same shape and bytes; NaN equals itself."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def in_threads(work: Callable[[int], None], num_threads: int) -> None:
    """Runs work(0), work(1), … at once and waits for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def all_rows(file: FeatureFile) -> torch.Tensor:
    """As `file.read` gives them."""
    out = file.row_type.empty(file.num_rows)
    file.read(np.arange(file.num_rows), out)
    return out


def feature_rows(dataset: Dataset, name: str = "x") -> NDArray[Any]:
    """All rows of a feature; not for dtypes that NumPy lacks."""
    with dataset.feature_file(name) as file:
        return all_rows(file).numpy()
