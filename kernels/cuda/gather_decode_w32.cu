// Gathers and decodes rows in 32-bit chunks; gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_long.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/ibp_decode.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x4(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<32, 8>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x2(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<32, 16>);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x1(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<32, 32>);
}
extern "C" __global__ void __launch_bounds__(128, 5) gather_decode_w32_long(GATHER_PARAMETERS) {
  GATHER_ROWS(LongRows, Ibp<32, 32>);
}
