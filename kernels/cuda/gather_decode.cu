// Rows of a minibatch out of encoded rows: gathered by id, decoded, written to the output, in one launch.
//
// gather_decode_wW_xN: rows in W-bit chunks, N of them side by side in a warp (up to 128, 256, 512 bytes).
// gather_decode_wW_long: longer rows. Blocks have 256 threads, for long rows 128; any number of blocks.
//
// Arguments are pointers and numbers, no structures. Of the two sources, `a` is asked first; null pointers
// where there is none. gnn_ibp.ops.device launches these, and tells what they mean.
#include "cuda/gather_long.cuh"
#include "cuda/gather_short.cuh"
#include "cuda/ibp_decode.cuh"

using namespace gnn_ibp;

#define SOURCE_PARAMETERS(s)                                                                \
  const uint8_t *s##_slab, const uint8_t *s##_bitmask, const uint64_t *s##_bases,           \
      const uint16_t *s##_sizes16, const uint32_t *s##_sizes32, const int32_t *s##_slot_of, \
      uint64_t s##_slab_bytes, uint64_t s##_num_rows, uint32_t s##_align

#define PARAMETERS                                                                                  \
  const uint8_t *table, uint32_t row_bytes, const int64_t *ids, int64_t num_ids, uint64_t num_rows, \
      const int64_t *at, uint8_t *out, uint64_t num_out, uint32_t tile_rows, int64_t *missing_ids,  \
      int64_t *missing_at, unsigned long long *counts, SOURCE_PARAMETERS(a), SOURCE_PARAMETERS(b)

#define SOURCE(s)                                                                                          \
  RowSource {                                                                                              \
    s##_slab, s##_bitmask, s##_bases, s##_sizes16, s##_sizes32, s##_slot_of, s##_slab_bytes, s##_num_rows, \
        s##_align                                                                                          \
  }

#define GATHER(Rows, W, LANES)                                                                               \
  const Ibp<W, LANES> codec(table, row_bytes);                                                               \
  const RowShape shape = {row_bytes, Ibp<W, LANES>::head_bytes(row_bytes), W / 8};                           \
  const Request request = {ids, num_ids, num_rows, at, num_out, tile_rows, missing_ids, missing_at, counts}; \
  Rows<Ibp<W, LANES>>(codec, shape, out).run(request, SOURCE(a), SOURCE(b))

extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w16_x4(PARAMETERS) {
  GATHER(ShortRows, 16, 8);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w16_x2(PARAMETERS) {
  GATHER(ShortRows, 16, 16);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w16_x1(PARAMETERS) {
  GATHER(ShortRows, 16, 32);
}
extern "C" __global__ void __launch_bounds__(128, 6) gather_decode_w16_long(PARAMETERS) {
  GATHER(LongRows, 16, 32);
}

extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x4(PARAMETERS) {
  GATHER(ShortRows, 32, 8);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x2(PARAMETERS) {
  GATHER(ShortRows, 32, 16);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w32_x1(PARAMETERS) {
  GATHER(ShortRows, 32, 32);
}
extern "C" __global__ void __launch_bounds__(128, 6) gather_decode_w32_long(PARAMETERS) {
  GATHER(LongRows, 32, 32);
}

extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w64_x4(PARAMETERS) {
  GATHER(ShortRows, 64, 8);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w64_x2(PARAMETERS) {
  GATHER(ShortRows, 64, 16);
}
extern "C" __global__ void __launch_bounds__(256, 3) gather_decode_w64_x1(PARAMETERS) {
  GATHER(ShortRows, 64, 32);
}
extern "C" __global__ void __launch_bounds__(128, 6) gather_decode_w64_long(PARAMETERS) {
  GATHER(LongRows, 64, 32);
}
