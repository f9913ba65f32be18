// Rows of format version 2, kind D, of at most 512 bytes, for ShortRows: a lane makes 16 bytes.
#pragma once

#include "cuda/ibp2_chunks.cuh"
#include "cuda/ibp2_row.cuh"
#include "cuda/stored_row.cuh"

namespace gnn_ibp {

template <unsigned W, unsigned LANES>
class Ibp2Dense {
 public:
  static constexpr unsigned kLanes = LANES;
  static constexpr unsigned kPieceBytes = 16 * LANES;
  static constexpr unsigned kUnit = Ibp2Table<W>::kUnit;
  static constexpr bool kInPlace = false;  // rows do not tell their size

  typedef Ibp2Part<W> Part;

  __device__ __forceinline__ Ibp2Dense(const uint8_t* table, const RowShape& shape)
      : table_(table, shape.row_bytes, kPieceBytes) {}

  __device__ __forceinline__ void load(uint32_t at, Part& part) const { table_.load(at, part); }

  // To be called by all lanes of the warp; `lane` is the lane's number in its team.
  __device__ __forceinline__ MadeRow make(const Part& part, const StoredRow& row, unsigned lane) const {
    const Ibp2Numbers& numbers = table_.numbers;
    const SharedWords words = {row.words};
    const uint32_t begin = 8 * row.at, end = begin + 8 * row.size;
    Ibp2RowParts at = find_parts(numbers, begin, end, numbers.first_bits, table_.num_chunks);
    at.later.well &= row.size % Ibp2Table<W>::kSizeUnit == 0;
    const Part parts[1] = {part};
    const Ibp2Codes<W, LANES, 1> codes(table_, parts, words, begin, at.later, lane);
    const uint4 value =
        Ibp2Chunks<W>::make(table_, part, codes, 0, words, at.tails(numbers, lane * Ibp2Table<W>::kChunks));
    return {row.encoded ? value : four_words(words, begin / 32 + 4 * lane), !row.encoded || at.later.well};
  }

 private:
  const Ibp2Table<W> table_;
};

}  // namespace gnn_ibp
