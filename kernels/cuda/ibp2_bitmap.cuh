// The bitmap of a row of format version 2, kind S: which chunks are coded.
//
//   B1 has a bit a chunk, B2 a bit a byte of B1, B3 a bit a byte of B2: 1 where that is not 0. Stored are the
//   highest of the `levels` whole, then the bytes that are not 0 of those below it.
//
//   ones of B3 -> which bytes of B2 are stored -> ones of B2 -> which bytes of B1 are stored -> ones of B1
//
// Each arrow is a ring in shared memory. A lane takes a stored byte, votes tell how many ones lie before it.
#pragma once

#include "cuda/bit_words.cuh"
#include "cuda/ibp2_table.cuh"
#include "cuda/warp.cuh"

namespace gnn_ibp {

// Rings for the numbers of ones of one warp.
constexpr uint32_t kIbp2OnesRing = 512, kIbp2UpperRing = 128;
constexpr uint32_t kIbp2RingWords = kIbp2OnesRing + (kIbp2Levels - 1) * kIbp2UpperRing;

template <typename Words>
class Ibp2Bitmap {
 public:
  // It begins at byte `at` of `words`. To be called, as all else, by a whole warp.
  __device__ __forceinline__ Ibp2Bitmap(const Words& words, uint32_t at, uint32_t* rings, unsigned lane)
      : words_(words), rings_(rings), lane_(lane) {
#pragma unroll
    for (unsigned level = 0; level < kIbp2Levels; ++level) levels_[level] = {8 * at, 0, 0, 0, 0};
  }

  // Finds the parts, and counts; false where they do not fit into `size` bytes, or are not well-formed.
  __device__ __forceinline__ bool find(uint32_t num_chunks, uint32_t num_levels, uint32_t size) {
    num_levels_ = num_levels;
    const uint32_t num_bits[] = {num_chunks, (num_chunks + 7) / 8, (num_chunks + 63) / 64};
    uint32_t count = 0;
    bool has_last = true;  // the last byte of the level is stored
#pragma unroll
    for (unsigned level = kIbp2Levels; level-- > 0;) {
      if (level >= num_levels) continue;
      const bool is_whole = level + 1 == num_levels;
      const uint32_t all_bytes = (num_bits[level] + 7) / 8;
      if (is_whole) count = all_bytes;
      if (count > size - num_bytes_) return false;
      levels_[level].begin += 8 * num_bytes_;
      levels_[level].num_bytes = count;
      const uint32_t last_bits = num_bits[level] - 8 * (all_bytes - 1);  // 1 to 8 of them
      const uint32_t last = has_last && count ? byte(level, count - 1) : 0;
      uint32_t ones = 0;
      const bool well = count_ones(levels_[level], is_whole, ones) && !(last >> last_bits);
      if (!__all_sync(kAllLanes, well)) return false;
      has_last = last >> (last_bits - 1) & 1;
      num_bytes_ += count;
      count = __reduce_add_sync(kAllLanes, ones);
    }
    num_ones_ = count;
    return true;
  }

  __device__ __forceinline__ uint32_t num_bytes() const { return num_bytes_; }
  __device__ __forceinline__ uint32_t num_ones() const { return num_ones_; }

  // Brings the next `count` ones, at most 256, of those that there are.
  __device__ __forceinline__ void bring(uint32_t count) {
    while (levels_[0].num_found - levels_[0].num_taken < count) find_more<0>();
    __syncwarp();
  }

  // The chunk of one `i` of those.
  __device__ __forceinline__ uint32_t chunk(uint32_t i) const {
    return rings_[(levels_[0].num_taken + i) % kIbp2OnesRing];
  }

  // They have been read.
  __device__ __forceinline__ void take(uint32_t count) {
    levels_[0].num_taken += count;
    __syncwarp();
  }

 private:
  // begin: the bit. num_bytes: stored. num_read: of these. num_found, num_taken: ones, into the ring and out.
  struct Level {
    uint32_t begin, num_bytes, num_read, num_found, num_taken;
  };

  __device__ __forceinline__ uint32_t byte(unsigned level, uint32_t i) const {
    const uint32_t at = levels_[level].begin / 8 + i;
    return words_(at / 4) >> 8 * (at % 4) & 0xFF;
  }

  // Adds those in the lane's share of the stored bytes; whether none of these is 0, where that matters.
  __device__ __forceinline__ bool count_ones(const Level& level, bool is_whole, uint32_t& ones) const {
    bool well = true;
#pragma unroll 1
    for (uint32_t i = 4 * lane_; i < level.num_bytes; i += 4 * 32) {
      const uint32_t left = level.num_bytes - i, valid = kAllLanes >> (left < 4 ? 32 - 8 * left : 0);
      const uint32_t four = bits32(words_, level.begin + 8 * i), filled = four | ~valid;
      ones += static_cast<uint32_t>(__popc(four & valid));
      well &= is_whole || !((filled - 0x01010101u) & ~filled & 0x80808080u);
    }
    return well;
  }

  // Stored bytes of a level whose ones are found at once.
  static constexpr uint32_t bytes_at_once(unsigned level) { return level == 0 ? 32 : 8; }
  static constexpr uint32_t ring_size(unsigned level) { return level == 0 ? kIbp2OnesRing : kIbp2UpperRing; }
  // A ring holds less than is wanted of it, or what is being read, and what is found then.
  static_assert(kIbp2OnesRing >= kIbp2BlockChunks + 8 * 32 && kIbp2UpperRing >= 32 + 8 * 8, "");

  __device__ __forceinline__ uint32_t* ring(unsigned level) const {
    return rings_ + (level == 0 ? 0 : kIbp2OnesRing + (level - 1) * kIbp2UpperRing);
  }

  // Puts the ones of the next stored bytes into the level's ring. The caller synchronises the warp.
  template <unsigned LEVEL>
  __device__ __forceinline__ void find_more() {
    Level& level = levels_[LEVEL];
    const uint32_t i = level.num_read + lane_;
    const bool is_there = lane_ < bytes_at_once(LEVEL) && i < level.num_bytes;
    uint32_t number = i;  // of the byte, those that are 0 and not stored counted
    if constexpr (LEVEL + 1 < kIbp2Levels)
      if (LEVEL + 1 < num_levels_) number = next_numbers<LEVEL + 1>(bytes_at_once(LEVEL));
    uint32_t ones = is_there ? byte(LEVEL, i) : 0;
    const Votes votes = count_votes<32, 8>(static_cast<uint32_t>(__popc(ones)), lane_);
    uint32_t to = level.num_found + votes.below;
    for (; ones; ones &= ones - 1, ++to)
      ring(LEVEL)[to % ring_size(LEVEL)] = 8 * number + static_cast<uint32_t>(__ffs(ones)) - 1;
    level.num_found += votes.all;
    level.num_read += bytes_at_once(LEVEL);
  }

  // The next `count` ones of the level, a lane each, or as many as there are.
  template <unsigned LEVEL>
  __device__ __forceinline__ uint32_t next_numbers(uint32_t count) {
    Level& level = levels_[LEVEL];
    while (level.num_found - level.num_taken < count && level.num_read < level.num_bytes) find_more<LEVEL>();
    __syncwarp();
    const uint32_t number = ring(LEVEL)[(level.num_taken + lane_) % ring_size(LEVEL)];
    level.num_taken += count;
    return number;
  }

  const Words& words_;
  uint32_t* const rings_;
  const unsigned lane_;
  uint32_t num_levels_ = 0, num_bytes_ = 0, num_ones_ = 0;
  Level levels_[kIbp2Levels];
};

}  // namespace gnn_ibp
