// Sparse rows of format version 2 written: `zero` everywhere, then the chunks that are present.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/ibp2_bitmap.h"
#include "cpu/ibp2_row.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"

namespace gnn_ibp {

template <typename Word>
struct Ibp2Sparse {
  using Tables = Ibp2Tables<Word>;
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kGroup = Ibp2BitmapOnes::kGroup;

  // Rows whose coded chunks are all alike. A group is filled while the processor looks for its ones.
  static void write_alike(const Tables& tables, const Ibp2Row& row, uint8_t* chunks) {
    const Word alike = tables.alike;
    Ibp2BitmapOnes ones(tables.bitmap, row.bitmap);
    for (size_t first = 0; first < tables.num_chunks; first += kGroup) {
      fill(chunks + first * S, std::min(kGroup, tables.num_chunks - first), tables.zero);
      ones.visit_group([&](size_t position) { store_le(chunks + position * S, alike); });
    }
  }

  // decode_block(first, count, coded) writes the `count` coded chunks from `first` on, a block of them, or
  // returns false where it is not well-formed.
  template <typename DecodeBlock>
  static bool write(const Tables& tables, const Ibp2Row& row, uint8_t* chunks,
                    const DecodeBlock& decode_block) {
    fill(chunks, tables.num_chunks, tables.zero);
    Ibp2BitmapOnes ones(tables.bitmap, row.bitmap);
    size_t positions[kIbp2Block + kGroup], num_positions = 0;
    uint8_t coded[kIbp2Block * S];
    for (size_t first = 0; first < row.num_coded; first += kIbp2Block) {
      const size_t count = std::min<uint64_t>(kIbp2Block, row.num_coded - first);
      while (num_positions < count)
        ones.visit_group([&](size_t position) { positions[num_positions++] = position; });
      if (!decode_block(first, count, coded)) return false;
      for (size_t i = 0; i < count; ++i) std::copy_n(coded + i * S, S, chunks + positions[i] * S);
      num_positions -= count;
      std::copy_n(positions + count, num_positions, positions);
    }
    return true;
  }

 private:
  static constexpr size_t kLine = 64;

  // Whole lines with stores that the compiler knows to be aligned: one that crosses a line takes twice as
  // long. Not memset: the processor's own fill lets nothing else run beside it.
  static void fill(uint8_t* chunks, size_t count, Word zero) {
    uint8_t* const end = chunks + count * S;
    const size_t before = -reinterpret_cast<uintptr_t>(chunks) % kLine;
    if (before % S == 0 && count * S > before) {
      for (uint8_t* const line = chunks + before; chunks < line; chunks += S) store_le(chunks, zero);
      for (; chunks + kLine <= end; chunks += kLine)
        for (size_t at = 0; at < kLine; at += S) store_le(std::assume_aligned<kLine>(chunks) + at, zero);
    }
    for (; chunks < end; chunks += S) store_le(chunks, zero);
  }
};

}  // namespace gnn_ibp
