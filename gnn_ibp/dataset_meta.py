"""meta.json: what a data set's folder says about itself."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xxhash
from numpy.typing import NDArray

from gnn_ibp.column_stats import Statistics
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import FormatError
from gnn_ibp.progress import progress
from gnn_ibp.row_type import RowType

NAME = "meta.json"
KIND = "gnn_ibp dataset"
VERSION = 1

SUM = "xxh3"
"""The last field: the checksum (XXH3, 64 bits, hexadecimal) of the file without it."""

NODE, EDGE = "node", "edge"
_READ_BYTES = 8 << 20


@dataclass(frozen=True)
class FeatureInfo:
    """One attribute in a feature file. kind: "node" or "edge".

    density: share of values that are not 0, mean and scale: of each column, all of float features only.
    fingerprint: that of the file, which tells it from one of another data set; content: that of its rows, the
        same in every row format. None where they were not kept.
    """

    kind: str
    dtype: str
    row_shape: tuple[int, ...]
    num_rows: int
    file: str
    raw_bytes: int
    stored_bytes: int
    num_raw_rows: int
    density: float | None = None
    statistics: Statistics | None = None
    fingerprint: str | None = None
    content: str | None = None

    @property
    def row_type(self) -> RowType:
        return RowType(self.dtype, self.row_shape)

    @property
    def saved(self) -> float:
        """1 - stored bytes / raw bytes; 0 for no bytes."""
        return 1 - self.stored_bytes / self.raw_bytes if self.raw_bytes else 0.0

    @property
    def is_dense_float(self) -> bool:
        """Whether standardising its columns makes sense: floats, at least half of them not 0."""
        return self.density is not None and self.density >= 0.5

    @property
    def column_sums(self) -> tuple[object, ...]:
        """What is told of the columns, in short."""
        if self.statistics is None:
            return (self.density,)
        both = self.statistics.mean.tobytes() + self.statistics.scale.tobytes()
        return self.density, xxhash.xxh3_64_hexdigest(both)

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self) | {"statistics": None}
        file = fields.pop("file")
        fields["parts"] = [{"file": file, "rows": [0, self.num_rows]}]
        if self.statistics:
            pair = {"mean": self.statistics.mean, "scale": self.statistics.scale}
            fields["statistics"] = {name: _short(values) for name, values in pair.items()}
        return fields

    @classmethod
    def from_json(cls, name: str, fields: dict[str, Any]) -> "FeatureInfo":
        fields = dict(fields)
        parts = fields.pop("parts")
        if len(parts) != 1 or parts[0]["rows"] != [0, fields["num_rows"]]:
            raise ValueError(
                f"feature {name!r} is stored in {len(parts)} parts; this program reads features of exactly "
                "one part that holds all rows"
            )
        shape = fields["row_shape"] = tuple(fields["row_shape"])
        RowType(fields["dtype"], shape)  # TypeError where rows cannot be like that
        if fields["statistics"] is not None:
            pair = (
                np.array(fields["statistics"][key], np.float32).reshape(shape) for key in ("mean", "scale")
            )
            fields["statistics"] = Statistics(*pair)
        for key in ("raw_bytes", "stored_bytes", "num_raw_rows"):
            if type(fields[key]) is not int:
                raise ValueError(f"{key} of feature {name!r} is {fields[key]!r}, a count is wanted")
        if not isinstance(fields["density"], float | int | None):
            raise ValueError(f"density of feature {name!r} is {fields['density']!r}, a number is wanted")
        return cls(file=parts[0]["file"], **fields)


@dataclass(frozen=True)
class ArrayInfo:
    """One attribute in a plain array. kind: "node" or "edge"."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    file: str


@dataclass(frozen=True)
class FileInfo:
    """num_bytes, and the checksum (XXH3, 64 bits, hexadecimal) of a file."""

    num_bytes: int
    xxh3: str


@dataclass(frozen=True)
class Meta:
    """source: where it came from; settings: how it was converted; splits: number of nodes by name.

    undirected, dedup: settings of the conversion. directed: whether the source's edges are one-way, where it
        says.
    """

    name: str
    program: str
    source: Mapping[str, Any]
    settings: Mapping[str, Any]
    num_nodes: int
    num_edges: int
    num_classes: int
    undirected: bool
    dedup: bool
    directed: bool | None
    metric: str
    has_labels: bool
    splits: Mapping[str, int]
    features: Mapping[str, FeatureInfo]
    arrays: Mapping[str, ArrayInfo]
    names: Mapping[str, list[str]]
    files: Mapping[str, FileInfo] = field(default_factory=dict)

    def to_json(self) -> bytes:
        fields = asdict(self) | {"features": {name: info.to_json() for name, info in self.features.items()}}
        whole = {"format": KIND, "version": VERSION, **fields}
        return signed(json.dumps(whole, indent=1, allow_nan=False).encode())

    @property
    def fingerprint(self) -> str:
        """Tells this data set from any other: a checksum over those of its files."""
        sums = sorted((name, file.xxh3) for name, file in self.files.items())
        return xxhash.xxh3_64_hexdigest(repr(sums).encode())

    @property
    def asked_format(self) -> int | Literal["auto"]:
        """The row format that the conversion was asked for: a version, or "auto", also where nobody said."""
        asked: int | Literal["auto"] = self.settings.get("format") or "auto"
        return asked

    @property
    def feature_files(self) -> set[str]:
        """Names of the files with rows of features."""
        return {info.file for info in self.features.values()}

    def raw_twins(self, folder: Path) -> dict[str, Path]:
        """By feature, the files with raw rows that were made beside the encoded ones in the folder."""
        return {name: twin for name in self.features if (twin := folder / raw_twin_name(name)).exists()}

    @property
    def content(self) -> str | None:
        """Tells what this data set holds, however rows are stored; None where that was not kept."""
        infos = self.features.values()
        if any(info.content is None for info in infos):
            return None
        plain = self.files.keys() - self.feature_files
        sums = sorted((name, self.files[name].xxh3) for name in plain)
        features = sorted(
            (name, info.kind, info.dtype, info.row_shape, info.num_rows, info.content, *info.column_sums)
            for name, info in self.features.items()
        )
        counts = self.num_nodes, self.num_edges, self.num_classes, self.metric
        return xxhash.xxh3_64_hexdigest(repr((counts, sums, features)).encode())

    def _check(self) -> None:
        """ValueError where a field is of another type, or contradicts the others."""
        counts = {name: getattr(self, name) for name in ("num_nodes", "num_edges", "num_classes")}
        for name, count in (
            counts | {f"splits.{name}": count for name, count in self.splits.items()}
        ).items():
            if type(count) is not int or count < 0:
                raise ValueError(f"{name} is {count!r}, a count is wanted")
        for name in ("undirected", "dedup", "has_labels"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}, true or false is wanted")
        for name in ("source", "settings", "names"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"{name} is {getattr(self, name)!r}, an object is wanted")
        rows_of = {NODE: self.num_nodes, EDGE: self.num_edges}
        for name, kind, num_rows in (
            *((name, info.kind, info.num_rows) for name, info in self.features.items()),
            *((name, info.kind, info.shape[0]) for name, info in self.arrays.items()),
        ):
            if rows_of.get(kind) != num_rows:
                raise ValueError(f"{name!r} has {num_rows} rows, the graph has {rows_of.get(kind)} {kind}s")
        for array in self.arrays.values():
            np.dtype(array.dtype)  # TypeError where there is none
        for name, file in self.files.items():
            if Path(name).name != name:
                raise ValueError(f"it names the file {name!r}, which is not in its folder")
            if type(file.num_bytes) is not int or not isinstance(file.xxh3, str):
                raise ValueError(f"size and checksum of {name!r} are {file.num_bytes!r} and {file.xxh3!r}")
        for name in self._needed_files():
            if name not in self.files:
                raise ValueError(f"it names the file {name!r}, and has no size and checksum of it")

    def _needed_files(self) -> list[str]:
        files = ["indptr.npy", "indices.npy", *["y.npy"] * self.has_labels]
        files += [f"split_{name}.npy" for name in self.splits]
        files += [info.file for info in self.features.values()]
        return files + [info.file for info in self.arrays.values()]

    @classmethod
    def read(cls, folder: Path) -> "Meta":
        """That of the data set in `folder`. FileNotFoundError where there is none, FormatError for damage."""
        path = folder / NAME
        if not path.is_file():
            found = (
                f"holds no {NAME}"
                if folder.is_dir()
                else "is a file"
                if folder.exists()
                else "does not exist"
            )
            raise FileNotFoundError(
                f"{folder} is no data set, it {found}; `gnn-ibp convert SOURCE FOLDER` makes one in a new "
                "folder"
            )
        file = DiskFile(path)
        try:
            text = file.read(0, file.size).tobytes()
            fields = json.loads(text)
            if not isinstance(fields, dict) or fields.pop("format", None) != KIND:
                raise ValueError("it does not describe a data set of gnn_ibp")
            version = fields.pop("version")
            if type(version) is not int or version != VERSION:
                raise ValueError(
                    f"the data set has format version {version!r}, this program reads version {VERSION}: a "
                    "newer gnn_ibp may read it"
                )
            has_sum = fields.pop(SUM, None) is not None  # those of older programs have none
            fields["features"] = {k: FeatureInfo.from_json(k, v) for k, v in fields["features"].items()}
            fields["arrays"] = {
                k: ArrayInfo(**v | {"shape": tuple(v["shape"])}) for k, v in fields["arrays"].items()
            }
            fields["files"] = {k: FileInfo(**v) for k, v in fields["files"].items()}
            meta = cls(**fields)
            meta._check()
            if has_sum and signed(text[: text.rfind(b",")] + b"\n}") != text:
                raise ValueError(
                    f"it has another checksum, it is damaged or was edited; delete its last line, {SUM!r}, "
                    "and the comma before to keep an edit"
                )
            return meta
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            what = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else error
            raise FormatError(f"{path} cannot be used: {what}") from error
        finally:
            file.close()


def raw_twin_name(feature: str) -> str:
    """That of the file beside the encoded one that stores every row of `feature` raw."""
    return f"{feature}.raw.ibp"


def file_info(path: Path, title: str | None = None) -> FileInfo:
    """Size and checksum of the file at `path`, by reading it; `title` is that of a progress bar."""
    file = DiskFile(path)
    try:
        sum_of = xxhash.xxh3_64()
        with progress(title, file.size, "B") as bar:
            for at in range(0, file.size, _READ_BYTES):
                sum_of.update(file.read(at, min(_READ_BYTES, file.size - at)).data)
                bar.update(_READ_BYTES)
        return FileInfo(file.size, sum_of.hexdigest())
    finally:
        file.close()


def signed(text: bytes) -> bytes:
    """`text`, an object in JSON on several lines, with its checksum as its last field."""
    return text.removesuffix(b"\n}") + f',\n "{SUM}": "{xxhash.xxh3_64_hexdigest(text)}"\n}}'.encode()


def _short(values: NDArray[np.float32]) -> list[float]:
    """Numbers with as few digits as tell a float32 from its neighbours."""
    return [float(str(value)) for value in values.reshape(-1)]
