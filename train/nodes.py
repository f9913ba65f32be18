"""Which nodes are trained, validated and tested on."""

from torch import Tensor

from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import SettingsError

SPLITS = ("train", "val", "test")


def labelled_nodes(ds: Dataset) -> dict[str, Tensor]:
    """Of each split the nodes that have a label, int64; splits that are missing are empty.

    Raises SettingsError where there are no features, no labels, or none to train on, and where a label is no
    class.
    """
    if "x" not in ds.features:
        raise SettingsError(f"{ds.path} has no features x: training needs a row of numbers per node")
    if ds.features["x"].row_type.torch_dtype.is_complex:
        raise SettingsError(f"the features x of {ds.path} are complex, the model takes real numbers")
    if ds.y is None:
        raise SettingsError(f"{ds.path} has no labels: training needs y, a class per node (-1 for none)")
    nodes = {}
    for name in SPLITS:
        ids = ds.split.get(name, ds.y.new_empty(0))
        nodes[name] = ids[ds.y[ids] >= 0]
        bad = nodes[name][ds.y[nodes[name]] >= ds.num_classes]
        if len(bad):
            raise SettingsError(
                f"node {bad[0]} of the {name} split has label {ds.y[bad[0]]}, but {ds.path} has "
                f"{ds.num_classes} classes: convert it again with labels below that, or -1 for none"
            )
    if not len(nodes["train"]):
        found = ", ".join(f"{name} {len(ids)}" for name, ids in ds.split.items()) or "none"
        raise SettingsError(
            f"{ds.path} has no labelled node in its train split (splits and their nodes: {found}): convert "
            "it again with a train split"
        )
    return nodes
