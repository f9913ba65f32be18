// The bitmap of a sparse row in format version 2: a bit a chunk position, and bitmaps of its bytes above it.
//
//   B1: one bit per position, 1 = present; B2: one bit per byte of B1, 1 = that byte is not 0; B3 likewise.
//   Stored: the highest level whole, then of each lower one the bytes that are not 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu/little_endian.h"

namespace gnn_ibp {

inline constexpr unsigned kIbp2Levels = 3;

// The parts of a stored bitmap.
struct Ibp2BitmapParts {
  const uint8_t* bytes[kIbp2Levels] = {};  // B1, B2, B3
  uint64_t num_bytes = 0;                  // of all parts
  uint64_t num_ones = 0;                   // chunks that are present
};

class Ibp2Bitmap {
 public:
  // levels: 1 to 3; 0 where rows have no bitmap.
  Ibp2Bitmap(size_t num_chunks, unsigned levels) : levels_(levels) {
    size_t bits = num_chunks;
    for (unsigned level = 0; level < levels; ++level) {
      num_bits_[level] = bits;
      bits = (bits + 7) / 8;
    }
  }

  unsigned levels() const { return levels_; }
  size_t num_bits(unsigned level) const { return num_bits_[level]; }
  size_t num_bytes(unsigned level) const { return (num_bits_[level] + 7) / 8; }

  // Finds the parts, no byte of them at `size` or beyond. False where they are not well-formed.
  bool find(const uint8_t* stored, uint64_t size, Ibp2BitmapParts& parts) const {
    if (levels_ == 0) return true;
    uint64_t at = 0, count = num_bytes(levels_ - 1);
    bool has_last = true;  // the last byte of the level is listed
    for (unsigned level = levels_; level-- > 0;) {
      if (count > size - at) return false;
      const uint8_t* bytes = stored + at;
      if (level + 1 < levels_ && std::find(bytes, bytes + count, 0) != bytes + count) return false;
      const unsigned last = has_last && count ? bytes[count - 1] : 0u;
      const unsigned last_bits = num_bits_[level] - 8 * (num_bytes(level) - 1);  // 1 to 8 of them
      if (last >> last_bits) return false;
      has_last = last >> (last_bits - 1) & 1;
      parts.bytes[level] = bytes;
      at += count;
      count = ones(bytes, count);
    }
    parts.num_bytes = at;
    parts.num_ones = count;
    return true;
  }

 private:
  static uint64_t ones(const uint8_t* bytes, uint64_t count) {
    uint64_t sum = 0, i = 0;
    for (; i + 8 <= count; i += 8) sum += std::popcount(load_le<uint64_t>(bytes + i));
    for (; i < count; ++i) sum += std::popcount(bytes[i]);
    return sum;
  }

  const unsigned levels_;
  size_t num_bits_[kIbp2Levels] = {};
};

// The positions of the ones of a well-formed bitmap, ascending.
class Ibp2BitmapOnes {
 public:
  Ibp2BitmapOnes(const Ibp2Bitmap& bitmap, const Ibp2BitmapParts& parts) : top_(bitmap.levels() - 1) {
    std::copy_n(parts.bytes, kIbp2Levels, next_);
  }

  // Writes the next `count` positions; there are as many.
  void take(size_t count, size_t* positions) {
    for (size_t i = 0; i < count; ++i) positions[i] = next<0>();
  }

 private:
  // The next one of a level. Its byte's number is the next one of the level above; the highest level is
  // whole, its bytes are numbered in order.
  template <unsigned Level>
  size_t next() {
    while (left_[Level] == 0) {
      byte_at_[Level] = Level == top_ ? num_read_++ : next<std::min(Level + 1, kIbp2Levels - 1)>();
      left_[Level] = *next_[Level]++;
    }
    const size_t one = byte_at_[Level] * 8 + static_cast<size_t>(std::countr_zero(left_[Level]));
    left_[Level] &= left_[Level] - 1;
    return one;
  }

  const unsigned top_;
  const uint8_t* next_[kIbp2Levels];
  unsigned left_[kIbp2Levels] = {};  // ones of the byte that were not yet given
  size_t byte_at_[kIbp2Levels] = {};
  size_t num_read_ = 0;  // bytes of the highest level
};

}  // namespace gnn_ibp
