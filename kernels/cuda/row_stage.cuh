// Stored rows on their way into shared memory, by asynchronous copies of 16 bytes, a unit, a lane.
//
//            128-byte line                 128-byte line
//   |. . . . . . # #|# # # # # # # #|# # # # # # # #|# # . . . . . .|     . not read: masked off
//                ^ unit_begin(skip)                      ^ unit_end(skip, bytes)
//    <- skip -> the row
//
// Units are counted from the line in which the row begins; a warp's accesses begin at lines, and cover the
// 32-byte sectors of the row and nothing else.
#pragma once

#include "cuda/prelude.cuh"

namespace gnn_ibp {

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kLineBytes = 128;
constexpr uint32_t kLineUnits = kLineBytes / kUnitBytes;

__device__ __forceinline__ uint32_t unit_begin(uint32_t skip) { return skip / 32 * 2; }

// Behind the sector of byte `bytes - 1` of the row; of no bytes, where they begin.
__device__ __forceinline__ uint32_t unit_end(uint32_t skip, uint32_t bytes) {
  return bytes ? (skip + bytes + 31) / 32 * 2 : unit_begin(skip);
}

// Copies units [begin, end) to stage[unit & mask]; LANES lanes take part, this one being `lane` of them.
template <unsigned LANES>
__device__ __forceinline__ void fetch_units(uint4* stage, uint32_t mask, const uint8_t* line, uint32_t begin,
                                            uint32_t end, unsigned lane) {
  for (uint32_t unit = (begin & ~(kLineUnits - 1)) + lane; unit < end; unit += LANES)
    if (unit >= begin) cp_async<kUnitBytes>(stage + (unit & mask), line + unit * kUnitBytes);
}

// The same of units below ROUNDS * LANES, to stage[unit]: a row that begins in the first line.
template <unsigned LANES, unsigned ROUNDS>
__device__ __forceinline__ void fetch_row(uint4* stage, const uint8_t* line, uint32_t begin, uint32_t end,
                                          unsigned lane) {
  const uint8_t* from = line + lane * kUnitBytes;
  uint4* to = stage + lane;
#pragma unroll
  for (unsigned round = 0; round < ROUNDS; ++round)
    if (lane + round * LANES - begin < end - begin)
      cp_async<kUnitBytes>(to + round * LANES, from + round * LANES * kUnitBytes);
}

}  // namespace gnn_ibp
