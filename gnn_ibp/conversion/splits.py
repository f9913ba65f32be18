"""Splits: which nodes are for training, validation, test. Arrays of ids, or ranges, which take no memory."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.rows import Ids

Split = Ids | range
"""Node ids; a range is of step 1."""

DISJOINT = ("train", "val", "test")
"""Splits that should have no node in common."""

_BLOCK_IDS = 1 << 20


def split_blocks(split: Split) -> Iterator[Ids]:
    """The ids of a split, `_BLOCK_IDS` at a time."""
    for first in range(0, len(split), _BLOCK_IDS):
        some = split[first : first + _BLOCK_IDS]
        yield np.arange(some.start, some.stop) if isinstance(some, range) else some


def checked_splits(splits: Mapping[str, NDArray[Any] | range], num_nodes: int) -> dict[str, Split]:
    """Node ids int64 of each split; a bool (num_nodes,) becomes the ids where it is True, ascending; ranges
    stay ranges.

    TypeError for other than integers and bool, ValueError for another shape and repeated ids, IndexError for
    ids of nodes that do not exist. Warns where training, validation and test share nodes.
    """
    checked = {name: _checked_split(name, ids, num_nodes) for name, ids in splits.items()}
    for one, other in itertools.combinations([name for name in DISJOINT if name in checked], 2):
        shared = _shared(checked[one], checked[other])
        if len(shared):
            warnings.warn(
                f"{len(shared)} nodes are in both splits {one!r} and {other!r}, the first is node "
                f"{shared[0]}: what is measured on {other!r} says little",
                UserWarning,
                stacklevel=2,
            )
    return checked


def _shared(one: Split, other: Split) -> Split:
    """What two splits have in common, ascending."""
    if isinstance(one, range):
        return _inside(one, other)
    if isinstance(other, range):
        return _inside(other, one)
    return np.intersect1d(one, other, assume_unique=True)


def _inside(bounds: range, ids: Split) -> Split:
    if isinstance(ids, range):
        return range(max(bounds.start, ids.start), min(bounds.stop, ids.stop))
    return np.sort(ids[(ids >= bounds.start) & (ids < bounds.stop)])


def _checked_split(name: str, ids: NDArray[Any] | range, num_nodes: int) -> Split:
    if isinstance(ids, range):
        if ids.step != 1:
            raise ValueError(f"split {name!r} is {ids}, a range must be of step 1")
        beyond = next((end for end in (ids.start, ids.stop - 1) if not 0 <= end < num_nodes), None)
        if len(ids) and beyond is not None:
            raise IndexError(f"split {name!r} names node {beyond}, nodes are 0 to {num_nodes - 1}")
        return ids
    if ids.ndim != 1:
        raise ValueError(
            f"split {name!r} has shape {ids.shape}, wanted one dimension: pick one of the splits"
        )
    if ids.dtype == np.bool_:
        if len(ids) != num_nodes:
            raise ValueError(f"split {name!r} is a mask of {len(ids)} nodes, there are {num_nodes}")
        return np.flatnonzero(ids)
    if ids.dtype.kind not in "iu" and len(ids):
        raise TypeError(f"split {name!r} has dtype {ids.dtype}, wanted node ids or a bool mask")
    bad = (ids < 0) | (ids >= num_nodes)
    if bad.any():
        at = int(bad.argmax())
        raise IndexError(
            f"split {name!r} names node {ids[at]} at position {at}, nodes are 0 to {num_nodes - 1}"
        )
    ids = ids.astype(np.int64)
    if len(np.unique(ids)) < len(ids):
        twice = np.sort(ids)[:-1][np.diff(np.sort(ids)) == 0][0]
        hint = "; a mask has to be one of bools" if len(ids) == num_nodes else ""
        raise ValueError(f"split {name!r} names node {twice} more than once{hint}")
    return ids
