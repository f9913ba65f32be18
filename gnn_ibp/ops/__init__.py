"""The kernels behind one door: checks the arguments and picks the backend by the tensors' device."""

from gnn_ibp.ops.encode import decode_all, encode_rows, ibp_codec, stored_sizes
from gnn_ibp.ops.fit import fit_positions, fit_sweep, fit_threshold
from gnn_ibp.ops.gather import Gathered, KernelCodec, Missing, Source, check_ids, gather_decode
from gnn_ibp.ops.model import (
    mean_and_own,
    mean_and_own_grad,
    neighbor_mean,
    relu_dropout,
    relu_dropout_grad,
)
from gnn_ibp.ops.stored import check_index, copy_rows, measure_rows, read_rows, row_table
from gnn_ibp.ops.threads import num_threads, set_num_threads

__all__ = [
    "Gathered",
    "KernelCodec",
    "Missing",
    "Source",
    "check_ids",
    "check_index",
    "copy_rows",
    "decode_all",
    "encode_rows",
    "fit_positions",
    "fit_sweep",
    "fit_threshold",
    "gather_decode",
    "ibp_codec",
    "mean_and_own",
    "mean_and_own_grad",
    "measure_rows",
    "neighbor_mean",
    "num_threads",
    "read_rows",
    "relu_dropout",
    "relu_dropout_grad",
    "row_table",
    "set_num_threads",
    "stored_sizes",
]
