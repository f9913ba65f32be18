"""Labels of a source as int64, -1 for none, converted block by block; errors name the file."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError
from gnn_ibp.labels import NO_LABEL, Ids


def class_labels(blocks: Iterable[NDArray[Any]], num_nodes: int, where: str) -> Ids:
    """int64 (num_nodes,) from blocks (n,) or (n, 1) of numbers: NaN and negative ones become -1.

    FormatError for another number of labels than nodes and for what is no class number.
    """
    labels = np.empty(num_nodes, np.int64)
    at = 0
    for block in blocks:
        if block.dtype.kind not in "iuf" or block.size != len(block):
            raise FormatError(
                f"{where} holds {block.dtype} {block.shape[1:]} for a node, wanted one class number"
            )
        block = block.reshape(-1)
        if at + len(block) > num_nodes:
            raise FormatError(f"{where} has more than {num_nodes} labels, one for each node is wanted")
        labels[at : at + len(block)] = _whole(block, at, where)
        at += len(block)
    if at != num_nodes:
        raise FormatError(f"{where} has {at} labels, the graph has {num_nodes} nodes")
    return labels


def check_classes(labels: Ids, splits: Mapping[str, Ids], num_classes: int, where: str) -> None:
    """FormatError where a label is not below `num_classes`, or a node of the split "train" has none.

    Ids of nodes that do not exist are left to the check of the splits.
    """
    highest = int(labels.max(initial=NO_LABEL))
    if highest >= num_classes:
        raise FormatError(
            f"{where}: node {int(labels.argmax())} has label {highest}, the data set has {num_classes} "
            "classes; are these the files of another one?"
        )
    train = splits.get("train", np.empty(0, np.int64))
    train = train[(train >= 0) & (train < len(labels))]
    unlabelled = train[labels[train] == NO_LABEL]
    if len(unlabelled):
        raise FormatError(
            f"{where}: {len(unlabelled)} of {len(train)} training nodes have no label (NaN or negative), "
            f"the first is node {unlabelled[0]}"
        )


def _whole(block: NDArray[Any], first_node: int, where: str) -> Ids:
    if block.dtype.kind == "f":
        given, block = block, block.astype(np.float64)
        block[np.isnan(block)] = NO_LABEL
        bad = (block != np.trunc(block)) | (np.abs(block) >= 2.0**62)
    else:
        given, bad = block, block > np.iinfo(np.int64).max
    if bad.any():
        at = int(bad.argmax())
        raise FormatError(
            f"{where}: node {first_node + at} has label {given[at]}, classes are whole numbers (NaN for none)"
        )
    return np.maximum(block.astype(np.int64), NO_LABEL)
