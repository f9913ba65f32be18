// Gathers and decodes rows of format version 2, kind D, of at most 512 bytes, in 16-bit chunks;
// gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/ibp2_dense.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w16_x4(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<16, 8>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w16_x2(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<16, 16>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_ibp2_w16_x1(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp2Dense<16, 32>);
}
