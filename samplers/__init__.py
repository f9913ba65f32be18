"""Neighbor samplers."""

from gnn_ibp.samplers.neighbor import NeighborSampler

__all__ = ["NeighborSampler"]
