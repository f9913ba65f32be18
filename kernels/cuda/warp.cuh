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

// Sums over lanes of a team of LANES: those below this one, and all.
struct Votes {
  uint32_t below, all;
};

// Counts up to MOST of each lane, by a ballot for each of their bits; `lane` is the lane's number in its
// team.
template <unsigned LANES, unsigned MOST>
__device__ __forceinline__ Votes count_votes(uint32_t count, unsigned lane) {
  const unsigned first = (threadIdx.x & 31) - lane;
  const uint32_t team = kAllLanes >> (32 - LANES) << first, below = ((1u << lane) - 1) << first;
  Votes votes = {0, 0};
#pragma unroll
  for (unsigned b = 0; 1u << b <= MOST; ++b) {
    const uint32_t vote = __ballot_sync(kAllLanes, count >> b & 1);
    votes.below += static_cast<uint32_t>(__popc(vote & below)) << b;
    votes.all += static_cast<uint32_t>(__popc(vote & team)) << b;
  }
  return votes;
}

}  // namespace gnn_ibp
