// Rows of at most 512 bytes: a team of 8, 16 or 32 lanes makes a row, 16 bytes a lane, so that a warp makes
// 4, 2 or 1 rows at once. The parameters of a lane's chunks stay in its registers.
//
// While a row is decoded, the next two are on their way, each in a slot of its own:
//
//   step r      open(r + 2)           copies begin: the whole row, or the head of an encoded row in place
//               extend(r + 1)         in place only: size told by the head; copies of the rest begin
//               decode(r)
//
// open() closes one group of copies, extend() another where a row of the tile lies in place; either way
// all but the two latest groups are what decode() needs, and extend() as well.
#pragma once

#include "cuda/row_stage.cuh"
#include "cuda/row_store.cuh"
#include "cuda/row_tile.cuh"

namespace gnn_ibp {

constexpr unsigned kShortWarps = 8;

template <typename Codec>
class ShortRows {
  static constexpr unsigned kTeams = 32 / Codec::kLanes;
  static constexpr unsigned kSlots = 3;
  // Of a row that begins late in a line; what a damaged one may touch beyond its units lies within, too.
  static constexpr unsigned kSlotUnits = (kLineBytes + Codec::kPieceBytes + 32 + 16) / kUnitBytes;

 public:
  __device__ __forceinline__ ShortRows(const Codec& codec, const RowShape& shape, uint8_t* out)
      : codec_(codec),
        shape_(shape),
        out_(out),
        lane_(threadIdx.x % Codec::kLanes),
        team_(threadIdx.x % 32 / Codec::kLanes),
        step_(store_bytes(out, shape.row_bytes)) {
    codec_.load(lane_, part_);
    const uint32_t before = lane_ * kUnitBytes;
    count_ = shape.row_bytes > before ? min(shape.row_bytes - before, kUnitBytes) : 0;
  }

  __device__ __forceinline__ void run(const Request& request, const RowSource& cache, const RowSource& host) {
    SIMT_SHARED(Place, all_places, [kShortWarps][32]);
    SIMT_SHARED(uint4, all_slots, [kShortWarps][kSlots][kTeams][kSlotUnits]);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    places_ = all_places[warp];
    slots_ = all_slots[warp][0][team_];
    Served served;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * kShortWarps * request.tile_rows;
    int64_t first = (static_cast<int64_t>(blockIdx.x) * kShortWarps + warp) * request.tile_rows;
    for (; first < request.num_ids; first += stride) {
      bool in_place;
      num_places_ = look_up(request, shape_, cache, host, first, lane, places_, in_place);
      __syncwarp();
      decode_tile(in_place);
      __syncwarp();
      served.add(request, places_, num_places_, first, lane);
      __syncwarp();
    }
    served.finish(request, lane);
  }

 private:
  __device__ __forceinline__ void decode_tile(bool in_place) {
    const unsigned num_steps = (num_places_ + kTeams - 1) / kTeams;
    open(0, 0);
    open(1, 1);
    if (in_place) {
      cp_async_wait<1>();
      __syncwarp();
      extend(0, 0);
    }
    unsigned slot = 0;
#pragma unroll 1
    for (unsigned r = 0; r < num_steps; ++r) {
      const unsigned next = slot == kSlots - 1 ? 0 : slot + 1, last = slot == 0 ? kSlots - 1 : slot - 1;
      open(r + 2, last);
      if (in_place) {
        cp_async_wait<2>();
        __syncwarp();
        extend(r + 1, next);
      }
      cp_async_wait<2>();
      __syncwarp();
      decode(r, slot);
      __syncwarp();  // the slot has been read
      slot = next;
    }
    cp_async_wait<0>();
  }

  // The place of the team's row in step r; null where it has none.
  __device__ __forceinline__ Place* place(unsigned r) const {
    const unsigned k = r * kTeams + team_;
    return k < num_places_ ? places_ + k : nullptr;
  }

  __device__ __forceinline__ uint4* slot_at(unsigned slot) const {
    return slots_ + slot * (kTeams * kSlotUnits);
  }

  __device__ __forceinline__ void open(unsigned r, unsigned slot) {
    if (const Place* p = place(r)) {
      const uint32_t skip = skip_of(p->row), size = p->size;
      if (size)
        fetch_units<Codec::kLanes>(slot_at(slot), ~0u, p->row - skip, unit_begin(skip), unit_end(skip, size),
                                   lane_);
    }
    cp_async_commit();
  }

  __device__ __forceinline__ void extend(unsigned r, unsigned slot) {
    Place* p = place(r);
    const bool in_place = p && (p->flags & kInPlace);
    uint32_t saved = 0, skip = 0;
    if (in_place) {
      skip = skip_of(p->row);
      saved = Codec::saved_bits(part_, codec_.bits(bytes_at(slot, skip), 0, lane_));
    }
#pragma unroll
    for (unsigned step = 1; step < Codec::kLanes; step *= 2) saved += __shfl_xor_sync(kAllLanes, saved, step);
    if (in_place) {
      const uint32_t size = codec_.size_of(saved);
      if (size < shape_.row_bytes) {
        fetch_units<Codec::kLanes>(slot_at(slot), ~0u, p->row - skip, unit_end(skip, shape_.head_bytes),
                                   unit_end(skip, size), lane_);
        if (lane_ == 0) p->size = size;
      } else if (lane_ == 0) {
        p->flags |= kDamaged;
      }
    }
    cp_async_commit();
  }

  __device__ __forceinline__ void decode(unsigned r, unsigned slot) {
    Place* p = place(r);
    uint32_t skip = 0, head = 0, bits = 0;
    if (p) {
      skip = skip_of(p->row);
      if (p->flags & kEncoded) {
        head = shape_.head_bytes;
        bits = codec_.bits(bytes_at(slot, skip), 0, lane_);
      }
    }
    const typename Codec::Take take = Codec::take(part_, bits, lane_);
    const uint32_t* words = reinterpret_cast<const uint32_t*>(slot_at(slot));
    const uint32_t at = 8 * (skip + head) + 128 * lane_;
    const uint4 value = Codec::make(part_, take, [&](uint32_t k) { return words[k]; }, at);
    if (!p) return;
    store_lane(out_ + p->out_at + lane_ * kUnitBytes, value, count_, step_);
    if (head && lane_ == 0) {
      const uint8_t* row = bytes_at(slot, skip);
      const uint64_t last_head = Codec::stored_word(row + head - Codec::kUnit);
      const uint64_t last = Codec::stored_word(row + p->size - Codec::kUnit);
      if (!codec_.well_formed(p->size, take.total, last_head, last)) p->flags |= kDamaged;
    }
  }

  __device__ __forceinline__ const uint8_t* bytes_at(unsigned slot, uint32_t skip) const {
    return reinterpret_cast<const uint8_t*>(slot_at(slot)) + skip;
  }

  const Codec& codec_;
  const RowShape& shape_;
  uint8_t* out_;
  const unsigned lane_, team_;
  const uint32_t step_;
  uint32_t count_;  // bytes of the row that the lane makes
  typename Codec::Part part_;
  Place* places_;
  uint4* slots_;  // of the team, in slot 0
  unsigned num_places_;
};

}  // namespace gnn_ibp
