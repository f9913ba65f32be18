"""The kernels behind one door: checks the arguments and picks the backend by the tensors' device."""

from gnn_ibp.ops.encode import decode_all, encode_rows, ibp_codec, stored_sizes
from gnn_ibp.ops.fit import fit_positions, fit_sweep, fit_threshold
from gnn_ibp.ops.gather import Gathered, KernelCodec, Missing, Source, check_ids, gather_decode
from gnn_ibp.ops.threads import num_threads, set_num_threads

__all__ = [
    "Gathered",
    "KernelCodec",
    "Missing",
    "Source",
    "check_ids",
    "decode_all",
    "encode_rows",
    "fit_positions",
    "fit_sweep",
    "fit_threshold",
    "gather_decode",
    "ibp_codec",
    "num_threads",
    "set_num_threads",
    "stored_sizes",
]
