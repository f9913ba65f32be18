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
#include "cuda/stored_row.cuh"

namespace gnn_ibp {

constexpr unsigned kShortWarps = 8;

template <typename Codec>
class ShortRows {
  static constexpr unsigned kTeams = 32 / Codec::kLanes;
  static constexpr unsigned kSlots = 3;
  static constexpr unsigned kRounds = 2;  // of copies, for the two to five lines in which a row lies
  // Of a row that begins late in a line; what a damaged one may touch beyond its units lies within, too.
  static constexpr unsigned kSlotUnits = (kLineBytes + Codec::kPieceBytes + 32 + 16) / kUnitBytes;

  static_assert(kRounds * Codec::kLanes >= (kLineBytes + Codec::kPieceBytes) / kUnitBytes, "");

 public:
  __device__ __forceinline__ ShortRows(const Codec& codec, const RowShape& shape, uint8_t* out,
                                       uint32_t store_step)
      : codec_(codec),
        shape_(shape),
        out_(out),
        store_step_(store_step),
        lane_(threadIdx.x % Codec::kLanes),
        team_(threadIdx.x % 32 / Codec::kLanes) {
    codec_.load(lane_, part_);
    const uint32_t before = lane_ * kUnitBytes;
    count_ = shape.row_bytes > before ? min(shape.row_bytes - before, kUnitBytes) : 0;
  }

  __device__ __forceinline__ void run(const Request& request, const RowSource& cache, const RowSource& host) {
    SIMT_SHARED(uint4, all_slots, [kShortWarps * kSlots * kTeams * kSlotUnits]);
    const unsigned warp = threadIdx.x / 32;
    units_ = all_slots;
    first_slot_ = (warp * kSlots * kTeams + team_) * kSlotUnits;
    serve_tiles<kShortWarps>(request, shape_, cache, host, [this](const Tile& tile) { decode_tile(tile); });
  }

 private:
  __device__ __forceinline__ void decode_tile(const Tile& tile) {
    tile_ = tile;
    const unsigned num_steps = (tile.num_places + kTeams - 1) / kTeams;
    uint32_t now = first_slot_, next = now + kTeams * kSlotUnits, last = next + kTeams * kSlotUnits;
    open(0, now);
    open(1, next);
    if constexpr (Codec::kInPlace) {
      if (tile.any_in_place) {
        cp_async_wait<1>();
        __syncwarp();
        extend(0, now);
      }
    }
#pragma unroll 1
    for (unsigned r = 0; r < num_steps; ++r) {
      open(r + 2, last);
      if constexpr (Codec::kInPlace) {
        if (tile.any_in_place) {
          cp_async_wait<2>();
          __syncwarp();
          extend(r + 1, next);
        }
      }
      cp_async_wait<2>();
      __syncwarp();
      decode(r, now);
      __syncwarp();  // the slot has been read
      const uint32_t read = now;
      now = next, next = last, last = read;
    }
    cp_async_wait<0>();
  }

  // The team's row of step r is that of this place, if there is one: present(r).
  __device__ __forceinline__ Place& place(unsigned r) const { return tile_.places[r * kTeams + team_]; }
  __device__ __forceinline__ bool present(unsigned r) const { return r * kTeams + team_ < tile_.num_places; }

  __device__ __forceinline__ void open(unsigned r, uint32_t slot) const {
    if (present(r)) {
      const Place& p = place(r);
      const uint32_t begin = unit_begin(p.skip), end = unit_end(p.skip, p.size);
      fetch_row<Codec::kLanes, kRounds>(units_ + slot, p.line, begin, end, lane_);
    }
    cp_async_commit();
  }

  __device__ __forceinline__ void extend(unsigned r, uint32_t slot) const {
    const bool in_place = present(r) && place(r).flags & kInPlace;
    uint32_t saved = 0, skip = 0;
    if (in_place) {
      skip = place(r).skip;
      saved = Codec::saved_bits(part_, Codec::bits(part_, bytes_at(slot, skip), lane_));
    }
#pragma unroll
    for (unsigned step = 1; step < Codec::kLanes; step *= 2) saved += __shfl_xor_sync(kAllLanes, saved, step);
    if (in_place) {
      Place& p = place(r);
      const uint32_t size = codec_.size_of(saved);
      if (size < shape_.row_bytes) {
        const uint32_t begin = unit_end(skip, shape_.head_bytes), end = unit_end(skip, size);
        fetch_row<Codec::kLanes, kRounds>(units_ + slot, p.line, begin, end, lane_);
        if (lane_ == 0) p.size = size;
      } else if (lane_ == 0) {
        p.damaged = 1;
      }
    }
    cp_async_commit();
  }

  // A team without a row decodes what its slot holds, and stores nothing.
  __device__ __forceinline__ void decode(unsigned r, uint32_t slot) const {
    const bool stores = kTeams == 1 || present(r);
    Place& p = stores ? place(r) : tile_.places[0];
    const StoredRow row = {reinterpret_cast<const uint32_t*>(units_), slot * kUnitBytes + p.skip, p.size,
                           (p.flags & kEncoded) != 0};
    const MadeRow made = codec_.make(part_, row, lane_);
    if (!stores) return;
    store_lane(out_ + p.out_at + lane_ * kUnitBytes, made.value, count_, store_step_);
    if (!made.well && lane_ == 0) p.damaged = 1;
  }

  __device__ __forceinline__ const uint8_t* bytes_at(uint32_t slot, uint32_t skip) const {
    return reinterpret_cast<const uint8_t*>(units_) + (slot * kUnitBytes + skip);
  }

  const Codec& codec_;
  const RowShape& shape_;
  uint8_t* const out_;
  const uint32_t store_step_;
  const unsigned lane_, team_;
  uint32_t count_;  // bytes of the row that the lane makes
  typename Codec::Part part_;
  Tile tile_;
  uint4* units_;         // all slots of the block
  uint32_t first_slot_;  // of the team: a slot is the number of its first unit
};

}  // namespace gnn_ibp
