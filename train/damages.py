"""What is wrong with the files of a data set, or with one feature file: found by reading them whole."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gnn_ibp.content_sum import ContentSum, piece_rows
from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_meta import Meta, file_info
from gnn_ibp.errors import ForeignFileError, FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.progress import progress

PIECES = 64
"""Of a content's checksum, that are read at a time."""


def damages(path: Path) -> Iterator[str]:
    """A line for each damage of a data set's folder or a feature file, naming file, block and rows.

    Raises ForeignFileError for a file that is no feature file, or one of a newer version.
    """
    return _folder_damages(path) if path.is_dir() else _feature_damages(path)


def _folder_damages(path: Path) -> Iterator[str]:
    meta = Meta.read(path)
    features = meta.feature_files
    whole = True
    for name, expected in meta.files.items():
        file = path / name
        try:
            found = file_info(file)
        except OSError as error:
            whole = False
            yield f"{file}: {'missing' if isinstance(error, FileNotFoundError) else error}"
            continue
        lines = []
        if found.num_bytes != expected.num_bytes:
            lines = [f"{file}: has {found.num_bytes} bytes, {expected.num_bytes} were written"]
        elif found != expected:
            lines = [f"{file}: has another checksum"]
        if name in features:
            lines += _member_damages(file)
        whole &= not lines
        yield from lines
    for name, twin in meta.raw_twins(path).items():
        info = meta.features[name]
        lines = list(_member_damages(twin))
        if not lines and info.content not in (None, _content(twin)):
            lines = [f"{twin}: holds other rows than {info.file}; delete it, it is made again"]
        whole &= not lines
        yield from lines
    if whole:
        yield from _contradictions(path)


def _contradictions(path: Path) -> Iterator[str]:
    """Where files that are as they were written do not fit together."""
    dataset = Dataset.open(path)
    parts: list[Callable[[], object]] = [lambda: dataset.graph, lambda: dataset.y, lambda: dataset.split]
    parts += [partial(dataset.array, name) for name in dataset.arrays]
    parts += [partial(dataset.feature_file, name) for name in dataset.features]
    parts += [partial(dataset.feature_file, name, raw=True) for name in dataset.meta.raw_twins(path)]
    for read in parts:
        try:
            read()
        except FormatError as error:
            yield str(error)


def _content(path: Path) -> str:
    """The checksum of the rows of a feature file."""
    with (
        FeatureFile.open(path) as file,
        progress(f"comparing {path.name}", file.num_rows, "rows") as bar,
    ):
        content = ContentSum(file.row_bytes)
        step = PIECES * piece_rows(file.row_bytes)
        for first in range(0, file.num_rows if file.row_bytes else 0, step):
            ids = np.arange(first, min(first + step, file.num_rows))
            rows = np.empty((len(ids), file.row_bytes), np.uint8)
            file.read(ids, file.row_type.from_bytes(rows))
            content.add(rows)
            bar.update(len(rows))
        return content.state


def _member_damages(path: Path) -> Iterator[str]:
    """Of a feature file in a data set, where a foreign one has taken another's place."""
    try:
        yield from _feature_damages(path)
    except ForeignFileError as error:
        yield str(error)


def _feature_damages(path: Path) -> Iterator[str]:
    try:
        with FeatureFile.open(path) as file:
            yield from map(str, file.verify(progress=f"verifying {path.name}"))
    except ForeignFileError:
        raise
    except FormatError as error:
        yield str(error)
