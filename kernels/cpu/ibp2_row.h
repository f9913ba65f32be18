// Where the parts of an encoded row of format version 2 lie.
//
//   | bitmap (sparse) | first fields | later fields, block by block | zeros | high plane | low plane |
//   ^ 0                                                                                            ^ C
#pragma once

#include "cpu/ibp2_bitmap.h"
#include "cpu/ibp2_tables.h"

namespace gnn_ibp {

// Bits of a row's stream of later fields.
struct Ibp2Fields {
  const uint8_t* stream;
  uint64_t at, end;

  bool left(uint64_t bits) const { return bits <= end - at; }
};

struct Ibp2Row {
  Ibp2BitmapParts bitmap;
  uint64_t num_coded = 0;  // chunks
  const uint8_t* first_fields = nullptr;
  const uint8_t *high_plane = nullptr, *low_plane = nullptr;
  Ibp2Fields later{};

  // Finds the parts; false where they do not fit into `size` bytes or the bitmap is not well-formed.
  template <typename Word>
  bool find(const Ibp2Tables<Word>& tables, const uint8_t* stored, size_t size) {
    if (!tables.bitmap.find(stored, size, bitmap)) return false;
    num_coded = tables.sparse ? bitmap.num_ones : tables.num_chunks;
    const uint64_t first_bytes = (tables.first_bits(num_coded) + 7) / 8;
    const uint64_t low_bytes = tables.low_plane_bytes(num_coded);
    const uint64_t high_bytes = tables.high_plane_bytes(num_coded);
    if (bitmap.num_bytes + first_bytes + low_bytes + high_bytes > size) return false;
    first_fields = stored + bitmap.num_bytes;
    low_plane = stored + size - low_bytes;
    high_plane = low_plane - high_bytes;
    const uint8_t* stream = first_fields + first_bytes;
    later = {stream, 0, 8 * static_cast<uint64_t>(high_plane - stream)};
    return true;
  }
};

}  // namespace gnn_ibp
