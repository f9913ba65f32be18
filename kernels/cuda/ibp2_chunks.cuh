// A lane's 16 bytes of a row of format version 2: tops out of codes, tails out of the two planes.
//
//   chunk = s (sf bits) | e (E bits) | tail: high plane's bits, low plane's bytes | z zero bits
//
//   e is the sum of base and leaf, at the top of a register, where what is carried beyond E bits is lost.
//   A 16-bit chunk is made in the upper half of a register.
#pragma once

#include "cuda/ibp2_codes.cuh"

namespace gnn_ibp {

// Where the tails of a lane's chunks begin, in bits.
struct TailsAt {
  uint32_t high, low;
};

template <unsigned W>
class Ibp2Chunks {
 public:
  typedef typename Ibp2Word<W>::type Word;
  static constexpr uint32_t kChunks = Ibp2Table<W>::kChunks;

  // The chunks of piece p of `codes`.
  template <typename Codes, typename Words>
  static __device__ __forceinline__ uint4 make(const Ibp2Table<W>& table, const Ibp2Part<W>& part,
                                               const Codes& codes, unsigned p, const Words& words,
                                               TailsAt tails) {
    const Ibp2Numbers& numbers = table.numbers;
    const Word high_mask = (static_cast<Word>(1) << numbers.high_bits) - 1;
    const Word low_mask = (static_cast<Word>(1) << numbers.low_bits) - 1;
    // Up to 28 bits of 32-bit chunks, 14 of 64-bit ones, 56 of 16-bit ones.
    const uint64_t highs = W == 16 ? bits64(words, tails.high) : bits32(words, tails.high);
    const uint64_t lows = W == 16 ? bits64(words, tails.low) : 0;
    const uint32_t raws = codes.raws(p);
    uint32_t raw_at = codes.raw_at(p);
    uint32_t out[4] = {};
#pragma unroll
    for (unsigned i = 0; i < kChunks; ++i) {
      Word top = coded(table, part, codes.code(p, i), i);
      if (raws >> i & 1) {
        top = bits_of<Word>(words, raw_at) << (kBits - numbers.top_bits) >> (kBits - W);
        raw_at += numbers.top_bits;
      }
      const Word low = W == 16 ? static_cast<Word>(lows >> i * numbers.low_bits)
                               : bits_of<Word>(words, tails.low + i * numbers.low_bits);
      const Word high = static_cast<Word>(highs >> i * numbers.high_bits) & high_mask;
      put(out, i, top | (high << numbers.low_bits | (low & low_mask)) << numbers.zero_bits);
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
  }

  // Stores chunk i of those in `made`.
  static __device__ __forceinline__ void store(uint8_t* to, uint4 made, unsigned i) {
    const uint32_t words[4] = {made.x, made.y, made.z, made.w};
    if (W == 16) *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(words[i / 2] >> 16 * (i % 2));
    if (W == 32) *reinterpret_cast<uint32_t*>(to) = words[i % 4];
    if (W == 64) *reinterpret_cast<uint2*>(to) = make_uint2(words[2 * i % 4], words[2 * i % 4 + 1]);
  }

 private:
  static constexpr unsigned kBits = 8 * sizeof(Word);

  // The top of chunk i, all else 0.
  static __device__ __forceinline__ Word coded(const Ibp2Table<W>& table, const Ibp2Part<W>& part,
                                               uint32_t code, unsigned i) {
    const uint32_t sgn = part.place(i) >> 1;  // at kFlips
    const Word sign = static_cast<Word>((code ^ sgn) & kFlips) << (kBits - 7);
    const Word exponent = (base(part.base, i) + table.leaf(code)) >> table.numbers.sign_bits;
    return (exponent ^ sign) >> (kBits - W);
  }

  static __device__ __forceinline__ Word base(uint4 lane, unsigned i) {
    const uint32_t words[4] = {lane.x, lane.y, lane.z, lane.w};
    if (W == 16) return words[i / 2] >> 16 * (i % 2) << 16;
    if (W == 32) return words[i % 4];
    return static_cast<Word>(static_cast<uint64_t>(words[2 * i % 4 + 1]) << 32 | words[2 * i % 4]);
  }

  static __device__ __forceinline__ void put(uint32_t (&out)[4], unsigned i, Word chunk) {
    if (W == 16) {
      out[i / 2] |= static_cast<uint32_t>(chunk) << 16 * (i % 2);
    } else if (W == 32) {
      out[i % 4] = static_cast<uint32_t>(chunk);
    } else {
      out[2 * i % 4] = static_cast<uint32_t>(chunk);
      out[2 * i % 4 + 1] = static_cast<uint32_t>(static_cast<uint64_t>(chunk) >> 32);
    }
  }
};

}  // namespace gnn_ibp
