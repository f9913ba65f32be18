"""Out-of-core GNN training with losslessly compressed node features."""

from gnn_ibp.codec import IBPCodec
from gnn_ibp.dataset import Dataset

__all__ = ["Dataset", "IBPCodec"]

__version__ = "0.1.0"
