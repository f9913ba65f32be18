"""Labels as a data set keeps them, checked where they come in."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.splits import Split, split_blocks

Ids = NDArray[np.int64]

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
        whole = labels.astype(np.float64)
        whole[np.isnan(whole)] = NO_LABEL
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


def unlabelled_nodes(labels: NDArray[Any], split: Split) -> tuple[int, int | None]:
    """How many nodes of a split have no label, and the first that has none."""
    count, first = 0, None
    for ids in split_blocks(split):
        without = ids[labels[ids] == NO_LABEL]
        if len(without) and first is None:
            first = int(without[0])
        count += len(without)
    return count, first


def checked_num_classes(labels: Ids, splits: Mapping[str, Split], num_classes: int | None) -> int:
    """The number of classes, by default the highest label + 1.

    ValueError where a label is not below it or a training node has none: how many, and the first.
    """
    train = splits.get("train")
    if train is not None:
        count, first = unlabelled_nodes(labels, train)
        if count:
            raise ValueError(
                f"{count} of {len(train)} training nodes have no label (NaN or negative), the first is node "
                f"{first}; leave them out of the split"
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
