// Rows that lie in shared memory whole while a warp decodes them, or that are read where they lie.
//
//   slots   while a row is decoded, the next ones are on their way, each to a slot of its own; a row that is
//           longer than Codec::kStageBytes has none
//
// Where a codec begins at both ends of a row, no window that moves along it holds what is needed.
#pragma once

#include "cuda/bit_words.cuh"
#include "cuda/row_stage.cuh"
#include "cuda/row_store.cuh"
#include "cuda/row_tile.cuh"

namespace gnn_ibp {

constexpr unsigned kWholeWarps = 4;

template <typename Codec>
class WholeRows {
  static constexpr unsigned kSlots = 2;
  // Of a row that begins late in a line; what is read behind one, and not used, lies within, too.
  static constexpr unsigned kSlotUnits = (kLineBytes + Codec::kStageBytes + 64) / kUnitBytes;

 public:
  __device__ __forceinline__ WholeRows(const Codec& codec, const RowShape& shape, uint8_t* out,
                                       uint32_t store_step)
      : codec_(codec), shape_(shape), out_(out), store_step_(store_step), lane_(threadIdx.x % 32) {}

  __device__ __forceinline__ void run(const Request& request, const RowSource& cache, const RowSource& host) {
    SIMT_SHARED(uint4, all_slots, [kWholeWarps][kSlots][kSlotUnits]);
    const unsigned warp = threadIdx.x / 32;
    slots_ = all_slots[warp][0];
    serve_tiles<kWholeWarps>(request, shape_, cache, host, [this](const Tile& tile) { decode_tile(tile); });
  }

 private:
  __device__ __forceinline__ void decode_tile(const Tile& tile) const {
    Place* const places = tile.places;
    const unsigned num_places = tile.num_places;
    if (num_places) open(places[0], 0);
    cp_async_commit();
#pragma unroll 1
    for (unsigned r = 0; r < num_places; ++r) {
      if (r + 1 < num_places) open(places[r + 1], (r + 1) % kSlots);
      cp_async_commit();
      cp_async_wait<1>();
      __syncwarp();
      decode(places[r], r % kSlots);
      __syncwarp();  // the slot has been read
    }
    cp_async_wait<0>();
  }

  static __device__ __forceinline__ bool is_staged(const Place& place) {
    return place.size <= Codec::kStageBytes;
  }

  __device__ __forceinline__ uint4* slot(unsigned number) const { return slots_ + number * kSlotUnits; }

  // Copies begin.
  __device__ __forceinline__ void open(const Place& place, unsigned number) const {
    const uint32_t skip = place.skip;
    if (is_staged(place))
      fetch_units<32>(slot(number), ~0u, place.line, unit_begin(skip), unit_end(skip, place.size), lane_);
  }

  __device__ __forceinline__ void decode(Place& place, unsigned number) const {
    bool well;
    if (is_staged(place)) {
      well = decode_from(SharedWords{reinterpret_cast<const uint32_t*>(slot(number))}, place);
    } else {
      const uint32_t last = (place.skip + place.size - 1) / 4;
      well = decode_from(GlobalWords{reinterpret_cast<const uint32_t*>(place.line), last}, place);
    }
    if (!well && lane_ == 0) place.damaged = 1;
  }

  template <typename Words>
  __device__ __forceinline__ bool decode_from(const Words& words, const Place& place) const {
    uint8_t* to = out_ + place.out_at;
    if (place.flags & kEncoded) return codec_.decode(words, place.skip, place.size, to, store_step_, lane_);
    const uint32_t first = place.skip / 4;
#pragma unroll 1
    for (uint32_t at = lane_ * kUnitBytes; at < shape_.row_bytes; at += 32 * kUnitBytes)
      store_lane(to + at, four_words(words, first + at / 4), min(shape_.row_bytes - at, kUnitBytes),
                 store_step_);
    return true;
  }

  const Codec& codec_;
  const RowShape& shape_;
  uint8_t* const out_;
  const uint32_t store_step_;
  const unsigned lane_;
  uint4* slots_;
};

}  // namespace gnn_ibp
