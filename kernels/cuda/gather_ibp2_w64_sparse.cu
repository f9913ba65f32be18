// Gathers and decodes rows of format version 2, kind S, in 64-bit chunks; gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_whole.cuh"
#include "cuda/ibp2_sparse.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w64_sparse(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Sparse<64>);
}
