// Row format version 2, short codes for signs and exponents, behind the interface of row_codec.h.
#pragma once

#include <memory>

#include "cpu/row_codec.h"

namespace gnn_ibp {

// block: the parameters as a file stores them. Throws std::invalid_argument that names the rule they break.
std::unique_ptr<RowCodec> make_ibp2_codec(const uint8_t* block, size_t block_bytes, size_t row_bytes);

}  // namespace gnn_ibp
