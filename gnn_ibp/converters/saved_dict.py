"""Dictionaries saved by torch.save, of numbers, arrays and tensors, and of nothing that could run code."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.errors import FormatError


def load_dict(path: Path) -> dict[str, Any]:
    """The dictionary in the file `path`. Of NumPy's types those of plain arrays are allowed, of others none.

    FormatError where the file is missing, damaged or holds anything else.
    """
    try:
        with torch.serialization.safe_globals(_numpy_types()):
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing") from error
    except OSError:
        raise
    except Exception as error:  # torch and pickle raise this and that
        raise FormatError(
            f"{path} is damaged, or holds more than numbers and arrays, which is all that is read from it"
        ) from error
    if not isinstance(loaded, dict):
        raise FormatError(f"{path} holds a {type(loaded).__name__}, wanted a dictionary")
    return loaded


def id_array(value: Any, where: str) -> NDArray[np.int64]:
    """`value`, a 1-D array or tensor of integers, as int64. FormatError for anything else."""
    array = value.numpy() if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        shape = getattr(array, "shape", "")
        kind = getattr(array, "dtype", type(value).__name__)
        raise FormatError(f"{where} is {kind} {shape}, wanted node ids (n,)")
    return array.astype(np.int64, copy=False)


def count(value: Any, where: str) -> int:
    """`value`, a whole number, as int. FormatError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise FormatError(f"{where} is {value!r}, a count is wanted")
    return int(value)


def _numpy_types() -> list[Any]:
    """What the pickle of an array or a number names, also as NumPy 1 wrote it."""
    reconstruct, scalar = np.empty(0).__reduce__()[0], np.int64(0).__reduce__()[0]
    array_types = [
        np.ndarray,
        np.dtype,
        *{type(np.dtype(kind)) for kind in ("bool", *np.typecodes["AllInteger"], "f4", "f8")},
    ]
    functions = [
        (function, f"numpy.{core}.multiarray.{name}")
        for core in ("core", "_core")
        for function, name in ((reconstruct, "_reconstruct"), (scalar, "scalar"))
    ]
    return [*array_types, *functions]
