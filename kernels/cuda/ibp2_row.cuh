// Where the parts of an encoded row of format version 2 lie, in bits.
//
//   | bitmap (kind S) | level 1 | levels 2, 3, RAW, block by block | zeros | high plane | low plane |
//                     ^ begin   ^ later.at               later.end ^                            end ^
#pragma once

#include "cuda/ibp2_chunks.cuh"

namespace gnn_ibp {

struct Ibp2RowParts {
  LaterFields later;
  uint32_t high, low;

  // Those of chunk `number` of the coded ones.
  __device__ __forceinline__ TailsAt tails(const Ibp2Numbers& numbers, uint32_t number) const {
    return {high + number * numbers.high_bits, low + number * numbers.low_bits};
  }
};

// Of `num_coded` chunks with `first_bits` bits of level 1; later.well tells whether they fit. Where not, they
// all are the beginning of the row, and not to be used.
__device__ __forceinline__ Ibp2RowParts find_parts(const Ibp2Numbers& numbers, uint32_t begin, uint32_t end,
                                                   uint32_t first_bits, uint32_t num_coded) {
  const uint32_t fields = begin + (first_bits + 7) / 8 * 8;
  const uint32_t low_bits = num_coded * numbers.low_bits;
  const uint32_t high_bits = (num_coded * numbers.high_bits + 7) / 8 * 8;
  if (fields + low_bits + high_bits > end) return {{begin, begin, false}, begin, begin};
  return {{fields, end - low_bits - high_bits, true}, end - low_bits - high_bits, end - low_bits};
}

}  // namespace gnn_ibp
