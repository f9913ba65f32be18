// Rows of format version 2, kind D, of more than 512 bytes, for WholeRows: a warp makes a block of 256 chunks
// after the other, 512 bytes at a time.
#pragma once

#include "cuda/ibp2_row.cuh"
#include "cuda/row_store.cuh"

namespace gnn_ibp {

template <unsigned W>
class Ibp2Long {
  static constexpr uint32_t kChunks = Ibp2Table<W>::kChunks;
  static constexpr unsigned kPieces = kIbp2BlockChunks / (32 * kChunks);

 public:
  static constexpr unsigned kUnit = Ibp2Table<W>::kUnit;
  static constexpr uint32_t kStageBytes = 4096;

  __device__ __forceinline__ Ibp2Long(const uint8_t* table, const RowShape& shape)
      : row_bytes_(shape.row_bytes), table_(table, shape.row_bytes, blocks_bytes(shape.row_bytes)) {}

  // Writes the row of `size` bytes that begins at byte `at` of `words`. False where it is damaged; what is
  // written then is undefined.
  template <typename Words>
  __device__ __forceinline__ bool decode(const Words& words, uint32_t at, uint32_t size, uint8_t* to,
                                         uint32_t store_step, unsigned lane) const {
    if (size % Ibp2Table<W>::kSizeUnit) return false;
    Ibp2RowParts parts =
        find_parts(table_.numbers, 8 * at, 8 * (at + size), table_.numbers.first_bits, table_.num_chunks);
#pragma unroll 1
    for (uint32_t first = 0; first < table_.num_chunks && parts.later.well; first += kIbp2BlockChunks)
      decode_block(words, 8 * at, first, parts, to, store_step, lane);
    return parts.later.well;
  }

 private:
  static __device__ __forceinline__ uint32_t blocks_bytes(uint32_t row_bytes) {
    constexpr uint32_t kBytes = kIbp2BlockChunks * kUnit;
    return (row_bytes + kBytes - 1) / kBytes * kBytes;
  }

  template <typename Words>
  __device__ __forceinline__ void decode_block(const Words& words, uint32_t begin, uint32_t first,
                                               Ibp2RowParts& parts, uint8_t* to, uint32_t store_step,
                                               unsigned lane) const {
    Ibp2Part<W> part[kPieces];
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p) table_.load(first / kChunks + p * 32 + lane, part[p]);
    const Ibp2Codes<W, 32, kPieces> codes(table_, part, words, begin, parts.later, lane);
    if (!parts.later.well) return;
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p) {
      const uint32_t chunk = first + (p * 32 + lane) * kChunks;
      const TailsAt tails = parts.tails(table_.numbers, min(chunk, table_.num_chunks));
      const uint4 value = Ibp2Chunks<W>::make(table_, part[p], codes, p, words, tails);
      const uint32_t before = chunk * kUnit;
      store_lane(to + before, value, row_bytes_ > before ? min(row_bytes_ - before, kUnitBytes) : 0,
                 store_step);
    }
  }

  const uint32_t row_bytes_;
  const Ibp2Table<W> table_;
};

}  // namespace gnn_ibp
