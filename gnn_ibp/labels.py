"""Labels and splits as a data set keeps them, checked where they come in."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

DISJOINT = ("train", "val", "test")
"""Splits that should have no node in common."""

NO_LABEL = -1

LABELS_PER_BLOCK = 1 << 20

MAX_CLASSES = 1 << 24
"""More classes than a model can tell apart: higher labels are ids or codes of another kind."""


def label_blocks(labels: NDArray[Any], num_nodes: int) -> Iterator[Ids]:
    """Labels (num_nodes,) as int64, `LABELS_PER_BLOCK` at a time: NaN and negative numbers become `NO_LABEL`.

    TypeError for other than numbers; ValueError for another shape (a single column is fine), fractions,
    infinities and numbers beyond int64.
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (num_nodes,):
        raise ValueError(
            f"y has shape {labels.shape}, wanted one class number for each of {num_nodes} nodes: "
            f"({num_nodes},)"
        )
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"y has dtype {labels.dtype}, wanted integers, or floats with NaN for no label")
    for first in range(0, num_nodes, LABELS_PER_BLOCK):
        yield _checked_block(np.asarray(labels[first : first + LABELS_PER_BLOCK]), first)


def _checked_block(labels: NDArray[Any], first_node: int) -> Ids:
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
        whole = np.where(missing, NO_LABEL, labels)
        bad = (whole != np.trunc(whole)) | (np.abs(whole) >= 2.0**63)
        if bad.any():
            at = int(bad.argmax())
            raise ValueError(
                f"y of node {first_node + at} is {labels[at]}, classes are whole numbers (NaN for none)"
            )
        labels = whole
    elif labels.dtype == np.uint64 and len(labels) and labels.max() >= 1 << 63:
        raise ValueError(
            f"y of node {first_node + labels.argmax()} is {labels.max()}, classes must fit into int64"
        )
    return np.maximum(labels.astype(np.int64), NO_LABEL)


def checked_splits(splits: Mapping[str, NDArray[Any]], num_nodes: int) -> dict[str, Ids]:
    """Node ids int64 of each split; a bool (num_nodes,) becomes the ids where it is True, ascending.

    TypeError for other than integers and bool, ValueError for another shape and repeated ids, IndexError for
    ids of nodes that do not exist. Warns where training, validation and test share nodes.
    """
    checked = {name: _checked_split(name, ids, num_nodes) for name, ids in splits.items()}
    for one, other in itertools.combinations([name for name in DISJOINT if name in checked], 2):
        shared = np.intersect1d(checked[one], checked[other], assume_unique=True)
        if len(shared):
            warnings.warn(
                f"{len(shared)} nodes are in both splits {one!r} and {other!r}, the first is node "
                f"{shared[0]}: what is measured on {other!r} says little",
                UserWarning,
                stacklevel=2,
            )
    return checked


def _checked_split(name: str, ids: NDArray[Any], num_nodes: int) -> Ids:
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
        raise ValueError(f"split {name!r} names node {twice} more than once")
    return ids


def checked_num_classes(labels: Ids, splits: Mapping[str, Ids], num_classes: int | None) -> int:
    """The number of classes, by default the highest label + 1.

    ValueError where a label is not below it or a training node has none: how many, and the first.
    """
    train = splits.get("train")
    if train is not None and len(train):
        unlabelled = train[labels[train] == NO_LABEL]
        if len(unlabelled):
            raise ValueError(
                f"{len(unlabelled)} of {len(train)} training nodes have no label (NaN or negative), the "
                f"first is node {unlabelled[0]}; leave them out of the split"
            )
    highest = int(labels.max(initial=NO_LABEL))
    if num_classes is None and highest >= MAX_CLASSES:
        raise ValueError(
            f"y of node {labels.argmax()} is {highest}, as a class number it means {highest + 1} classes; "
            "number the classes from 0 (numpy.unique(y, return_inverse=True))"
        )
    if num_classes is None:
        return highest + 1
    if highest >= num_classes:
        beyond = np.flatnonzero(labels >= num_classes)
        raise ValueError(
            f"{len(beyond)} labels are out of range, the first is {labels[beyond[0]]} of node {beyond[0]}: "
            f"{num_classes} classes are numbered 0 to {num_classes - 1}"
        )
    return num_classes
