// Gathers and decodes rows of format version 2, kind D, of more than 512 bytes, in 16-bit chunks;
// gather_decode.cuh tells all.
#include "cuda/gather_decode.cuh"
#include "cuda/gather_whole.cuh"
#include "cuda/ibp2_long.cuh"

using namespace gnn_ibp;

extern "C" __global__ void __launch_bounds__(128, 4) gather_ibp2_w16_long(GATHER_PARAMETERS) {
  GATHER_ROWS(WholeRows, Ibp2Long<16>);
}
