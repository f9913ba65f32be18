"""Journal: how far a conversion has come, so that it goes on where it was killed."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnn_ibp.disk_file import NewFile

NAME = "journal.json"
VERSION = 3

State = dict[str, Any]
"""Numbers, strings, and arrays; of one stage."""


class Journal:
    """What each stage of a conversion has brought to the disk for sure, by the stage's name.

    identity: tells the conversion from every other: its source, its settings, the program's version.
    `earlier` says what the journal of an earlier life was worth: None where there was none, True where it is
    of the same conversion and its stages are here, False where it is of another and nothing of it is used.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._path = folder / NAME
        self._identity = json.loads(json.dumps({"journal": VERSION, **identity}))
        self._stages: dict[str, str] = {}
        self.earlier: bool | None = None
        if self._path.exists():
            self.earlier = self._read()

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether some journal lies in `folder`."""
        return (folder / NAME).exists()

    @property
    def is_empty(self) -> bool:
        """Whether no stage is there."""
        return not self._stages

    def get(self, stage: str) -> State | None:
        """What `put` was given last for this stage; None where it was not called."""
        text = self._stages.get(stage)
        return None if text is None else json.loads(text, object_hook=_array_from_json)

    def put(self, stage: str, **state: Any) -> None:
        """Notes how far a stage is. Whatever it speaks of must be on the disk already."""
        self._stages[stage] = json.dumps(state, default=_array_to_json)
        with NewFile(self._path) as file:
            file.write(json.dumps({"identity": self._identity, "stages": self._stages}).encode())
            file.commit()

    def _read(self) -> bool:
        try:
            fields = json.loads(self._path.read_bytes())
            if fields["identity"] != self._identity:
                return False
            self._stages = dict(fields["stages"])
        except (ValueError, KeyError, TypeError):
            return False
        return True


def _array_to_json(array: object) -> dict[str, Any]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a journal keeps no {type(array).__name__}")
    text = base64.b64encode(array.tobytes()).decode()
    return {"array": text, "dtype": array.dtype.str, "shape": array.shape}


def _array_from_json(fields: dict[str, Any]) -> Any:
    if fields.keys() != {"array", "dtype", "shape"}:
        return fields
    values = np.frombuffer(base64.b64decode(fields["array"]), fields["dtype"])
    return values.reshape(fields["shape"]).copy()
