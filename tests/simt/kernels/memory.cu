// Kernels that read and write far and wide: for the tests of recorded reads, large buffers and large grids.
#include "cuda/prelude.cuh"

// Reads 16 bytes of `from` at units[i] in each of the three ways, for thread i.
extern "C" __global__ void read_units(const uint4* from, const int64_t* units, uint32_t* out) {
  SIMT_SHARED(uint4, staged, [32]);
  const int64_t unit = __ldg(&units[threadIdx.x]);
  cp_async<16>(&staged[threadIdx.x], from + unit, 9);
  cp_async_commit();
  const uint32_t loaded = __ldcs(&from[unit + 1]).x;
  const uint32_t not_recorded = from[unit + 2].x;
  cp_async_wait<0>();
  out[threadIdx.x] = staged[threadIdx.x].x + loaded + not_recorded;
}

extern "C" __global__ void write_far(uint64_t* to, int64_t at, uint64_t value) {
  if (threadIdx.x == 0) to[at] = value;
}

extern "C" __global__ void count_blocks(uint32_t* counts) { atomicAdd(&counts[blockIdx.x], 1u); }

extern "C" __global__ void wait_for(uint32_t* flag) {
  while (!atomicAdd(flag, 0u)) {
  }
}
