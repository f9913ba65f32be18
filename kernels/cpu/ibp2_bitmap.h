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

// For every byte: where its ones are, lowest first, a byte each; and how many.
struct OnesOfByte {
  uint64_t places[256];
  uint8_t count[256];
};
inline constexpr OnesOfByte kOnesOfByte = [] {
  OnesOfByte ones{};
  for (unsigned byte = 0; byte < 256; ++byte)
    for (uint64_t place = 0; place < 8; ++place)
      if (byte >> place & 1) ones.places[byte] |= place << 8 * ones.count[byte]++;
  return ones;
}();

// The parts of a stored bitmap.
struct Ibp2BitmapParts {
  const uint8_t* bytes[kIbp2Levels];  // B1, B2, B3, as many as there are levels
  uint64_t num_bytes = 0;             // of all parts
  uint64_t num_ones = 0;              // chunks that are present
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

  // Finds the parts, no byte of them at `size` or beyond; may load 7 bytes behind that. False where they are
  // not well-formed.
  bool find(const uint8_t* stored, uint64_t size, Ibp2BitmapParts& parts) const {
    if (levels_ == 0) return true;
    uint64_t at = 0, count = num_bytes(levels_ - 1);
    bool has_last = true;  // the last byte of the level is listed
    for (unsigned level = levels_; level-- > 0;) {
      if (count > size - at) return false;
      const uint8_t* bytes = stored + at;
      const Listed listed = look_at(bytes, count);
      if (level + 1 < levels_ && listed.has_zero) return false;
      const unsigned last = has_last && count ? bytes[count - 1] : 0u;
      const unsigned last_bits = num_bits_[level] - 8 * (num_bytes(level) - 1);  // 1 to 8 of them
      if (last >> last_bits) return false;
      has_last = last >> (last_bits - 1) & 1;
      parts.bytes[level] = bytes;
      at += count;
      count = listed.num_ones;
    }
    parts.num_bytes = at;
    parts.num_ones = count;
    return true;
  }

 private:
  struct Listed {
    uint64_t num_ones;
    bool has_zero;  // one of the bytes
  };

  // Eight bytes at a time; not every processor has an instruction that counts ones.
  static Listed look_at(const uint8_t* bytes, uint64_t count) {
    constexpr uint64_t kOnes = 0x0101010101010101u, kHighest = kOnes << 7;
    uint64_t num_ones = 0, zeros = 0, i = 0;
    for (; i + 8 <= count; i += 8) {
      const uint64_t eight = load_le<uint64_t>(bytes + i);
      num_ones += ones_by_byte(eight) * kOnes >> 56;
      zeros |= (eight - kOnes) & ~eight;
    }
    if (i < count) {
      const uint64_t beyond = ~uint64_t{0} << 8 * (count - i);
      const uint64_t rest = load_le<uint64_t>(bytes + i);
      num_ones += ones_by_byte(rest & ~beyond) * kOnes >> 56;
      zeros |= ((rest | beyond) - kOnes) & ~(rest | beyond);
    }
    return {num_ones, (zeros & kHighest) != 0};
  }

  static uint64_t ones_by_byte(uint64_t eight) {
    eight -= eight >> 1 & 0x5555555555555555u;
    eight = (eight & 0x3333333333333333u) + (eight >> 2 & 0x3333333333333333u);
    return (eight + (eight >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  }

  const unsigned levels_;
  size_t num_bits_[kIbp2Levels] = {};
};

// The ones of a well-formed bitmap, a group of 512 positions after the other: 64 bytes of B1, 8 of B2.
class Ibp2BitmapOnes {
 public:
  static constexpr size_t kGroup = 512;

  Ibp2BitmapOnes(const Ibp2Bitmap& bitmap, const Ibp2BitmapParts& parts)
      : levels_(bitmap.levels()), whole_left_(bitmap.num_bytes(bitmap.levels() - 1)) {
    std::copy_n(parts.bytes, levels_, next_);
  }

  // Calls use(position) for the ones of the next group, ascending.
  template <typename Use>
  void visit_group(const Use& use) {
    if (levels_ == 1) {
      visit_whole(use);
    } else {
      visit_listed(use);
    }
    first_ += kGroup;
  }

 private:
  // B1 is whole.
  template <typename Use>
  void visit_whole(const Use& use) {
    for (size_t at = 0; at < kGroup && whole_left_; at += 64) {
      const size_t count = std::min<size_t>(8, whole_left_);
      for (uint64_t ones = take(0, count); ones; ones &= ones - 1) use(first_ + at + lowest(ones));
      whole_left_ -= count;
    }
  }

  // The bytes of B2 that there are stand side by side in one word: a loop over all their ones ends only once,
  // and the end of a loop is what a processor does not foresee.
  template <typename Use>
  void visit_listed(const Use& use) {
    const size_t listed = levels_ == 2 ? all_left() : *next_[2]++;
    const uint64_t places = kOnesOfByte.places[listed];
    for (uint64_t ones = take(1, kOnesOfByte.count[listed]); ones; ones &= ones - 1) {
      const size_t one = lowest(ones), byte_at = places >> (one & 56) & 7;
      const size_t first = first_ + 8 * (8 * byte_at + one % 8);
      for (unsigned byte = *next_[0]++; byte; byte &= byte - 1) use(first + lowest(byte));
    }
  }

  // Eight ones, for as many whole bytes of B2; fewer at the end.
  size_t all_left() {
    const size_t count = std::min<size_t>(8, whole_left_);
    whole_left_ -= count;
    return 0xFF >> (8 - count);
  }

  // The next `count` bytes of a level, 0 to 8, as a word; loads 8.
  uint64_t take(unsigned level, size_t count) {
    const uint64_t bytes = load_le<uint64_t>(next_[level]);
    next_[level] += count;
    return count < 8 ? bytes & ~(~uint64_t{0} << 8 * count) : bytes;
  }

  static size_t lowest(uint64_t ones) { return static_cast<size_t>(std::countr_zero(ones)); }

  const unsigned levels_;
  const uint8_t* next_[kIbp2Levels];
  size_t first_ = 0;   // position of the next group
  size_t whole_left_;  // bytes of the highest level, where that is B1 or B2
};

}  // namespace gnn_ibp
