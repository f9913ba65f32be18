// Rows of more than 512 bytes: a warp makes a row, 512 bytes at a time, out of a ring of lines.
//
//   ring    2 KiB a row, the stored bytes in order; unit u is ring[u % 128]. While a row is decoded, its
//           ring is filled up behind, and the first 2 KiB of the next row are on their way to the other.
//   window  up to 512 bytes of the head of the row that is decoded, at the same distance from a line as in
//           the row: copied out of the ring, where the payload overwrites it.
//
// A longer head (of rows beyond 16 KiB where W = 32) comes to the window piece by piece; the ring then begins
// at the payload. In place, the sum over the head tells how much payload there is before any is read.
#pragma once

#include "cuda/row_stage.cuh"
#include "cuda/row_store.cuh"
#include "cuda/row_tile.cuh"

namespace gnn_ibp {

constexpr unsigned kLongWarps = 4;

template <typename Codec>
class LongRows {
  static constexpr uint32_t kRingUnits = 128;
  static constexpr uint32_t kRingMask = kRingUnits - 1;
  static constexpr uint32_t kWindowBytes = 512;
  static constexpr uint32_t kWindowUnits = (kLineBytes + kWindowBytes + 32) / kUnitBytes;
  static constexpr uint32_t kWindowPieces = kWindowBytes / Codec::kPieceHeadBytes;
  // What piece k needs of the ring, up to 512 bytes and a word from where it begins, has been asked for
  // two pieces earlier: that was 2 KiB, less a part of a line, from a place at most 1 KiB before.
  static_assert(kRingUnits * kUnitBytes >= 2 * Codec::kPieceBytes + Codec::kPieceBytes + 16 + kLineBytes, "");

 public:
  __device__ __forceinline__ LongRows(const Codec& codec, const RowShape& shape, uint8_t* out,
                                      uint32_t store_step)
      : codec_(codec),
        shape_(shape),
        out_(out),
        lane_(threadIdx.x % 32),
        store_step_(store_step),
        num_pieces_((shape.row_bytes + Codec::kPieceBytes - 1) / Codec::kPieceBytes) {}

  __device__ __forceinline__ void run(const Request& request, const RowSource& cache, const RowSource& host) {
    SIMT_SHARED(uint4, all_rings, [kLongWarps][2][kRingUnits]);
    SIMT_SHARED(uint4, all_windows, [kLongWarps][kWindowUnits]);
    const unsigned warp = threadIdx.x / 32;
    rings_ = all_rings[warp][0];
    window_ = all_windows[warp];
    serve_tiles<kLongWarps>(request, shape_, cache, host, [this](const Tile& tile) { decode_tile(tile); });
  }

 private:
  __device__ __forceinline__ void decode_tile(const Tile& tile) const {
    Place* const places = tile.places;
    const unsigned num_places = tile.num_places;
    if (num_places == 0) return;
    open(places[0], 0);
    extend(places[0], 0);
#pragma unroll 1
    for (unsigned r = 0; r < num_places; ++r) {
      cp_async_wait<0>();
      __syncwarp();
      decode(places[r], r & 1, r + 1 < num_places ? &places[r + 1] : nullptr);
      __syncwarp();
      if (r + 1 < num_places) extend(places[r + 1], (r + 1) & 1);
    }
    cp_async_wait<0>();
  }

  __device__ __forceinline__ uint4* ring_of(unsigned number) const { return rings_ + number * kRingUnits; }
  __device__ __forceinline__ bool long_head() const { return shape_.head_bytes > kWindowBytes; }

  // The first unit of the ring: behind a long head, which goes to the window.
  __device__ __forceinline__ uint32_t first_unit(const Place& place, uint32_t skip) const {
    const bool behind = place.flags & kEncoded && long_head();
    return unit_begin(skip + (behind ? shape_.head_bytes : 0));
  }

  // The end of what the ring takes in when everything before byte `bit / 8` of the line may be overwritten.
  __device__ __forceinline__ uint32_t room_end(uint32_t bit) const {
    return bit / 8 / kLineBytes * kLineUnits + kRingUnits;
  }

  __device__ __forceinline__ void fetch(unsigned ring, const Place& place, uint32_t begin,
                                        uint32_t end) const {
    fetch_units<32>(ring_of(ring), kRingMask, place.line, begin, end, lane_);
  }

  // Copies begin: as much of the row as the ring takes, or the head of an encoded row in place.
  __device__ __forceinline__ void open(const Place& place, unsigned ring) const {
    const uint32_t skip = place.skip, begin = first_unit(place, skip);
    if (!(place.flags & kInPlace && long_head()))
      fetch(ring, place, begin, min(unit_end(skip, place.size), room_end(8 * kUnitBytes * begin)));
    cp_async_commit();
  }

  // In place: reads the head, which tells the size; copies of the payload begin.
  __device__ __forceinline__ void extend(Place& place, unsigned ring) const {
    if (!(place.flags & kInPlace)) return;
    const uint32_t skip = place.skip;
    uint32_t saved = 0;
    cp_async_wait<0>();
    __syncwarp();
#pragma unroll 1
    for (uint32_t piece = 0; piece < num_pieces_; ++piece) {
      if (long_head() && piece % kWindowPieces == 0) load_window(place, skip, piece / kWindowPieces);
      const uint8_t* head = reinterpret_cast<const uint8_t*>(long_head() ? window_ : ring_of(ring)) + skip;
      const uint32_t skipped = long_head() ? piece / kWindowPieces * kWindowBytes : 0,
                     at = piece * 32 + lane_;
      typename Codec::Part part;
      codec_.load_saved(at, part);
      saved += Codec::saved_bits(part, Codec::bits(part, head - skipped, at));
    }
    const uint32_t size = codec_.size_of(__reduce_add_sync(kAllLanes, saved));
    if (size < shape_.row_bytes) {
      const uint32_t first = first_unit(place, skip);
      const uint32_t begin = long_head() ? first : unit_end(skip, shape_.head_bytes);
      fetch(ring, place, begin, min(unit_end(skip, size), room_end(8 * kUnitBytes * first)));
      if (lane_ == 0) place.size = size;
    } else if (lane_ == 0) {
      place.damaged = 1;
    }
    cp_async_commit();
    __syncwarp();
  }

  // Brings the part of a long head that begins at byte `number` * kWindowBytes to the window.
  __device__ __forceinline__ void load_window(const Place& place, uint32_t skip, uint32_t number) const {
    const uint32_t before = number * kWindowBytes, count = min(shape_.head_bytes - before, kWindowBytes);
    __syncwarp();  // the window has been read
    fetch_units<32>(window_, ~0u, place.line + before, unit_begin(skip), unit_end(skip, count), lane_);
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
  }

  // Decodes a row; copies of the next one begin meanwhile.
  __device__ __forceinline__ void decode(Place& place, unsigned ring, const Place* next) const {
    const bool encoded = place.flags & kEncoded;
    const uint32_t skip = place.skip, size = place.size, head_bytes = encoded ? shape_.head_bytes : 0;
    const uint8_t* head = reinterpret_cast<const uint8_t*>(window_) + skip;
    if (encoded && !long_head()) {
      for (uint32_t unit = lane_; unit < unit_end(skip, head_bytes); unit += 32)
        window_[unit] = ring_of(ring)[unit];
      __syncwarp();
    }
    if (next) open(*next, ring ^ 1);
    if (place.damaged) return;  // in place: its head announces more than a row

    const uint32_t end = unit_end(skip, size), end_bit = 8 * (skip + size);
    uint32_t fetched = min(end, room_end(8 * kUnitBytes * first_unit(place, skip)));
    uint32_t bit = 8 * (skip + head_bytes), saved = 0;
    bool well = true;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(ring_of(ring));
    uint8_t* to = out_ + place.out_at + lane_ * kUnitBytes;
#pragma unroll 1
    for (uint32_t piece = 0; well && piece < num_pieces_; ++piece) {
      const uint32_t at = piece * 32 + lane_,
                     skipped = long_head() ? piece / kWindowPieces * kWindowBytes : 0;
      if (encoded && long_head() && piece % kWindowPieces == 0)
        load_window(place, skip, piece / kWindowPieces);
      const uint32_t target = min(end, room_end(bit));
      if (target > fetched) fetch(ring, place, fetched, target);
      fetched = max(fetched, target);
      cp_async_commit();
      typename Codec::Part part;
      codec_.load(at, part);
      const typename Codec::Take take =
          Codec::take(part, encoded ? Codec::bits(part, head - skipped, at) : 0, lane_);
      const uint32_t bytes = min(shape_.row_bytes - piece * Codec::kPieceBytes, Codec::kPieceBytes);
      cp_async_wait<2>();
      __syncwarp();
      well = bit + 8 * bytes - take.total <= end_bit;  // else the payload would go beyond the row
      if (well) {
        const auto word = [&](uint32_t k) { return words[k & (kRingMask * 4 + 3)]; };
        const uint4 value = Codec::make(part, take, word, bit + 128 * lane_);
        const uint32_t before = lane_ * kUnitBytes;
        store_lane(to, value, bytes > before ? min(bytes - before, kUnitBytes) : 0, store_step_);
      }
      to += Codec::kPieceBytes;
      bit += 8 * bytes - take.total;
      saved += take.total;
      __syncwarp();  // what lies before `bit` has been read
    }
    if (encoded && lane_ == 0) {
      if (well) {
        const uint32_t skipped = long_head() ? (head_bytes - 1) / kWindowBytes * kWindowBytes : 0;
        const uint8_t* bytes = reinterpret_cast<const uint8_t*>(words);
        const uint64_t last =
            Codec::stored_word(bytes + ((skip + size - Codec::kUnit) & (kRingMask * 16 + 15)));
        well = codec_.well_formed(size, saved, Codec::stored_word(head + head_bytes - skipped - Codec::kUnit),
                                  last);
      }
      if (!well) place.damaged = 1;
    }
  }

  const Codec& codec_;
  const RowShape& shape_;
  uint8_t* const out_;
  const unsigned lane_;
  const uint32_t store_step_, num_pieces_;
  uint4 *rings_, *window_;
};

}  // namespace gnn_ibp
