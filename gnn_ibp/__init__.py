"""Out-of-core GNN training with losslessly compressed node features."""

from importlib import import_module
from typing import TYPE_CHECKING

from gnn_ibp.version import __version__

if TYPE_CHECKING:
    from gnn_ibp.codec import fit_codec
    from gnn_ibp.dataset import Dataset
    from gnn_ibp.errors import FormatError, SettingsError
    from gnn_ibp.feature_store import FeatureStore
    from gnn_ibp.graph_store import GraphStore
    from gnn_ibp.hotset import presample
    from gnn_ibp.ibp2_codec import IBP2Codec
    from gnn_ibp.ibp_codec import IBPCodec
    from gnn_ibp.loader import Loader
    from gnn_ibp.minibatch import MiniBatch

__all__ = [
    "Dataset",
    "FeatureStore",
    "FormatError",
    "GraphStore",
    "IBP2Codec",
    "IBPCodec",
    "Loader",
    "MiniBatch",
    "SettingsError",
    "__version__",
    "fit_codec",
    "presample",
]

_MODULES = {
    "Dataset": "gnn_ibp.dataset",
    "FeatureStore": "gnn_ibp.feature_store",
    "FormatError": "gnn_ibp.errors",
    "GraphStore": "gnn_ibp.graph_store",
    "IBP2Codec": "gnn_ibp.ibp2_codec",
    "IBPCodec": "gnn_ibp.ibp_codec",
    "Loader": "gnn_ibp.loader",
    "MiniBatch": "gnn_ibp.minibatch",
    "SettingsError": "gnn_ibp.errors",
    "fit_codec": "gnn_ibp.codec",
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
