// Rows to encoded rows, in parallel: first their sizes, then, where each is to lie, their bytes.
#pragma once

#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

// sizes[i] = stored bytes of row i of rows (num_rows, codec.row_bytes()).
void stored_sizes(const RowCodec& codec, const uint8_t* rows, int64_t num_rows, int64_t* sizes);

// Writes the rows to where `layout` says, encoded where its bitmask says. `first` is the first row's byte;
// nothing is written between the rows, nor behind an encoded row that stands in place.
void encode_rows(const RowCodec& codec, const uint8_t* rows, const RowLayout& layout, uint8_t* first);

}  // namespace gnn_ibp
