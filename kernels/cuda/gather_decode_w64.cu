// Gathers and decodes rows in 64-bit chunks; gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_long.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/ibp_decode.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(256, 2) gather_decode_w64_x4(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<64, 8>);
}
extern "C" __global__ void __launch_bounds__(256, 2) gather_decode_w64_x2(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<64, 16>);
}
extern "C" __global__ void __launch_bounds__(256, 2) gather_decode_w64_x1(GATHER_PARAMETERS) {
  GATHER_ROWS(ShortRows, Ibp<64, 32>);
}
extern "C" __global__ void __launch_bounds__(128, 5) gather_decode_w64_long(GATHER_PARAMETERS) {
  GATHER_ROWS(LongRows, Ibp<64, 32>);
}
