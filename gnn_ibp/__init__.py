"""Out-of-core GNN training with losslessly compressed node features."""

from gnn_ibp.codec import IBPCodec
from gnn_ibp.dataset import Dataset
from gnn_ibp.graph_store import GraphStore

__all__ = ["Dataset", "GraphStore", "IBPCodec"]

__version__ = "0.1.0"
