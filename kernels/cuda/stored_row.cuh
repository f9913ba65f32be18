// What a row format is given of a row, and what it gives back: the 16 bytes that a lane makes of it.
#pragma once

#include "cuda/prelude.cuh"

namespace gnn_ibp {

// A row that is staged in shared memory.
struct StoredRow {
  const uint32_t* words;
  uint32_t at;    // the byte of `words` at which it begins
  uint32_t size;  // bytes
  bool encoded;   // else it is stored raw
};

struct MadeRow {
  uint4 value;
  bool well;  // the row is well-formed, so far as the lane knows; where not, `value` is undefined
};

}  // namespace gnn_ibp
