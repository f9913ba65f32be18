// The 32 lanes of a warp together.
#pragma once

#include "cuda/prelude.cuh"

namespace gnn_ibp {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// `value` and that of the lane `step` below, if there is one among LANES; a step of a scan.
template <unsigned LANES>
__device__ __forceinline__ uint32_t add_from_below(uint32_t value, unsigned step, unsigned lane) {
#ifdef SIMT_HOST
  const uint32_t other = __shfl_up_sync(kAllLanes, value, step, LANES);
  return lane >= step ? value + other : value;
#else  // the shuffle tells whether there is one
  asm volatile(
      "{ .reg .pred p; .reg .u32 other; shfl.sync.up.b32 other|p, %0, %1, %2, 0xffffffff; @p add.u32 %0, %0, "
      "other; }"
      : "+r"(value)
      : "r"(step), "n"((32 - LANES) << 8));
  return value;
#endif
}

}  // namespace gnn_ibp
