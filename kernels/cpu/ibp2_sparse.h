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

// Inlined, so that each level of vector instructions fills with its own.
template <typename Word>
struct Ibp2Sparse {
  using Tables = Ibp2Tables<Word>;
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kGroup = Ibp2BitmapOnes::kGroup;

  // Rows whose coded chunks are all alike. A group is filled while the processor looks for its ones.
  [[gnu::always_inline]] static void write_alike(const Tables& tables, const Ibp2Row& row, uint8_t* chunks) {
    const Word alike = tables.alike;
    Ibp2BitmapOnes ones(tables.bitmap, row.bitmap);
    uint8_t* const end = chunks + tables.num_chunks * S;
    uint8_t* filled = fill_to_line(chunks, end, tables.zero);
    for (uint8_t* group = chunks; group < end; group += std::min<size_t>(kGroup * S, end - group)) {
      filled = fill_lines(filled, group + kGroup * S, end, tables.zero);
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

  [[gnu::always_inline]] static void fill(uint8_t* chunks, size_t count, Word zero) {
    uint8_t* const end = chunks + count * S;
    fill_lines(fill_to_line(chunks, end, zero), end, end, zero);
  }

  // Up to the next line, or all where chunks do not end at lines. Returns the end of what it filled.
  [[gnu::always_inline]] static uint8_t* fill_to_line(uint8_t* chunks, uint8_t* end, Word zero) {
    const size_t before = -reinterpret_cast<uintptr_t>(chunks) % kLine;
    const bool has_lines = before % S == 0 && before < static_cast<size_t>(end - chunks);
    return fill_some(chunks, has_lines ? chunks + before : end, zero);
  }

  // From a line, or `end`, to a line at `least` or behind it, or `end`. The compiler knows that the stores
  // are aligned: one that crosses a line takes twice as long. Not memset: the processor's own fill lets
  // nothing else run beside it.
  [[gnu::always_inline]] static uint8_t* fill_lines(uint8_t* line, uint8_t* least, uint8_t* end, Word zero) {
    for (; line < least && kLine <= static_cast<size_t>(end - line); line += kLine)
      for (size_t at = 0; at < kLine; at += S) store_le(std::assume_aligned<kLine>(line) + at, zero);
    return line < least ? fill_some(line, end, zero) : line;
  }

  [[gnu::always_inline]] static uint8_t* fill_some(uint8_t* chunks, uint8_t* end, Word zero) {
    for (; chunks < end; chunks += S) store_le(chunks, zero);
    return end;
  }
};

}  // namespace gnn_ibp
