// Gathers and decodes rows of format version 2 in 32-bit chunks; gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/gather_whole.cuh"
#include "cuda/ibp2_dense.cuh"
#include "cuda/ibp2_long.cuh"
#include "cuda/ibp2_sparse.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w32_x4(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<32, 8>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w32_x2(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<32, 16>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w32_x1(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<32, 32>);
}
extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w32_long(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Long<32>);
}
extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w32_sparse(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Sparse<32>);
}
