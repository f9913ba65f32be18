// Encoded rows in memory or in a file: where row i begins, how long it is, whether it is encoded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gnn_ibp {

struct Extent {
  uint64_t at;    // bytes from the first row
  uint64_t size;  // stored bytes; in place: row_bytes
};

// The first `count` of a whole group's sizes, each rounded up to a multiple of `align`, a power of two. All
// are added, those behind as zeros: a loop of fixed length becomes a few vectors, one of random length
// mispredicts.
template <int32_t Group>
inline uint64_t sum_of_group(const uint16_t* sizes, int32_t count, uint32_t align) {
  uint32_t sum = 0;
  for (int32_t k = 0; k < Group; ++k) {
    const uint32_t aligned = (sizes[k] + (align - 1)) & (0 - align);
    sum += aligned & (0 - static_cast<uint32_t>(k < count));
  }
  return sum;
}

// Condensed: the base of row i's group plus the aligned sizes of the group's rows before i.
// In place (bases == nullptr): row i begins at i * row_bytes.
struct RowLayout {
  static constexpr int64_t kGroup = 32;  // rows per base: their 16-bit sizes fill one cache line

  int64_t num_rows = 0;
  uint64_t row_bytes = 0;
  const uint8_t* bitmask = nullptr;   // bit i%8 of byte i/8: 1 = encoded, 0 = raw
  const uint64_t* bases = nullptr;    // one per group
  const uint16_t* sizes16 = nullptr;  // one per row, in units; exactly one of these two is set
  const uint32_t* sizes32 = nullptr;
  uint64_t unit = 1;   // S
  uint64_t align = 1;  // rows begin at multiples of this

  bool in_place() const { return bases == nullptr; }
  bool encoded(int64_t i) const { return bitmask[i >> 3] >> (i & 7) & 1; }

  uint64_t size(int64_t i) const { return (sizes16 ? sizes16[i] : sizes32[i]) * unit; }
  // Bytes from the start of a row of `size` bytes to that of the next one.
  uint64_t aligned(uint64_t size) const {
    const uint64_t end = size + align - 1;
    return (align & (align - 1)) == 0 ? end & ~(align - 1) : end / align * align;  // a division is slow
  }

  // Calls touch(pointer) for what extent(i) and encoded(i) will read.
  template <typename Touch>
  void touch_index(int64_t i, Touch& touch) const {
    touch(bitmask + (i >> 3));
    if (in_place()) return;
    touch(bases + i / kGroup);
    const int64_t first = i / kGroup * kGroup, last = std::min(first + kGroup, num_rows) - 1;
    if (sizes16) {
      touch(sizes16 + first), touch(sizes16 + last);  // a group begins in the middle of a line, often
    } else {
      touch(sizes32 + first), touch(sizes32 + i);
    }
  }

  Extent extent(int64_t i) const {
    if (in_place()) return {static_cast<uint64_t>(i) * row_bytes, row_bytes};
    const int64_t first = i / kGroup * kGroup;
    uint64_t at = bases[i / kGroup];
    if (sizes16 && has_shifts() && first + kGroup <= num_rows) {
      const uint32_t unit_bits = static_cast<uint32_t>(std::countr_zero(unit));
      const uint32_t align_units = static_cast<uint32_t>(align >> unit_bits);
      at += sum_of_group<kGroup>(sizes16 + first, static_cast<int32_t>(i - first), align_units) << unit_bits;
    } else {
      for (int64_t k = first; k < i; ++k) at += aligned(size(k));
    }
    return {at, size(i)};
  }

 private:
  bool has_shifts() const { return is_power_of_two(unit) && is_power_of_two(align) && align >= unit; }

  // std::has_single_bit is a call where no instruction counts ones.
  static bool is_power_of_two(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }
};

}  // namespace gnn_ibp
