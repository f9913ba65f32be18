"""Levels of vector instructions that the row codecs exist in; every one gives the same bits."""

from gnn_ibp import _kernels


def simd_levels() -> list[str]:
    """Those that this processor runs, ascending; "portable" is the first. GNN_IBP_SIMD picks one by name."""
    return _kernels.simd_levels()
