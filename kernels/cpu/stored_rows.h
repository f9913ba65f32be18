// Encoded rows as bytes: are they well-formed, how long are they, move them to another slab.
#pragma once

#include <cstdint>

#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

// Whether index and bitmask of the condensed layout belong together: raw rows have row_bytes, encoded ones
// fewer, every base is the sum of the aligned sizes before it, and all sum up to `rows_bytes`.
bool check_index(const RowLayout& layout, uint64_t rows_bytes);

// sizes[k] = stored bytes of row ids[k], or -1 where it is not well-formed. `rows` is the first row, with
// padding around all rows.
void measure_rows(const RowLayout& layout, const RowCodec& codec, const uint8_t* rows, const int64_t* ids,
                  int64_t n, int64_t* sizes);

// Copies row ids[k] of `from` to row slots[k] of `to`, which is condensed and knows its length, zeros behind
// it up to the alignment. Slots must not repeat.
void copy_rows(const RowLayout& from, const uint8_t* from_rows, const int64_t* ids, const RowLayout& to,
               uint8_t* to_rows, const int64_t* slots, int64_t n);

}  // namespace gnn_ibp
