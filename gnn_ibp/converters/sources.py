"""What can be converted, by name: the built-in graph, public data sets, .npz files."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.converters.igb import DEFAULT_CLASSES, SIZES, igb_parts, igb_source
from gnn_ibp.converters.mag240m import mag240m_parts, mag240m_source
from gnn_ibp.converters.npz import npz_parts
from gnn_ibp.converters.ogb import ogb_parts, ogb_source
from gnn_ibp.converters.ogb_table import NOT_YET, OGB_DATASETS, ogb_dataset
from gnn_ibp.converters.pyg_datasets import ALIASES, PYG_DATASETS, pyg_dataset_parts, source_of
from gnn_ibp.converters.synthetic import NUM_NODES, synthetic, synthetic_source
from gnn_ibp.converters.zip_arrays import ZipArrays
from gnn_ibp.errors import SettingsError, nearest
from gnn_ibp.progress import Say

MAX_NODES = 1 << 40
"""Of the built-in graph."""

_OGB_PREFIXES = ("ogbl-", "ogbg-")


@dataclass(frozen=True)
class Source:
    """name: its canonical name. folder: that of the data set made of it. config: its file among the configs.

    identity: what meta.json's `source` must say for the data set to be this one.
    read(raw_root, scratch, say): its parts; raw files lie or go below `raw_root`, `scratch` is for temporary
    files, `say` takes a line about what is downloaded.
    """

    name: str
    folder: str
    config: str
    identity: Mapping[str, Any]
    read: Callable[[Path, Path, Say], DatasetParts]


def find_source(name: str, num_classes: int | None = None) -> Source:
    """The source called `name`. SettingsError for an unknown one, with the nearest known name.

    num_classes: which of its labels, for a data set that has several; None for its usual ones.
    """
    kind, colon, rest = name.partition(":")
    key = kind.lower()
    if num_classes is not None:
        if key not in _IGB_SIZES or colon:
            raise SettingsError(f"--num-classes picks one of IGB's labels, {name} leaves no choice")
        colon, rest = ":", str(num_classes)
    if key in CONVERTERS and (not colon or key in PARAMETERS):
        return CONVERTERS[key](key, rest)
    if key in NOT_YET or key.startswith(_OGB_PREFIXES):
        raise SettingsError(f"the converter of OGB's {name} is not there yet; {_known()}")
    if key in CONVERTERS:
        raise SettingsError(f"data set {name!r}: {key} takes nothing behind a colon")
    if name.endswith(".npz") and Path(name).is_file():
        raise SettingsError(f"{name} is a file: npz:{name} names it as a data set")
    if os.sep in name:
        raise SettingsError(f"there is no folder {name} with a data set; {_known()}, or such a folder")
    raise SettingsError(f"unknown data set {name!r}{nearest(name, CONVERTERS)} {_known()}")


def config_name(name: str) -> str:
    """The name of the config of the data set `name`: of a path its stem, of an alias what it stands for.

    `synthetic:NODES` has none: the config of `synthetic` is for a graph of that size.
    """
    kind, _, rest = name.partition(":")
    if kind.lower() == "npz":
        return Path(rest).stem.lower()
    if kind.lower() in _IGB_SIZES:
        return _IGB
    return ALIASES.get(name.lower(), name.lower())


def _synthetic(key: str, rest: str) -> Source:
    if not rest:
        num_nodes = NUM_NODES
    elif rest.replace("_", "").isdecimal() and 0 < int(rest) <= MAX_NODES:
        num_nodes = int(rest)
    else:
        raise SettingsError(
            f"data set synthetic:{rest}: the number of nodes is wanted behind the colon, at most {MAX_NODES}"
        )
    folder = f"{key}-{num_nodes}" if rest else key
    identity = synthetic_source(num_nodes)
    return Source(key, folder, key, identity, lambda raw_root, scratch, say: synthetic(num_nodes))


def _npz(key: str, rest: str) -> Source:
    if not rest:
        raise SettingsError("data set npz: the path of an .npz file is wanted behind a colon, npz:PATH")
    path = Path(rest).expanduser()
    fingerprint = {"fingerprint": ZipArrays(path).fingerprint} if path.is_file() else {}
    identity = {"kind": key, **fingerprint}
    return Source(
        f"{key}:{rest}",
        path.stem,
        path.stem.lower(),
        identity,
        lambda raw_root, scratch, say: npz_parts(path),
    )


def _pyg(key: str, rest: str) -> Source:
    name = ALIASES.get(key, key)
    dataset = PYG_DATASETS[name]
    return Source(
        name,
        name,
        name,
        source_of(dataset),
        lambda raw_root, scratch, say: pyg_dataset_parts(name, dataset, raw_root, scratch),
    )


def _ogb(key: str, rest: str) -> Source:
    name = _OGB_NAMES[key]
    return Source(
        name,
        name,
        key,
        ogb_source(ogb_dataset(name)),
        lambda raw_root, scratch, say: ogb_parts(name, raw_root, scratch, say),
    )


def _mag240m(key: str, rest: str) -> Source:
    return Source(key, key, key, mag240m_source(), mag240m_parts)


def _igb(key: str, rest: str) -> Source:
    size = _IGB_SIZES[key]
    if rest and not rest.isdecimal():
        raise SettingsError(f"data set {key}:{rest}: the number of classes is wanted behind the colon")
    num_classes = int(rest or DEFAULT_CLASSES)
    folder = key if num_classes == DEFAULT_CLASSES else f"{key}-{num_classes}"
    identity = igb_source(size, num_classes)
    return Source(
        folder, folder, _IGB, identity, lambda raw_root, scratch, say: igb_parts(size, num_classes, raw_root)
    )


_IGB = "igb"
_IGB_SIZES = {f"{_IGB}-{size}": size for size in SIZES}
_OGB_NAMES = {name.lower(): name for name in OGB_DATASETS}

CONVERTERS: dict[str, Callable[[str, str], Source]] = {
    "synthetic": _synthetic,
    "npz": _npz,
    **dict.fromkeys((*PYG_DATASETS, *ALIASES), _pyg),
    **dict.fromkeys(_OGB_NAMES, _ogb),
    "mag240m": _mag240m,
    **dict.fromkeys(_IGB_SIZES, _igb),
}
"""Name, in lower case -> source of that name and of what stands behind its colon."""

PARAMETERS = ("synthetic", "npz", *_IGB_SIZES)
"""Names that take something behind a colon."""


def _known() -> str:
    plain = ", ".join((*PYG_DATASETS, *OGB_DATASETS, "mag240m", *_IGB_SIZES))
    return f"names that work: synthetic, synthetic:NODES, npz:PATH, {plain}"
