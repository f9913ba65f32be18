"""The kernels behind one door, which checks their arguments: those of the CPU, and launches on a device."""

from gnn_ibp.ops.counting import KernelCounting
from gnn_ibp.ops.csc import count_ids, first_bad_node
from gnn_ibp.ops.device import (
    COUNT_WORDS,
    DeviceSource,
    GatherCounts,
    initial_counts,
    launch_gather_decode,
)
from gnn_ibp.ops.device_ibp import ibp_kernel
from gnn_ibp.ops.device_ibp2 import ibp2_kernel
from gnn_ibp.ops.device_kernel import DeviceKernel
from gnn_ibp.ops.edge_records import EdgeRecords
from gnn_ibp.ops.encode import decode_all, encode_rows, ibp2_codec, ibp_codec, stored_sizes
from gnn_ibp.ops.fit import fit_positions, fit_sweep, fit_threshold
from gnn_ibp.ops.gather import (
    MASK_HINT,
    Gathered,
    KernelCodec,
    Missing,
    Source,
    bad_id,
    check_ids,
    check_narrow_ids,
    damaged_row,
    gather_decode,
    ids_tensor,
)
from gnn_ibp.ops.model import (
    mean_and_own,
    mean_and_own_grad,
    neighbor_mean,
    relu_dropout,
    relu_dropout_grad,
    transposed_bytes,
)
from gnn_ibp.ops.sample import hash_ids, mix, sample_neighbors, sampling_bytes
from gnn_ibp.ops.simd import simd_levels
from gnn_ibp.ops.stored import (
    ReadResult,
    check_index,
    copy_rows,
    measure_rows,
    read_rows,
    read_stored,
    row_table,
)
from gnn_ibp.ops.threads import num_threads, set_num_threads

__all__ = [
    "COUNT_WORDS",
    "MASK_HINT",
    "DeviceKernel",
    "DeviceSource",
    "EdgeRecords",
    "GatherCounts",
    "Gathered",
    "KernelCodec",
    "KernelCounting",
    "Missing",
    "ReadResult",
    "Source",
    "bad_id",
    "check_ids",
    "check_index",
    "check_narrow_ids",
    "copy_rows",
    "count_ids",
    "damaged_row",
    "decode_all",
    "encode_rows",
    "first_bad_node",
    "fit_positions",
    "fit_sweep",
    "fit_threshold",
    "gather_decode",
    "hash_ids",
    "ibp2_codec",
    "ibp2_kernel",
    "ibp_codec",
    "ibp_kernel",
    "ids_tensor",
    "initial_counts",
    "launch_gather_decode",
    "mean_and_own",
    "mean_and_own_grad",
    "measure_rows",
    "mix",
    "neighbor_mean",
    "num_threads",
    "read_rows",
    "read_stored",
    "relu_dropout",
    "relu_dropout_grad",
    "row_table",
    "sample_neighbors",
    "sampling_bytes",
    "set_num_threads",
    "simd_levels",
    "stored_sizes",
    "transposed_bytes",
]
