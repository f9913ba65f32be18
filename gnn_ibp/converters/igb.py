"""IGB's papers, in five sizes: their features, labels and citations.

    SIZE/processed/paper/node_feat.npy                         float32 (N, 1024)
    SIZE/processed/paper/node_label_19.npy, node_label_2K.npy  numbers (N,), of 19 or 2,983 classes
    SIZE/processed/paper__cites__paper/edge_index.npy          integers (E, 2)

Features and labels of the sizes large and full are float32 without a header. The split is by range: 60 % of
the labelled nodes, which are the first ones, then 20 %, then the rest.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.labels import LABELS_PER_BLOCK, NO_LABEL
from gnn_ibp.converters.class_labels import check_training_nodes, class_labels
from gnn_ibp.converters.npy_rows import NpyArray, NpyEdges, NpyRows
from gnn_ibp.converters.raw_folder import fingerprint
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.npy import NpyLayout, npy_layout

NUM_COLUMNS = 1024
LABEL_FILES = {19: "node_label_19.npy", 2983: "node_label_2K.npy"}
DEFAULT_CLASSES = 19

FEATURES = "processed/paper/node_feat.npy"
EDGES = "processed/paper__cites__paper/edge_index.npy"

_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True)
class IgbSize:
    """num_labelled: by number of classes; the nodes behind have no label. header: of features and labels."""

    num_nodes: int
    num_labelled: dict[int, int]
    header: bool = True


def _all_labelled(num_nodes: int, header: bool = True) -> IgbSize:
    return IgbSize(num_nodes, dict.fromkeys(LABEL_FILES, num_nodes), header)


SIZES = {
    "tiny": _all_labelled(100_000),
    "small": _all_labelled(1_000_000),
    "medium": _all_labelled(10_000_000),
    "large": _all_labelled(100_000_000, header=False),
    "full": IgbSize(269_346_174, {19: 227_130_858, 2983: 157_675_969}, header=False),
}


def igb_source(size: str, num_classes: int) -> dict[str, Any]:
    """What meta.json says of where the data set came from. SettingsError for other numbers of classes."""
    if num_classes not in LABEL_FILES:
        raise SettingsError(f"--num-classes is {num_classes}, IGB has labels of 19 and of 2983 classes")
    return {"kind": "igb", "size": size, "num_classes": num_classes}


def igb_parts(size: str, num_classes: int, raw_root: Path) -> DatasetParts:
    """The parts of the graph of papers, from raw_root/SIZE or `raw_root` itself.

    FileNotFoundError where neither is there. FormatError names the file that is missing, or has a header or
    size that does not fit the data set.
    """
    folder = _find(size, raw_root)
    facts = SIZES[size]
    label_file = f"processed/paper/{LABEL_FILES[num_classes]}"
    features = _array(folder / FEATURES, ("float32",), (facts.num_nodes, NUM_COLUMNS), facts.header)
    dtypes = ("float32", "float64", "int16", "int32", "int64")
    labels = _labels(_array(folder / label_file, dtypes, (facts.num_nodes,), facts.header), size, num_classes)
    splits = _splits(facts.num_labelled[num_classes])
    check_training_nodes(labels, splits, str(folder / label_file))
    return DatasetParts(
        name=f"igb-{size}",
        source=igb_source(size, num_classes),
        num_nodes=facts.num_nodes,
        edge_index=NpyEdges(_edges(folder / EDGES), pairs=True),
        labels=labels,
        num_classes=num_classes,
        splits=splits,
        features={"x": NpyRows(features)},
        fingerprint=fingerprint(folder, (FEATURES, label_file, EDGES)),
        directed=True,
    )


def _find(size: str, raw_root: Path) -> Path:
    for folder in (raw_root / size, raw_root):
        if (folder / "processed").is_dir():
            return folder
    raise FileNotFoundError(
        f"the raw files of igb-{size} are not there: {raw_root / size / 'processed'} is wanted; get them "
        "with IGB's own scripts (github.com/IllinoisGraphBenchmark/IGB-Datasets), and name the folder that "
        f"holds {size}/ by --raw-root"
    )


def _labels(layout: NpyLayout, size: str, num_classes: int) -> NDArray[Any]:
    labelled = SIZES[size].num_labelled[num_classes]
    blocks = NpyArray(layout).blocks(LABELS_PER_BLOCK, until=labelled)
    known = class_labels(blocks, labelled, num_classes, str(layout.path))
    return np.concatenate([known, np.full(SIZES[size].num_nodes - labelled, NO_LABEL, known.dtype)])


def _splits(num_labelled: int) -> dict[str, range]:
    train, val = int(0.6 * num_labelled), int(0.2 * num_labelled)
    bounds = {"train": (0, train), "val": (train, train + val), "test": (train + val, num_labelled)}
    return {name: range(*ends) for name, ends in bounds.items()}


def _edges(path: Path) -> NpyLayout:
    _check_is_there(path)
    return npy_layout(path, ("int32", "int64"), 2)


def _array(path: Path, dtypes: tuple[str, ...], shape: tuple[int, ...], header: bool) -> NpyLayout:
    """The array in `path`: its header has to fit, or where there is none and need not be, its size."""
    _check_is_there(path)
    with path.open("rb") as file:
        has_header = file.read(len(_MAGIC)) == _MAGIC
    if header or has_header:
        layout = npy_layout(path, dtypes, len(shape))
        if layout.shape != shape:
            raise FormatError(f"{path} holds an array of shape {layout.shape}, this size has {shape}")
        return layout
    layout = NpyLayout(path, np.dtype(dtypes[0]), shape, 0)
    if path.stat().st_size != layout.num_bytes:
        raise FormatError(
            f"{path} has {path.stat().st_size} bytes and no header, {shape} of {dtypes[0]} are "
            f"{layout.num_bytes} bytes: it is cut short, or of another size"
        )
    return layout


def _check_is_there(path: Path) -> None:
    if not path.is_file():
        raise FormatError(f"{path} is missing")
