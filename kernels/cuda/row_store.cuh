// A lane's 16 bytes of a decoded row on their way to the output, by the widest stores that are aligned.
#pragma once

#include "cuda/prelude.cuh"

namespace gnn_ibp {

// Stores the first `count` of the 16 bytes, a multiple of `step`, which divides
// the address: 16, 8, 4 or 2. None beyond them.
__device__ __forceinline__ void store_lane(uint8_t* to, uint4 value, uint32_t count, uint32_t step) {
  if (step == 16) {
    if (count) *reinterpret_cast<uint4*>(to) = value;
  } else if (step == 8) {
    if (count > 0) *reinterpret_cast<uint2*>(to) = make_uint2(value.x, value.y);
    if (count > 8) *reinterpret_cast<uint2*>(to + 8) = make_uint2(value.z, value.w);
  } else if (step == 4) {
    uint32_t* words = reinterpret_cast<uint32_t*>(to);
    if (count > 0) words[0] = value.x;
    if (count > 4) words[1] = value.y;
    if (count > 8) words[2] = value.z;
    if (count > 12) words[3] = value.w;
  } else {
    const uint32_t words[4] = {value.x, value.y, value.z, value.w};
    uint16_t* halves = reinterpret_cast<uint16_t*>(to);
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k)
      if (count > 2 * k) halves[k] = static_cast<uint16_t>(words[k / 2] >> 16 * (k & 1));
  }
}

}  // namespace gnn_ibp
