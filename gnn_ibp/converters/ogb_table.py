"""OGB's own table of its node data sets: where they are, how they are stored and judged."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

OGB_DATASETS = ("ogbn-arxiv", "ogbn-products", "ogbn-papers100M")
NOT_YET = ("ogbn-proteins", "ogbn-mag")

METRICS = {"acc": "accuracy"}


@dataclass(frozen=True)
class OgbDataset:
    """One column of the table.

    archive: the name of the folder in the zip at `url`. split: that of the folder below split/.
    binary: .npz files, otherwise .csv.gz. node_files: more attributes of nodes, beside features and labels.
    add_inverse_edge: the files hold each edge once, and mean both directions.
    """

    name: str
    version: int
    url: str
    archive: str
    binary: bool
    split: str
    num_classes: int
    metric: str
    add_inverse_edge: bool
    node_files: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Its folder below OGB's root."""
        return self.name.replace("-", "_")


@cache
def ogb_dataset(name: str) -> OgbDataset:
    """The row of the data set `name`. The table is read by its path: `import ogb` would start a thread."""
    return _table()[name]


def similar_datasets(binary: bool, splits: set[str]) -> list[str]:
    """Names of the data sets that are stored like this and have one of the splits."""
    return [one.name for one in _table().values() if one.binary == binary and one.split in splits]


@cache
def _table() -> dict[str, OgbDataset]:
    spec = find_spec("ogb")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'ogb'", name="ogb")
    with (Path(spec.origin).parent / "nodeproppred" / "master.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    columns = {
        name: dict(zip((row[0] for row in rows), values, strict=True))
        for name, *values in zip(header, *rows, strict=True)
        if name
    }
    return {name: _dataset(name, column) for name, column in columns.items()}


def _dataset(name: str, column: dict[str, str]) -> OgbDataset:
    files = column["additional node files"]
    return OgbDataset(
        name=name,
        version=int(column["version"]),
        url=column["url"],
        archive=column["download_name"],
        binary=column["binary"] == "True",
        split=column["split"],
        num_classes=int(column["num classes"]),
        metric=METRICS.get(column["eval metric"], column["eval metric"]),
        add_inverse_edge=column["add_inverse_edge"] == "True",
        node_files=() if files == "None" else tuple(files.split(",")),
    )
