"""Out-of-core GNN training with losslessly compressed node features."""

from gnn_ibp.codec import IBPCodec
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.hotset import presample
from gnn_ibp.loader import Loader
from gnn_ibp.minibatch import MiniBatch
from gnn_ibp.version import __version__

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
