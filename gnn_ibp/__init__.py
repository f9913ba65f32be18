"""Out-of-core GNN training with losslessly compressed node features."""

__version__ = "0.1.0"
