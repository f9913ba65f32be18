// The fields of a block of coded chunks, written to a row's two streams of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/ibp2_symbols.h"
#include "cpu/little_endian.h"
#include "cpu/low_bits.h"
#include "cpu/simd_level.h"

namespace gnn_ibp {

template <typename Word>
struct Ibp2BlockFields {
  const Ibp2Symbols<Word>& symbols;
  const uint8_t* chunks;
  size_t entry, count;  // of the first chunk in the tables; chunks
  unsigned head_shift, top_bits;

  // Where the first fields stand. Of each entry, how many bits of them are before it in its group; behind a
  // group's entries, how many it has. And of eight entries, ones in place of their first fields in a byte
  // each.
  const uint8_t* first_at;
  const uint64_t* first_masks;

  // What RAW stores of chunk i.
  Word head(size_t i) const {
    return static_cast<Word>(load_le<Word>(chunks + i * sizeof(Word)) >> head_shift);
  }
};

template <typename Word>
using Ibp2WriteFields = void (*)(const Ibp2BlockFields<Word>& block, LowBitWriter& firsts,
                                 LowBitWriter& later);

// Word: uint8_t, uint16_t, uint32_t, uint64_t.
template <typename Word>
Ibp2WriteFields<Word> ibp2_write_fields_portable();
#ifdef GNN_IBP_X86
template <typename Word>
Ibp2WriteFields<Word> ibp2_write_fields_bmi2();
#endif

}  // namespace gnn_ibp
