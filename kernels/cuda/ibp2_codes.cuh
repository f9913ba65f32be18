// Codes of up to 256 chunks of a row of format version 2, by the lanes of a team: three levels of fields,
// then the tops that are stored as they are, RAW.
//
//   level 1   a lane's fields lie side by side
//   level 2   those of all chunks that level 1 leads on, ascending; then level 3, then RAW
//
// A lane has CHUNKS chunks in each of PIECES pieces, a piece after the other: its fields of a level begin
// behind those of earlier pieces and, in a piece, of lower lanes, which votes count.
#pragma once

#include "cuda/bit_words.cuh"
#include "cuda/ibp2_table.cuh"
#include "cuda/warp.cuh"

namespace gnn_ibp {

// Bits of the fields behind level 1 that are not read yet.
struct LaterFields {
  uint32_t at, end;
  bool well;  // all fields so far were there
};

template <unsigned W, unsigned LANES, unsigned PIECES>
class Ibp2Codes {
 public:
  static constexpr uint32_t kChunks = Ibp2Table<W>::kChunks;

  // To be called by all lanes of a warp; `lane` is the lane's number in its team. Where fields do not fit in
  // what is left of `later`, none of them are read.
  template <typename Words>
  __device__ __forceinline__ Ibp2Codes(const Ibp2Table<W>& table, const Ibp2Part<W> (&parts)[PIECES],
                                       const Words& words, uint32_t first_begin, LaterFields& later,
                                       unsigned lane)
      : lane_(lane) {
#pragma unroll
    for (unsigned p = 0; p < PIECES; ++p) {
      const uint32_t fields = bits32(words, first_begin + parts[p].first_at);
#pragma unroll
      for (unsigned i = 0; i < kChunks; ++i) {
        const uint32_t place = parts[p].place(i);
        const uint32_t code = table.codes(0)[(place >> 5 & 3) * 8 + (fields >> place % 32 & 7)];
        codes_[p * kChunks + i] = parts[p].valid >> i & 1 ? code : 0;
      }
    }
    follow<2>(table.codes(1), words, later);
    follow<3>(table.codes(2), words, later);
    raws_ = links();
    if (__any_sync(kAllLanes, raws_ != 0)) take(raws_, table.numbers.top_bits, later);
  }

  // Of chunk i of piece p: bit 6 t, bits 0 to 4 a leaf; nothing that counts where it is raw.
  __device__ __forceinline__ uint32_t code(unsigned p, unsigned i) const { return codes_[p * kChunks + i]; }

  // A bit for each chunk of piece p whose top is stored as it is, and where these tops begin.
  __device__ __forceinline__ uint32_t raws(unsigned p) const { return of_piece(raws_, p); }
  __device__ __forceinline__ uint32_t raw_at(unsigned p) const { return at_[p]; }

 private:
  static __device__ __forceinline__ uint32_t of_piece(uint32_t bits, unsigned p) {
    return bits >> p * kChunks & ((1u << kChunks) - 1);
  }

  // A bit for each of the lane's chunks whose code leads on.
  __device__ __forceinline__ uint32_t links() const {
    uint32_t links = 0;
#pragma unroll
    for (unsigned k = 0; k < PIECES * kChunks; ++k) links |= (codes_[k] / kLinks & 1) << k;
    return links;
  }

  // Finds where, in each piece, the lane's fields of the chunks `wanted` begin, of `width` bits each.
  __device__ __forceinline__ void take(uint32_t& wanted, uint32_t width, LaterFields& later) {
    uint32_t num = 0;
#pragma unroll
    for (unsigned p = 0; p < PIECES; ++p) {
      const uint32_t mine = static_cast<uint32_t>(__popc(of_piece(wanted, p)));
      const Votes votes = count_votes<LANES, kChunks>(mine, lane_);
      at_[p] = num + votes.below;
      num += votes.all;
    }
    const bool fits = num * width <= later.end - later.at;
    if (!fits) wanted = 0, num = 0, later.well = false;
#pragma unroll
    for (unsigned p = 0; p < PIECES; ++p) at_[p] = later.at + (fits ? at_[p] * width : 0);
    later.at += num * width;
  }

  // Reads the fields of the next level, WIDTH bits, of chunks that the codes so far lead there.
  template <unsigned WIDTH, typename Words>
  __device__ __forceinline__ void follow(const uint8_t* codes, const Words& words, LaterFields& later) {
    uint32_t wanted = links();
    take(wanted, WIDTH, later);
#pragma unroll
    for (unsigned p = 0; p < PIECES; ++p) {
      uint32_t fields = bits32(words, at_[p]);
#pragma unroll
      for (unsigned i = 0; i < kChunks; ++i) {
        uint32_t& code = codes_[p * kChunks + i];
        if (of_piece(wanted, p) >> i & 1) {
          code = codes[code % kIbp2LevelCodes + (fields & ((1u << WIDTH) - 1))];
          fields >>= WIDTH;
        }
      }
    }
  }

  const unsigned lane_;
  uint32_t codes_[PIECES * kChunks];
  uint32_t at_[PIECES];
  uint32_t raws_;
};

}  // namespace gnn_ibp
