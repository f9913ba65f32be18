// Random reads of rows from a file: sorted, coalesced, many in flight, decoded straight into place.
#pragma once

#include <cstdint>

#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

struct RowsOnDisk {
  int fd;
  uint64_t rows_at;     // of the first row in the file, a multiple of the page
  uint64_t file_bytes;  // reads end here
  RowLayout layout;
};

enum class ReadFailure { kNone, kCutShort, kSystem, kDamaged };

struct ReadResult {
  uint64_t encoded_bytes = 0;   // of the rows, as often as they were asked for
  uint64_t physical_bytes = 0;  // of the pages read
  ReadFailure failure = ReadFailure::kNone;
  int error = 0;                        // errno of kSystem
  int64_t first_row = 0, last_row = 0;  // that could not be read or are damaged
};

// Writes row ids[i] to out + at[i] * row_bytes, or to out + i * row_bytes where `at` is null. The ids are
// valid, in any order, repeated or not. After a failure, of which the first seen is told, `out` is undefined.
ReadResult read_rows(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, const int64_t* at,
                     int64_t n, uint8_t* out);

// A slab to be filled with rows as they are stored, and what says where they are: the condensed layout.
struct RowSlab {
  uint8_t* first;  // the first row; there is room for as many raw rows as are asked for
  uint64_t align, unit;
  uint8_t* bitmask;
  uint64_t* bases;
  uint16_t* sizes16;  // one of these is null
  uint32_t* sizes32;
};

// Row ids[i], as it is stored and checked, becomes row i of the slab. Arguments and failures as above.
ReadResult read_stored(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, int64_t n,
                       const RowSlab& slab);

}  // namespace gnn_ibp
