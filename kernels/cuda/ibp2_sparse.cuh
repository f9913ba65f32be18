// Rows of format version 2, kind S, for WholeRows: the row is filled with `zero`, then a warp makes the coded
// chunks, 256 of them after the other, and puts each to its place.
#pragma once

#include "cuda/gather_whole.cuh"
#include "cuda/ibp2_bitmap.cuh"
#include "cuda/ibp2_row.cuh"

namespace gnn_ibp {

template <unsigned W>
class Ibp2Sparse {
  static constexpr uint32_t kChunks = Ibp2Table<W>::kChunks;
  static constexpr unsigned kPieces = kIbp2BlockChunks / (32 * kChunks);

 public:
  static constexpr unsigned kUnit = Ibp2Table<W>::kUnit;
  static constexpr uint32_t kStageBytes = 2048;

  __device__ __forceinline__ Ibp2Sparse(const uint8_t* table, const RowShape& shape)
      : row_bytes_(shape.row_bytes), table_(table, shape.row_bytes, 0) {
    SIMT_SHARED(uint32_t, all_rings, [kWholeWarps][kIbp2RingWords]);
    rings_ = all_rings[threadIdx.x / 32];
  }

  // Writes the row of `size` bytes that begins at byte `at` of `words`. False where it is damaged; what is
  // written then is undefined.
  template <typename Words>
  __device__ __forceinline__ bool decode(const Words& words, uint32_t at, uint32_t size, uint8_t* to,
                                         uint32_t store_step, unsigned lane) const {
    Ibp2Bitmap<Words> bitmap(words, at, rings_, lane);
    if (size % Ibp2Table<W>::kSizeUnit || !bitmap.find(table_.num_chunks, table_.numbers.levels, size))
      return false;
    const uint32_t count = bitmap.num_ones(), begin = 8 * (at + bitmap.num_bytes());
    Ibp2RowParts parts =
        find_parts(table_.numbers, begin, 8 * (at + size), count * table_.numbers.first_bits, count);
    if (!parts.later.well) return false;
    fill(to, store_step, lane);
    __syncwarp();
#pragma unroll 1
    for (uint32_t first = 0; first < count && parts.later.well; first += kIbp2BlockChunks)
      decode_block(words, begin, first, bitmap, parts, to, lane);
    return parts.later.well;
  }

 private:
  __device__ __forceinline__ void fill(uint8_t* to, uint32_t store_step, unsigned lane) const {
    const uint32_t* zero = table_.numbers.zero;
    const uint4 zeros = make_uint4(zero[0], zero[1], zero[0], zero[1]);
#pragma unroll 1
    for (uint32_t at = lane * kUnitBytes; at < row_bytes_; at += 32 * kUnitBytes)
      store_lane(to + at, zeros, min(row_bytes_ - at, kUnitBytes), store_step);
  }

  template <typename Words>
  __device__ __forceinline__ void decode_block(const Words& words, uint32_t begin, uint32_t first,
                                               Ibp2Bitmap<Words>& bitmap, Ibp2RowParts& parts, uint8_t* to,
                                               unsigned lane) const {
    const uint32_t all = bitmap.num_ones(), count = min(all - first, kIbp2BlockChunks);
    bitmap.bring(count);
    Ibp2Part<W> part[kPieces];
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p) table_.load_coded(first + (p * 32 + lane) * kChunks, all, part[p]);
    const Ibp2Codes<W, 32, kPieces> codes(table_, part, words, begin, parts.later, lane);
    if (!parts.later.well) return;
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p) {
      const uint32_t number = (p * 32 + lane) * kChunks;
      if (number >= count) continue;
      const TailsAt tails = parts.tails(table_.numbers, first + number);
      const uint4 made = Ibp2Chunks<W>::make(table_, part[p], codes, p, words, tails);
#pragma unroll
      for (unsigned i = 0; i < kChunks; ++i)
        if (number + i < count) Ibp2Chunks<W>::store(to + bitmap.chunk(number + i) * kUnit, made, i);
    }
    bitmap.take(count);
  }

  const uint32_t row_bytes_;
  const Ibp2Table<W> table_;
  uint32_t* rings_;
};

}  // namespace gnn_ibp
