// The coded chunks of a raw row in format version 2, block by block; of sparse rows their bitmap, too.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu/ibp2_bitmap.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"

namespace gnn_ibp {

// The stored bytes of each level of a bitmap, B1, B2, B3, for 512 positions. A byte of B1 is given as it is
// made, those of higher levels after the eight that they stand for.
class Ibp2BitmapBytes {
 public:
  explicit Ibp2BitmapBytes(unsigned levels) : top_(levels - 1) {}

  template <typename Byte>
  void make(size_t num_bytes, const Byte& b1) {
    std::fill_n(count_, kIbp2Levels, size_t{0});
    unsigned b2 = 0, b3 = 0;
    for (size_t k = 0; k < num_bytes; ++k) {
      const unsigned byte = b1(k);
      add(0, byte);
      b2 |= unsigned{byte != 0} << k % 8;
      if (k % 8 != 7 && k + 1 < num_bytes) continue;
      add(1, b2);
      b3 |= unsigned{b2 != 0} << k / 8;
      b2 = 0;
    }
    add(2, b3);
  }

  const uint8_t* bytes(unsigned level) const { return bytes_[level]; }
  size_t count(unsigned level) const { return level <= top_ ? count_[level] : 0; }

 private:
  // The highest level is whole, of others the bytes that are not 0 are stored.
  void add(unsigned level, unsigned byte) {
    bytes_[level][count_[level]] = static_cast<uint8_t>(byte);
    count_[level] += byte != 0 || level == top_;
  }

  const unsigned top_;
  uint8_t bytes_[kIbp2Levels][65];
  size_t count_[kIbp2Levels];
};

template <typename Word>
class Ibp2Coded {
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kGroup = Ibp2BitmapOnes::kGroup;

 public:
  explicit Ibp2Coded(const Ibp2Tables<Word>& tables) : tables_(tables) {}

  // Calls use_block(chunks, first, count) for the blocks, and for sparse rows use_bitmap(bytes) before.
  template <typename UseBlock, typename UseBitmap>
  void for_each(const uint8_t* row, const UseBlock& use_block, const UseBitmap& use_bitmap) const {
    if (tables_.sparse) {
      for_each_present(row, use_block, use_bitmap);
      return;
    }
    for (size_t first = 0; first < tables_.num_chunks; first += kIbp2Block)
      use_block(row + first * S, first, std::min(kIbp2Block, tables_.num_chunks - first));
  }

 private:
  template <typename UseBlock, typename UseBitmap>
  void for_each_present(const uint8_t* row, const UseBlock& use_block, const UseBitmap& use_bitmap) const {
    uint8_t coded[(kIbp2Block + kGroup) * S];
    size_t first = 0, count = 0;
    Ibp2BitmapBytes bitmap(tables_.bitmap.levels());
    for (size_t j = 0; j < tables_.num_chunks; j += kGroup) {
      const size_t group = std::min(kGroup, tables_.num_chunks - j);
      bitmap.make((group + 7) / 8, [&](size_t k) {
        const uint8_t* chunks = row + (j + 8 * k) * S;
        const unsigned byte = present(chunks, std::min<size_t>(8, group - 8 * k));
        for (unsigned ones = byte; ones; ones &= ones - 1)
          std::copy_n(chunks + static_cast<size_t>(std::countr_zero(ones)) * S, S, coded + count++ * S);
        return byte;
      });
      use_bitmap(bitmap);
      for (; count >= kIbp2Block; first += kIbp2Block, count -= kIbp2Block) {
        use_block(coded, first, kIbp2Block);
        std::copy_n(coded + kIbp2Block * S, (count - kIbp2Block) * S, coded);
      }
    }
    if (count) use_block(coded, first, count);
  }

  // A bit for each of up to eight chunks.
  unsigned present(const uint8_t* chunks, size_t count) const {
    const Word zero = tables_.zero;
    if (count == 8) {
      Word differs = 0;
      for (size_t i = 0; i < 8; ++i) differs |= load_le<Word>(chunks + i * S) ^ zero;
      if (differs == 0) return 0;
    }
    unsigned bits = 0;
    for (size_t i = 0; i < count; ++i) bits |= unsigned{load_le<Word>(chunks + i * S) != zero} << i;
    return bits;
  }

  const Ibp2Tables<Word>& tables_;
};

}  // namespace gnn_ibp
