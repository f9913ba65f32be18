// Rows by id out of a few stores of encoded rows, decoded to where the caller wants them: one pass.
#pragma once

#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

inline constexpr int kMaxSources = 2;

// A store that holds some of the rows: a cache.
struct RowSource {
  const RowCodec* codec = nullptr;
  RowLayout layout;
  const uint8_t* first = nullptr;    // the first row; kPadBytes before it and behind the last are readable
  uint64_t num_bytes = 0;            // of the rows
  const int32_t* slot_of = nullptr;  // slot of an id, negative: not here; nullptr: slot = id
};

struct GatherCounts {
  int64_t hits[kMaxSources] = {};
  int64_t encoded_bytes[kMaxSources] = {};  // as stored
  int64_t num_missing = 0;
  int64_t damaged = -1;  // the first position in ids whose row is damaged; -1: all are well
};

// For every i the row ids[i] is decoded to row at[i] (i where at is nullptr) of out
// (.., row_bytes), from the first source that has it. Where none has it, i's id and place are appended to
// missing_ids and missing_at, in order of i; both have room for n. Ids and places are not checked; what the
// sources' bytes say is.
GatherCounts gather_decode(const int64_t* ids, const int64_t* at, int64_t n, const RowSource* sources,
                           int num_sources, size_t row_bytes, uint8_t* out, int64_t* missing_ids,
                           int64_t* missing_at);

}  // namespace gnn_ibp
