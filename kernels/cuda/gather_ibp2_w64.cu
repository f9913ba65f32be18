// Gathers and decodes rows of format version 2 in 64-bit chunks; gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/gather_whole.cuh"
#include "cuda/ibp2_dense.cuh"
#include "cuda/ibp2_long.cuh"
#include "cuda/ibp2_sparse.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(256, 2) gather_ibp2_w64_x4(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<64, 8>);
}
extern "C" __global__ void __launch_bounds__(256, 2) gather_ibp2_w64_x2(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<64, 16>);
}
extern "C" __global__ void __launch_bounds__(256, 2) gather_ibp2_w64_x1(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<64, 32>);
}
extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w64_long(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Long<64>);
}
extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w64_sparse(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Sparse<64>);
}
