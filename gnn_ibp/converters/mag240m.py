"""MAG240M's papers: their features, labels and citations.

    mag240m_kddcup2021/
        meta.pt, split_dict.pt                                   counts; node ids
        processed/paper/node_feat.npy                            float16 (N, 768)
        processed/paper/node_label.npy                           float (N,), NaN for none
        processed/paper___cites___paper/edge_index.npy           integers (2, E)

The test nodes' labels were never published: what is known of a model is its accuracy on "val".
"""

from pathlib import Path
from typing import Any

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.labels import LABELS_PER_BLOCK
from gnn_ibp.converters.class_labels import check_training_nodes, class_labels
from gnn_ibp.converters.npy_rows import NpyArray, NpyEdges, NpyRows
from gnn_ibp.converters.raw_folder import RawFolder, fingerprint
from gnn_ibp.converters.saved_dict import count, id_array, load_dict
from gnn_ibp.errors import FormatError
from gnn_ibp.npy import NpyLayout, npy_layout
from gnn_ibp.progress import Say

NAME = "mag240m"
FEATURES = "processed/paper/node_feat.npy"
LABELS = "processed/paper/node_label.npy"
EDGES = "processed/paper___cites___paper/edge_index.npy"
META, SPLITS = "meta.pt", "split_dict.pt"

PLACE = RawFolder(
    name=NAME,
    folder="mag240m_kddcup2021",
    inside=("processed",),
    url="https://dgl-data.s3-accelerate.amazonaws.com/dataset/OGB-LSC/mag240m_kddcup2021.zip",
    top="mag240m_kddcup2021",
    store_bytes=121_751_666 * (2 * 768 + 24) + 1_297_748_926 * 16,
)


def mag240m_source() -> dict[str, Any]:
    """What meta.json says of where the data set came from."""
    return {"kind": NAME, "version": 1}


def mag240m_parts(raw_root: Path, scratch: Path, say: Say) -> DatasetParts:
    """The parts of the graph of papers.

    Its raw files lie in raw_root/mag240m_kddcup2021 or in `raw_root` itself, and are downloaded where they do
    not. FormatError names the file that is missing or wrong; as `RawFolder` otherwise.
    """
    folder = PLACE.get(raw_root, scratch, say)
    meta, split = load_dict(folder / META), load_dict(folder / SPLITS)
    for path, loaded, names in ((META, meta, ("paper", "num_classes")), (SPLITS, split, ("train", "valid"))):
        missing = [name for name in names if name not in loaded]
        if missing:
            raise FormatError(f"{folder / path}: {', '.join(missing)} is missing; is it MAG240M's?")
    num_nodes, num_classes = (
        count(meta[name], f"{folder / META}: {name}") for name in ("paper", "num_classes")
    )
    features = _array(folder / FEATURES, ("float16",), 2)
    if features.shape[0] != num_nodes:
        raise FormatError(f"{features.path} has {features.shape[0]} rows, meta.pt says {num_nodes} papers")
    labels_file = _array(folder / LABELS, ("float16", "float32", "float64"), 1)
    blocks = NpyArray(labels_file).blocks(LABELS_PER_BLOCK)
    labels = class_labels(blocks, num_nodes, num_classes, str(labels_file.path))
    splits = {
        "val" if name == "valid" else name: id_array(ids, f"{folder / SPLITS}: {name}")
        for name, ids in split.items()
    }
    check_training_nodes(labels, splits, str(labels_file.path))
    return DatasetParts(
        name=NAME,
        source=mag240m_source(),
        num_nodes=num_nodes,
        edge_index=NpyEdges(_array(folder / EDGES, ("int32", "int64"), 2), pairs=False),
        labels=labels,
        num_classes=num_classes,
        splits=splits,
        features={"x": NpyRows(features)},
        fingerprint=fingerprint(folder, (FEATURES, LABELS, EDGES, META, SPLITS)),
        directed=True,
    )


def _array(path: Path, dtypes: tuple[str, ...], ndim: int) -> NpyLayout:
    try:
        return npy_layout(path, dtypes, ndim)
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing") from error
