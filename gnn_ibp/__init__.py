"""Out-of-core GNN training with losslessly compressed node features."""

from gnn_ibp.codec import IBPCodec

__all__ = ["IBPCodec"]

__version__ = "0.1.0"
