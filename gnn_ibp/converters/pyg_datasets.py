"""Data sets that PyG knows by name: downloaded and read by PyG, from its raw files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.pyg_parts import pyg_parts
from gnn_ibp.errors import FormatError
from gnn_ibp.temporary_folder import temporary_folder

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class PygDataset:
    """group: the class in `torch_geometric.datasets`. member: the name it takes, None where it takes none.

    split: whether the source has one; where not, 60/20/20 of the nodes are drawn with seed 0.
    """

    group: str
    member: str | None = None
    split: bool = True


PYG_DATASETS = {
    "cora": PygDataset("Planetoid", "Cora"),
    "citeseer": PygDataset("Planetoid", "CiteSeer"),
    "pubmed": PygDataset("Planetoid", "PubMed"),
    "amazon-computers": PygDataset("Amazon", "Computers", split=False),
    "amazon-photo": PygDataset("Amazon", "Photo", split=False),
    "coauthor-cs": PygDataset("Coauthor", "CS", split=False),
    "coauthor-physics": PygDataset("Coauthor", "Physics", split=False),
    "reddit": PygDataset("Reddit"),
    "flickr": PygDataset("Flickr"),
}

ALIASES = {
    "computers": "amazon-computers",
    "photo": "amazon-photo",
    "cs": "coauthor-cs",
    "physics": "coauthor-physics",
}


def source_of(dataset: PygDataset) -> dict[str, Any]:
    """What meta.json says of where the data set came from."""
    return {"kind": "pyg", "dataset": "/".join(filter(None, (dataset.group, dataset.member)))}


def pyg_dataset_parts(name: str, dataset: PygDataset, raw_root: Path, scratch: Path) -> DatasetParts:
    """The parts of a data set of `PYG_DATASETS`.

    Its raw files are looked for where PyG keeps them when its `root` is raw_root/GROUP or `raw_root` itself,
    and downloaded into the first of these where they are in neither. They may be read-only: what PyG makes
    of them in between is kept in `scratch` and removed.

    OSError where the download fails, FormatError where the raw files cannot be read; both name the folder.
    """
    place = _find_raw(dataset, raw_root)
    found = place is not None
    place = place or _Raw(raw_root / dataset.group, dataset.member)
    try:
        data = _read(dataset, place, scratch)
    except ImportError:
        raise
    except Exception as error:  # whatever downloads and unpickles raise
        what = f"{type(error).__name__}: {error}"
        if found:
            raise FormatError(
                f"the raw files of {name} in {place.folder} cannot be read ({what}); remove that folder, "
                "they are downloaded again then"
            ) from error
        raise OSError(
            f"{name} cannot be downloaded ({what}); try again, or put its raw files into {place.folder} "
            "yourself"
        ) from error
    parts = pyg_parts(data, name, source_of(dataset))
    return parts if dataset.split else replace(parts, splits=_seeded_split(data.num_nodes))


@dataclass(frozen=True)
class _Raw:
    """root and member as PyG's class takes them."""

    root: Path
    member: str | None

    @property
    def folder(self) -> Path:
        return self.root / (self.member or "") / "raw"


def _find_raw(dataset: PygDataset, raw_root: Path) -> _Raw | None:
    for root in (raw_root / dataset.group, raw_root):
        members: list[str | None] = [None]
        if dataset.member:
            members = [dataset.member]
            if root.is_dir():  # PyG keeps the spelling that its user chose
                members += sorted(p.name for p in root.iterdir() if p.name.lower() == dataset.member.lower())
        for member in members:
            if (place := _Raw(root, member)).folder.is_dir() and any(place.folder.iterdir()):
                return place
    return None


def _read(dataset: PygDataset, place: _Raw, scratch: Path) -> "Data":
    import torch_geometric.datasets

    base = getattr(torch_geometric.datasets, dataset.group)
    with temporary_folder(scratch / dataset.group) as processed:
        reader = type(base.__name__, (base,), {"processed_dir": str(processed)})
        arguments = (str(place.root),) if place.member is None else (str(place.root), place.member)
        return reader(*arguments)[0]


def _seeded_split(num_nodes: int) -> dict[str, Any]:
    order = np.random.default_rng(0).permutation(num_nodes)
    bounds = [int(0.6 * num_nodes), int(0.8 * num_nodes)]
    return dict(zip(("train", "val", "test"), map(np.sort, np.split(order, bounds)), strict=True))
