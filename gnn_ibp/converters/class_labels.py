"""Labels of a source as small integers, -1 for none, converted block by block; errors name the file."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.labels import NO_LABEL, unlabelled_nodes
from gnn_ibp.conversion.splits import Split
from gnn_ibp.errors import FormatError


def class_labels(
    blocks: Iterable[NDArray[Any]], num_nodes: int, num_classes: int, where: str
) -> NDArray[np.signedinteger]:
    """Class numbers (num_nodes,) from blocks (n,) or (n, 1) of numbers: NaN and negative ones become -1.

    They are of the smallest dtype that holds them: labels stay in memory as long as a conversion takes.
    FormatError for another number of labels than nodes, for what is no class number, and for one that is not
    below `num_classes`.
    """
    labels = np.empty(num_nodes, np.min_scalar_type(-num_classes))
    at = 0
    for block in blocks:
        if block.dtype.kind not in "iuf" or block.size != len(block):
            raise FormatError(
                f"{where} holds {block.dtype} {block.shape[1:]} for a node, wanted one class number"
            )
        block = block.reshape(-1)
        if at + len(block) > num_nodes:
            raise FormatError(f"{where} has more than {num_nodes} labels, one for each node is wanted")
        labels[at : at + len(block)] = _checked_block(block, at, num_classes, where)
        at += len(block)
    if at != num_nodes:
        raise FormatError(f"{where} has {at} labels, the graph has {num_nodes} nodes")
    return labels


def check_training_nodes(labels: NDArray[Any], splits: Mapping[str, Split], where: str) -> None:
    """FormatError where a node of the split "train" has no label.

    Ids of nodes that do not exist are left to the check of the splits.
    """
    train = splits.get("train", range(0))
    if not isinstance(train, range):
        train = train[(train >= 0) & (train < len(labels))]
    count, first = unlabelled_nodes(labels, train)
    if count:
        raise FormatError(
            f"{where}: {count} of {len(train)} training nodes have no label (NaN or negative), the first is "
            f"node {first}"
        )


def _checked_block(given: NDArray[Any], first_node: int, num_classes: int, where: str) -> NDArray[Any]:
    block = given
    if given.dtype.kind == "f":
        block = given.astype(np.float64)
        block[np.isnan(block)] = NO_LABEL
        bad = block != np.trunc(block)
        bad |= np.isinf(block)
        if bad.any():
            at = int(bad.argmax())
            raise FormatError(
                f"{where}: node {first_node + at} has label {given[at]}, classes are whole numbers (NaN for "
                "none)"
            )
    if len(block) and block.max() >= num_classes:
        at = int(block.argmax())
        raise FormatError(
            f"{where}: node {first_node + at} has label {given[at]:.0f}, the data set has {num_classes} "
            "classes; are these the files of another one?"
        )
    return block if block.dtype.kind == "u" else np.maximum(block, NO_LABEL)
