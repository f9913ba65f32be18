// Invariant Bit Packing on the device: the 16 bytes of a decoded row that a lane makes (kernels/ibp_row.h
// has the format).
//
//   head      participation bits of the lane's chunks   8, 4, 2 of them for W = 16, 32, 64
//             bits that these leave out, a byte each    0 where a chunk does not participate
//             sums over the chunks before               one product
//             sums over the lanes before                votes where all chunks save alike, else a scan
//   payload   W bits from there on                      funnel shift of the stream's 32-bit words
//             the chunk's own at the low end            shift right by what it leaves out
//             to their places                           log2(W) moves, & keep | bitval
//
// A row stored raw has no head: no chunk participates, and all of it is payload.
//
// The stream of 32-bit words, the most significant bit first, is that of the stored words: for W = 16 with
// the halves of each swapped, for W = 64 with the words of each pair swapped. 16-bit chunks are spread two in
// a register: no bit moves across its half.
#pragma once

#include "cuda/row_source.cuh"
#include "cuda/stored_row.cuh"
#include "cuda/warp.cuh"
#include "ibp_row.h"

namespace gnn_ibp {

// A register that holds a chunk.
template <unsigned W>
struct WideWord {
  typedef uint32_t type;
};
template <>
struct WideWord<64> {
  typedef uint64_t type;
};

// In place of the bits that every chunk of a piece leaves out, where they are not equally many.
constexpr uint32_t kUneven = 0xFFFFFFFFu;

// The parameters, as gnn_ibp.ops.device_ibp lays them out: `plane_bytes` bytes each of keep, bitval, and the
// moves; then a byte a chunk, the bits it leaves out; then a word a piece, the same of all its chunks, or
// kUneven. Rows are filled up with zeros to whole pieces, which are LANES * 16 bytes of a decoded row.
template <unsigned W, unsigned LANES>
class Ibp {
 public:
  static constexpr unsigned kLanes = LANES;
  static constexpr unsigned kPieceBytes = 16 * LANES;
  static constexpr unsigned kUnit = W / 8;
  static constexpr bool kInPlace = true;        // rows tell their size
  static constexpr unsigned kChunks = 128 / W;  // of a lane in a piece
  static constexpr unsigned kSteps = W == 16 ? 4 : W == 32 ? 5 : 6;
  static constexpr unsigned kPieceHeadBytes = kChunks * LANES / 8;

  typedef typename WideWord<W>::type Wide;

  // What a lane needs of the parameters for one piece.
  struct Part {
    uint4 keep, bitval, moves[kSteps];
    uint32_t saved[W == 16 ? 2 : 1];
    uint32_t even;   // what all chunks of the piece leave out, or kUneven
    uint32_t valid;  // a bit for each of the lane's chunks that the row has
  };

  // What of the stream a lane makes its bytes of.
  struct Take {
    uint32_t bits;                    // participation
    uint32_t saved[W == 16 ? 2 : 1];  // per chunk, in bytes
    uint32_t before;                  // bits left out by the lanes before, in this piece
    uint32_t total;                   // by all lanes of the team
  };

  __device__ __forceinline__ Ibp(const uint8_t* table, const RowShape& shape)
      : table_(table),
        num_chunks_(shape.row_bytes / kUnit),
        head_bytes_(shape.head_bytes),
        plane_bytes_(planes(shape.row_bytes)) {}

  // The parameters of chunks `kChunks * at` and on; `at` counts 16 bytes from the start of the row.
  __device__ __forceinline__ void load(uint32_t at, Part& part) const {
    const uint4* plane = reinterpret_cast<const uint4*>(table_) + at;
    const uint32_t step = plane_bytes_ / 16;
    part.keep = __ldg(plane);
    part.bitval = __ldg(plane + step);
#pragma unroll
    for (unsigned i = 0; i < kSteps; ++i) part.moves[i] = __ldg(plane + (2 + i) * step);
    load_saved(at, part);
  }

  // Only what take() and saved_bits() need.
  __device__ __forceinline__ void load_saved(uint32_t at, Part& part) const {
    const uint8_t* saved = table_ + (2 + kSteps) * plane_bytes_;
    if (W == 16) {
      const uint2 eight = __ldg(reinterpret_cast<const uint2*>(saved) + at);
      part.saved[0] = eight.x;
      part.saved[W == 16 ? 1 : 0] = eight.y;
    } else if (W == 32) {
      part.saved[0] = __ldg(reinterpret_cast<const uint32_t*>(saved) + at);
    } else {
      part.saved[0] = __ldg(reinterpret_cast<const uint16_t*>(saved) + at);
    }
    const uint32_t* even = reinterpret_cast<const uint32_t*>(saved + plane_bytes_ / kUnit);
    part.even = __ldg(even + at / LANES);
    part.valid = valid(at);
  }

  // The participation bits of the chunks at `at`, out of a head.
  static __device__ __forceinline__ uint32_t bits(const Part& part, const uint8_t* head, uint32_t at) {
    const uint32_t chunk = at * kChunks;
    return head[chunk / 8] >> chunk % 8 & part.valid;
  }

  // The bits that the lane's chunks leave out.
  static __device__ __forceinline__ uint32_t saved_bits(const Part& part, uint32_t bits) {
    Take take;
    select(part, bits, take);
    return sums_of_last(take) >> 24;
  }

  // To be called by all lanes of the warp; `lane` is the lane's number in its team.
  static __device__ __forceinline__ Take take(const Part& part, uint32_t bits, unsigned lane) {
    Take take;
    select(part, bits, take);
    const uint32_t mine = sums_of_last(take) >> 24;
    uint32_t upto = 0;
    if (part.even != kUneven) {
      const Votes votes = count_votes<LANES, kChunks>(static_cast<uint32_t>(__popc(bits)), lane);
      upto = votes.below * part.even + mine;
    } else {
      upto = mine;
#pragma unroll
      for (unsigned step = 1; step < LANES; step *= 2) {
        upto = add_from_below<LANES>(upto, step, lane);
      }
    }
    take.before = upto - mine;
    take.total = __shfl_sync(kAllLanes, upto, LANES - 1, LANES);
    return take;
  }

  // The lane's 16 bytes of a row that is staged whole.
  __device__ __forceinline__ MadeRow make(const Part& part, const StoredRow& row, unsigned lane) const {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(row.words) + row.at;
    const uint32_t head = row.encoded ? head_bytes_ : 0;
    const Take took = take(part, row.encoded ? bits(part, bytes, lane) : 0, lane);
    const uint32_t* words = row.words;
    const uint4 value =
        make(part, took, [&](uint32_t k) { return words[k]; }, 8 * (row.at + head) + 128 * lane);
    return {value, !row.encoded || well_formed(row.size, took.total, stored_word(bytes + head - kUnit),
                                               stored_word(bytes + row.size - kUnit))};
  }

  // The lane's 16 bytes. `word(k)`: the 32-bit word k as stored; `at`: the bit, in words as stored, at which
  // the lane's chunks begin, with nothing left out before them in the piece.
  template <typename Words>
  static __device__ __forceinline__ uint4 make(const Part& part, const Take& take, const Words& word,
                                               uint32_t at) {
    uint32_t out[4];
    const uint32_t keep[4] = {part.keep.x, part.keep.y, part.keep.z, part.keep.w};
    const uint32_t bitval[4] = {part.bitval.x, part.bitval.y, part.bitval.z, part.bitval.w};
    const uint32_t start = at - take.before;
    if (W == 64) {
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        const uint32_t left = take.saved[0] >> 8 * i & 0xFF;
        const uint32_t bit = start + (i ? 64 - (take.saved[0] & 0xFF) : 0), k = bit >> 5;
        const uint32_t middle = word((k + 1) ^ 1);
        const uint64_t stream = static_cast<uint64_t>(__funnelshift_l(middle, word(k ^ 1), bit)) << 32 |
                                __funnelshift_l(word((k + 2) ^ 1), middle, bit);
        const uint64_t value = stream >> (left & 63);  // a chunk of no bits: whatever, keep is 0
        uint64_t spread = value;
#pragma unroll
        for (unsigned step = kSteps; step-- > 0;)
          spread = move_up<uint64_t>(spread, half<uint64_t>(part.moves[step], i), step);
        spread = (spread & half<uint64_t>(part.keep, i)) | half<uint64_t>(part.bitval, i);
        if (!(take.bits >> i & 1)) spread = value;
        out[2 * i] = static_cast<uint32_t>(spread);
        out[2 * i + 1] = static_cast<uint32_t>(spread >> 32);
      }
    } else {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t value = W == 16 ? two_chunks(take, word, start, i) : chunk(take, word, start, i);
        uint32_t spread = value;
#pragma unroll
        for (unsigned step = kSteps; step-- > 0;) {
          const uint4 m = part.moves[step];
          const uint32_t moves = i == 0 ? m.x : i == 1 ? m.y : i == 2 ? m.z : m.w;
          spread = move_up<uint32_t>(spread, moves, step);
        }
        spread = (spread & keep[i]) | bitval[i];
        if (W == 16) {
          const uint32_t two = take.bits >> 2 * i;
          const uint32_t takes_part = (two & 1 ? 0xFFFFu : 0) | (two & 2 ? 0xFFFF0000u : 0);
          out[i] = (spread & takes_part) | (value & ~takes_part);
        } else {
          out[i] = take.bits >> i & 1 ? spread : value;
        }
      }
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
  }

  // The stored bytes of an encoded row of which all chunks leave out `saved` bits.
  __device__ __forceinline__ uint32_t size_of(uint32_t saved) const {
    return head_bytes_ + (num_chunks_ - saved / W) * kUnit;
  }

  // Whether an encoded row of `size` bytes is what its head announces, and its padding is zero. `last_head`,
  // `last`: the last word of the head, and of the row. As many bits of it as are left out beyond whole words
  // are not used.
  __device__ __forceinline__ bool well_formed(uint32_t size, uint32_t saved, Wide last_head,
                                              Wide last) const {
    const Wide one = 1;
    const Wide beyond = ~(((one << (num_chunks_ - 1) % W) << 1) - 1);  // none where all of a word is used
    const Wide unused = (one << saved % W) - 1;
    return ((last_head & beyond) | (last & unused)) == 0 && size == size_of(saved);
  }

  // A stored word: W bits at a multiple of as many.
  static __device__ __forceinline__ Wide stored_word(const uint8_t* at) {
    if (W == 16) return *reinterpret_cast<const uint16_t*>(at);
    return *reinterpret_cast<const Wide*>(at);
  }

 private:
  __device__ __forceinline__ uint32_t valid(uint32_t at) const {
    const uint32_t chunk = at * kChunks, left = num_chunks_ > chunk ? num_chunks_ - chunk : 0;
    return (1u << (left < kChunks ? left : kChunks)) - 1;
  }

  static __device__ __forceinline__ uint32_t planes(uint32_t row_bytes) {
    const uint32_t pieces = (row_bytes + kPieceBytes - 1) / kPieceBytes;
    return (pieces ? pieces : 1) * kPieceBytes;
  }

  // 0xFF in each byte whose bit is set, of four.
  static __device__ __forceinline__ uint32_t bytes_of(uint32_t bits) {
    return (bits * 0x00204081u & 0x01010101u) * 0xFFu;
  }

  static __device__ __forceinline__ void select(const Part& part, uint32_t bits, Take& take) {
    take.bits = bits;
    take.saved[0] = part.saved[0] & bytes_of(bits & 15);
    if (W == 16) take.saved[W == 16 ? 1 : 0] = part.saved[W == 16 ? 1 : 0] & bytes_of(bits >> 4);
  }

  // Byte i: the bits left out by chunks 0 to i of the first four, at most 128.
  static __device__ __forceinline__ uint32_t sums(const Take& take) { return take.saved[0] * 0x01010101u; }

  // The same of the last four; byte 3 is the lane's sum.
  static __device__ __forceinline__ uint32_t sums_of_last(const Take& take) {
    const uint32_t first = sums(take);
    return W == 16 ? (take.saved[W == 16 ? 1 : 0] + (first >> 24)) * 0x01010101u : first;
  }

  template <typename Word>
  static __device__ __forceinline__ Word half(uint4 value, unsigned i) {
    return i ? static_cast<Word>(value.w) << 32 | value.z : static_cast<Word>(value.y) << 32 | value.x;
  }

  // Chunk i at the low end of 32 bits.
  template <typename Words>
  static __device__ __forceinline__ uint32_t chunk(const Take& take, const Words& word, uint32_t start,
                                                   unsigned i) {
    const uint32_t before = i ? sums(take) >> 8 * (i - 1) & 0xFF : 0;
    const uint32_t bit = start + 32 * i - before, k = bit >> 5;
    const uint32_t stream = __funnelshift_l(word(k + 1), word(k), bit);
    return __funnelshift_r(stream, 0, take.saved[0] >> 8 * i);  // a chunk of no bits: whatever, keep is 0
  }

  // Chunks 2 i and 2 i + 1, each at the low end of its half.
  template <typename Words>
  static __device__ __forceinline__ uint32_t two_chunks(const Take& take, const Words& word, uint32_t start,
                                                        unsigned i) {
    const uint32_t saved = take.saved[i / 2 & (W == 16)], at = 16 * (i % 2);
    const uint32_t upto = i < 2 ? sums(take) : sums_of_last(take);
    uint32_t before = 0;
    if (i == 1) before = upto >> 8 & 0xFF;
    if (i == 2) before = sums(take) >> 24;
    if (i == 3) before = upto >> 8 & 0xFF;
    const uint32_t bit = start + 32 * i - before, k = bit >> 5;
    const uint32_t stream = __funnelshift_l(swap_halves(word(k + 1)), swap_halves(word(k)), bit);
    const uint32_t low = saved >> at & 0xFF, high = saved >> (at + 8) & 0xFF;
    const uint32_t first = __funnelshift_r(stream, 0, 16 + low);
    const uint32_t second = __funnelshift_r(stream << (16 - low), 0, 16 + high);
    return __byte_perm(first, second, 0x5410);
  }

  static __device__ __forceinline__ uint32_t swap_halves(uint32_t word) {
    return __byte_perm(word, 0, 0x1032);
  }

  const uint8_t* table_;
  uint32_t num_chunks_, head_bytes_, plane_bytes_;
};

}  // namespace gnn_ibp
