// The functions of row format version 2 that exist once for each level of vector instructions.
#pragma once

#include "cpu/ibp2_tables.h"
#include "cpu/row_codec.h"
#include "cpu/simd_level.h"

namespace gnn_ibp {

template <typename Word>
struct Ibp2Level {
  size_t lanes;  // that its tables are made for

  // Whether `stored` is a well-formed encoded row of `size` bytes, less than a raw one's; reads them and
  // padding, whatever they hold.
  bool (*check)(const Ibp2Tables<Word>& tables, const uint8_t* stored, size_t size);

  // The same in one pass with writing num_chunks chunks, no byte more; what they are is undefined where
  // false.
  bool (*decode)(const Ibp2Tables<Word>& tables, const uint8_t* stored, size_t size, uint8_t* row);

  // decode() of two rows.
  bool (*decode_two)(const Ibp2Tables<Word>& tables, const DecodeJob (&jobs)[2]);
};

// Word: uint8_t, uint16_t, uint32_t, uint64_t. The portable level is the reference of the others.
template <typename Word>
Ibp2Level<Word> ibp2_portable();
#ifdef GNN_IBP_X86
template <typename Word>
Ibp2Level<Word> ibp2_avx2();
template <typename Word>
Ibp2Level<Word> ibp2_avx512();
#endif
#ifdef GNN_IBP_NEON
template <typename Word>
Ibp2Level<Word> ibp2_neon();
#endif

}  // namespace gnn_ibp
