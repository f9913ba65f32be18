"""OGB's node data sets, from their raw folders: ogbn-arxiv, ogbn-products, ogbn-papers100M.

The folders are read by our own readers: OGB's data set objects hold everything in memory, and cannot be
opened a second time beside a torch that loads weights only.
"""

from pathlib import Path
from typing import Any

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.converters.class_labels import check_training_nodes
from gnn_ibp.converters.ogb_raw import read_raw, read_splits
from gnn_ibp.converters.ogb_table import OgbDataset, ogb_dataset, similar_datasets
from gnn_ibp.converters.raw_folder import RawFolder, fingerprint
from gnn_ibp.errors import FormatError
from gnn_ibp.progress import Say

SHAPES = {
    "ogbn-arxiv": (169_343, 1_166_243, 128),
    "ogbn-products": (2_449_029, 61_859_140, 100),
    "ogbn-papers100M": (111_059_956, 1_615_685_872, 128),
}
"""Nodes, edges in the files, columns: for the disk needed, which is told before anything is there."""


def ogb_source(dataset: OgbDataset) -> dict[str, Any]:
    """What meta.json says of where the data set came from."""
    return {"kind": "ogb", "dataset": dataset.name, "version": dataset.version}


def ogb_parts(name: str, raw_root: Path, scratch: Path, say: Say) -> DatasetParts:
    """The parts of the data set `name`.

    Its raw files lie in raw_root, which is OGB's root or the folder that holds raw/ and split/; they are
    downloaded into it where they do not, and used as they are where they do.

    FormatError names the file, and the member of it, that is missing or wrong; as `RawFolder` otherwise.
    """
    dataset = ogb_dataset(name)
    place = raw_folder(dataset)
    folder = place.get(raw_root, scratch, say)
    _check_layout(dataset, folder)
    raw = read_raw(dataset, folder / "raw")
    splits = read_splits(folder / "split" / dataset.split)
    check_training_nodes(raw.labels, splits, str(raw.labels_file))
    files = [
        str(path.relative_to(folder)) for kind in ("raw", "split") for path in (folder / kind).rglob("*")
    ]
    return DatasetParts(
        name=name,
        source=ogb_source(dataset),
        num_nodes=raw.num_nodes,
        edge_index=raw.edges,
        labels=raw.labels,
        num_classes=dataset.num_classes,
        splits=splits,
        features=raw.features,
        metric=dataset.metric,
        fingerprint=fingerprint(folder, files),
        directed=not dataset.add_inverse_edge,
    )


def raw_folder(dataset: OgbDataset) -> RawFolder:
    """Where OGB keeps the raw files, and where it has them from."""
    nodes, edges, columns = SHAPES[dataset.name]
    store_bytes = nodes * (4 * columns + 24) + edges * 16
    return RawFolder(
        dataset.name, dataset.folder, ("raw", "split"), dataset.url, dataset.archive, store_bytes
    )


def _check_layout(dataset: OgbDataset, folder: Path) -> None:
    """FormatError where the folder is that of another data set, or lacks what tells."""
    files = {"raw/data.npz": True, "raw/edge.csv.gz": False}
    there = {binary for file, binary in files.items() if (folder / file).is_file()}
    splits = {path.name for path in (folder / "split").glob("*") if path.is_dir()}
    if dataset.binary in there and dataset.split in splits:
        return
    others = [name for binary in there for name in similar_datasets(binary, splits) if name != dataset.name]
    wanted = next(file for file, binary in files.items() if binary == dataset.binary)
    looks = f"; it looks like {' or '.join(others)}" if others else ""
    raise FormatError(
        f"{folder} is not the whole folder of {dataset.name}, which has {wanted} and split/{dataset.split}/"
        f"{looks}; choose another --raw-root, or remove the folder and it is downloaded again"
    )
