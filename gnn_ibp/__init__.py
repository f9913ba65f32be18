"""Out-of-core GNN training with losslessly compressed node features."""

from importlib import import_module
from typing import TYPE_CHECKING

from gnn_ibp.version import __version__

if TYPE_CHECKING:
    from gnn_ibp.codec import IBPCodec
    from gnn_ibp.dataset import Dataset
    from gnn_ibp.errors import FormatError, SettingsError
    from gnn_ibp.feature_store import FeatureStore
    from gnn_ibp.graph_store import GraphStore
    from gnn_ibp.hotset import presample
    from gnn_ibp.loader import Loader
    from gnn_ibp.minibatch import MiniBatch

__all__ = [
    "Dataset",
    "FeatureStore",
    "FormatError",
    "GraphStore",
    "IBPCodec",
    "Loader",
    "MiniBatch",
    "SettingsError",
    "__version__",
    "presample",
]

_MODULES = {
    "Dataset": "gnn_ibp.dataset",
    "FeatureStore": "gnn_ibp.feature_store",
    "FormatError": "gnn_ibp.errors",
    "GraphStore": "gnn_ibp.graph_store",
    "IBPCodec": "gnn_ibp.codec",
    "Loader": "gnn_ibp.loader",
    "MiniBatch": "gnn_ibp.minibatch",
    "SettingsError": "gnn_ibp.errors",
    "presample": "gnn_ibp.hotset",
}


def __getattr__(name: str) -> object:
    """Public names are loaded when they are first asked for: torch takes seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
