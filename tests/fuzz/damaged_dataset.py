"""A folder with a data set of which one file at a time is damaged, or lies with right checksums."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from damage import DAMAGES, near, put_number
from good_files import GoodFile

from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_meta import NAME, SUM, file_info, signed

NUM_NODES, NUM_EDGES = 60, 500
STRANGE = [-1, 1.5, True, None, "1", "", [], {}, [[]], 2**63, 10**400, "../x.ibp", "float31", "nan", "no"]


class DamagedDataset:
    """path: the folder. good: its files, undamaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rng = np.random.default_rng(0)
        Dataset.from_arrays(
            path,
            edge_index=rng.integers(0, NUM_NODES, (2, NUM_EDGES)),
            x=rng.uniform(0.5, 1, (NUM_NODES, 8)).astype(np.float32),
            y=rng.integers(0, 4, NUM_NODES),
            split={"train": np.arange(0, 30), "val": np.arange(30, 40), "test": np.arange(40, 60)},
            edge_features={"edge_attr": rng.normal(size=(NUM_EDGES, 1))},
            arrays={"group": np.arange(NUM_NODES) % 3},
        )
        self.good = [GoodFile.of(file.name, file.read_bytes()) for file in sorted(path.iterdir())]
        self.restored = True

    def damage(self, rng: Random) -> str:
        """Damages one file; says how and which. The checksums stay as they were."""
        good, damage = rng.choice(self.good), rng.choice(DAMAGES)
        data = damage(rng, good, self.good)
        self.restored = data == good.data
        (self.path / good.name).write_bytes(data)
        return f"{damage.__name__} of {good.name}"

    def forge(self, rng: Random) -> str:
        """Changes a file, and size and checksum in meta.json with it; or meta.json itself."""
        good = rng.choice(self.good)
        self.restored = False
        if good.name == NAME:
            return f"{forge_meta(rng, self.path)} in {good.name}"
        data = bytearray(good.data)
        for _ in range(rng.choice([1, 1, 3])):
            first = 128 if good.name.endswith(".npy") and rng.random() < 0.9 else 0
            values = data[first : len(data) // 8 * 8]
            put_number(rng, values, rng.choice([1, 4, 8]))
            data[first : first + len(values)] = values
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        (self.path / good.name).write_bytes(data)
        sign_meta(self.path, {good.name: file_info(self.path / good.name).__dict__})
        return f"numbers of {good.name}"

    def restore(self) -> None:
        """Undoes what was done."""
        for path in self.path.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for good in self.good:
            (self.path / good.name).write_bytes(good.data)


def forge_meta(rng: Random, folder: Path) -> str:
    """Changes a value at random, however deep, or leaves it out."""
    fields = json.loads((folder / NAME).read_text())
    inner, key = fields, rng.choice(list(fields))
    while isinstance(inner[key], dict | list) and inner[key] and rng.random() < 0.85:
        inner = inner[key]
        key = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
    value = inner[key]
    if rng.random() < 0.15:
        del inner[key]
    elif type(value) is int and rng.random() < 0.5:
        inner[key] = near(rng, value)
    else:
        inner[key] = rng.choice(STRANGE)
    write_meta(folder, fields)
    return f"another {key!r}"


def sign_meta(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Puts these sizes and checksums into meta.json."""
    fields = json.loads((folder / NAME).read_text())
    fields["files"] |= files
    write_meta(folder, fields)


def write_meta(folder: Path, fields: dict[str, Any]) -> None:
    """With its own checksum."""
    fields.pop(SUM, None)
    (folder / NAME).write_bytes(signed(json.dumps(fields, indent=1).encode()))
