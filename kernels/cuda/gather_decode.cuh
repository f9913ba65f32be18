// The gather-decode kernels: rows of a minibatch out of encoded rows, gathered by id, decoded, written to the
// output, in one launch. Here is what their entry points have in common.
//
// gather_decode_wW_xN: rows in W-bit chunks, N of them side by side in a warp (up to 128, 256, 512 bytes), by
// blocks of 256 threads. gather_decode_wW_long: longer rows, 128 threads. Any number of blocks.
// gather_ibp2_wW_xN, gather_ibp2_wW_long: the same of format version 2, kind D, gather_ibp2_wW_sparse: kind
// S.
//
// Parameters are pointers and numbers, no structures. Of the two sources, `a` is asked first; null pointers
// where there is none. gnn_ibp.ops.device launches the kernels, and tells what the parameters mean.
#pragma once

#include "cuda/row_tile.cuh"

#define GATHER_SOURCE_PARAMETERS(s)                                                         \
  const uint8_t *s##_slab, const uint8_t *s##_bitmask, const uint64_t *s##_bases,           \
      const uint16_t *s##_sizes16, const uint32_t *s##_sizes32, const int32_t *s##_slot_of, \
      uint64_t s##_slab_bytes, uint64_t s##_num_rows, uint32_t s##_align

#define GATHER_PARAMETERS                                                                                \
  const uint8_t *table, uint32_t row_bytes, uint32_t head_bytes, uint32_t tile_rows, const int64_t *ids, \
      int64_t num_ids, uint64_t num_rows, const int64_t *at, uint8_t *out, uint64_t num_out,             \
      uint32_t store_bytes, int64_t *missing_ids, int64_t *missing_at, unsigned long long *counts,       \
      GATHER_SOURCE_PARAMETERS(a), GATHER_SOURCE_PARAMETERS(b)

#define GATHER_SOURCE(s)                                                                                   \
  RowSource {                                                                                              \
    s##_slab, s##_bitmask, s##_bases, s##_sizes16, s##_sizes32, s##_slot_of, s##_slab_bytes, s##_num_rows, \
        s##_align                                                                                          \
  }

// Rows: how they come, ShortRows for example; then the row format, a type.
#define GATHER_ROWS(Rows, ...)                                                                               \
  typedef __VA_ARGS__ Codec;                                                                                 \
  const RowShape shape = {row_bytes, head_bytes, Codec::kUnit};                                              \
  const Codec codec(table, shape);                                                                           \
  const Request request = {ids, num_ids, num_rows, at, num_out, tile_rows, missing_ids, missing_at, counts}; \
  Rows<Codec>(codec, shape, out, store_bytes).run(request, GATHER_SOURCE(a), GATHER_SOURCE(b))
