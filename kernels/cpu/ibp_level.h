// The functions of Invariant Bit Packing that exist once for each level of vector instructions.
#pragma once

#include "cpu/ibp_tables.h"
#include "cpu/simd_level.h"

namespace gnn_ibp {

template <typename Word>
struct IbpLevel {
  // Bits left out of a row that begins with these participation bits, padding chunks included.
  uint64_t (*saved_by_stored)(const IbpTables<Word>& tables, const uint8_t* stored);

  // The same for a raw row, if it were encoded.
  uint64_t (*saved_by_row)(const IbpTables<Word>& tables, const uint8_t* row);

  // Writes the whole row to `stored`, no byte more.
  void (*encode)(const IbpTables<Word>& tables, const uint8_t* row, uint8_t* stored);

  // Writes num_chunks chunks, no byte more; may read kPadBytes beyond the well-formed row `stored`.
  void (*decode)(const IbpTables<Word>& tables, const uint8_t* stored, uint8_t* row);
};

// Word: uint8_t, uint16_t, uint32_t, uint64_t. The portable level is the reference of the others.
template <typename Word>
IbpLevel<Word> ibp_portable();
#ifdef GNN_IBP_X86
template <typename Word>
IbpLevel<Word> ibp_bmi2();
template <typename Word>
IbpLevel<Word> ibp_avx2();
template <typename Word>
IbpLevel<Word> ibp_avx512();
#endif

}  // namespace gnn_ibp
