// Invariant Bit Packing, format version 1, behind the interface of row_codec.h.
#pragma once

#include <memory>

#include "cpu/row_codec.h"

namespace gnn_ibp {

// mask, bitval: little-endian words, row_bytes bytes each. chunk_bits is 8, 16, 32 or 64 and divides the row;
// bitval & ~mask == 0. `level` is a supported one. Throws std::invalid_argument otherwise.
std::unique_ptr<RowCodec> make_ibp_codec(const uint8_t* mask, const uint8_t* bitval, size_t row_bytes,
                                         int chunk_bits, SimdLevel level);

}  // namespace gnn_ibp
