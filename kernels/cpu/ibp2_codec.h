// Row format version 2, short codes for signs and exponents, behind the interface of row_codec.h.
#pragma once

#include <memory>

#include "cpu/row_codec.h"

namespace gnn_ibp {

// block: the parameters as a file stores them. Throws std::invalid_argument that names the rule they break.
// Where `level` has no functions of its own, those of the next lower one serve.
std::unique_ptr<RowCodec> make_ibp2_codec(const uint8_t* block, size_t block_bytes, size_t row_bytes,
                                          SimdLevel level);

}  // namespace gnn_ibp
