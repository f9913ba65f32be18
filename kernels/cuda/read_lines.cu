// Raw rows by id, each beginning at a 128-byte line: what reading over PCIe can do at best. Decoding is
// measured against it (`make gpu-check`); nothing else uses it.
#include "cuda/prelude.cuh"

constexpr int ROWS_IN_FLIGHT = 4;  // of a warp

// Row ids[i], which begins at unit ids[i] * row_stride of `data`, goes to unit i * row_units of `out`; a unit
// is 16 bytes. A null `ids` means i itself. A warp loads from ROWS_IN_FLIGHT rows before it stores any.
extern "C" __global__ void __launch_bounds__(256)
    read_lines(const uint4* data, const int64_t* ids, int64_t num_ids, int64_t row_stride, int row_units,
               uint4* out) {
  const int lane = threadIdx.x % 32;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  for (int64_t first = warp * ROWS_IN_FLIGHT; first < num_ids; first += warps * ROWS_IN_FLIGHT) {
    int64_t from[ROWS_IN_FLIGHT];
#pragma unroll
    for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
      const int64_t i = first + k;
      from[k] = i >= num_ids ? -1 : (ids ? ids[i] : i) * row_stride;
    }
#pragma unroll 1
    for (int unit = lane; unit < row_units; unit += 32) {
      uint4 units[ROWS_IN_FLIGHT];
#pragma unroll
      for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
        if (from[k] >= 0) units[k] = data[from[k] + unit];
      }
#pragma unroll
      for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
        if (from[k] >= 0) out[(first + k) * row_units + unit] = units[k];
      }
    }
  }
}
