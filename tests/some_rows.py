"""Rows for tests of files and caches: some encode, some stay raw, each tells its id."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.ibp_codec import IBPCodec


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


def numbered_file(
    path: Path, num_rows: int = 500, **options: object
) -> tuple[FeatureFile, NDArray[np.float32]]:
    """A feature file of `numbered_rows`, and these; small blocks unless `options` say otherwise."""
    rows = numbered_rows(num_rows)
    write_feature_file(path, rows, unit_codec(), **{"block_bytes": 4096} | options)  # type: ignore[arg-type]
    return FeatureFile(path), rows


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
