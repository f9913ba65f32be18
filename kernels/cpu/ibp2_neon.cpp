// Row format version 2 by NEON: 16 chunks at a time.
#include "cpu/simd_level.h"

#ifdef GNN_IBP_NEON
#include <arm_neon.h>

#define GNN_IBP_TARGET
#define GNN_IBP_INLINE __attribute__((always_inline)) inline
#include "cpu/ibp2_vector_block.h"

namespace gnn_ibp {
namespace {

// For every byte and each of its eight bits: how many ones stand below it, where it is a one; where not, a
// number beyond those of sixteen bits.
struct RanksOfByte {
  uint64_t ranks[256];
};
constexpr RanksOfByte kRanksOfByte = [] {
  RanksOfByte made{};
  for (unsigned byte = 0; byte < 256; ++byte)
    for (uint64_t bit = 0, rank = 0; bit < 8; ++bit)
      made.ranks[byte] |= (byte >> bit & 1 ? rank++ : 0x80) << 8 * bit;
  return made;
}();

// Sixteen bytes, as `at` gives them.
struct Sixteen {
  template <typename At>
  explicit constexpr Sixteen(const At& at) : bytes() {
    for (unsigned i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(at(i));
  }
  alignas(16) uint8_t bytes[16];
};

struct NeonLanes {
  using Vector = uint8x16_t;
  using Mask = uint16_t;
  using Count = int16x8_t;
  static constexpr size_t kLanes = 16;

  GNN_IBP_INLINE static Vector load(const void* at) { return vld1q_u8(static_cast<const uint8_t*>(at)); }
  GNN_IBP_INLINE static void store(void* at, Vector v) { vst1q_u8(static_cast<uint8_t*>(at), v); }
  GNN_IBP_INLINE static Vector bytes(uint8_t x) { return vdupq_n_u8(x); }
  GNN_IBP_INLINE static Vector words(uint16_t x) { return of_words(vdupq_n_u16(x)); }
  GNN_IBP_INLINE static Count count(unsigned n) { return vdupq_n_s16(static_cast<int16_t>(n)); }

  GNN_IBP_INLINE static Vector add8(Vector v, Vector w) { return vaddq_u8(v, w); }
  GNN_IBP_INLINE static Vector add(Vector v, Vector w) {
    return of_words(vaddq_u16(to_words(v), to_words(w)));
  }
  GNN_IBP_INLINE static Vector shift_left(Vector v, Count n) { return of_words(vshlq_u16(to_words(v), n)); }
  GNN_IBP_INLINE static Vector shift_right(Vector v, Count n) { return shift_left(v, vnegq_s16(n)); }
  GNN_IBP_INLINE static Vector low_product(Vector v, Vector w) {
    return of_words(vmulq_u16(to_words(v), to_words(w)));
  }
  GNN_IBP_INLINE static Vector high_product(Vector v, Vector w) {
    const uint32x4_t low = vmull_u16(vget_low_u16(to_words(v)), vget_low_u16(to_words(w)));
    const uint32x4_t high = vmull_high_u16(to_words(v), to_words(w));
    return of_words(vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high)));
  }

  using Table = uint8x16x2_t;
  GNN_IBP_INLINE static Table table(const uint8_t* at) { return {{vld1q_u8(at), vld1q_u8(at + 16)}}; }
  GNN_IBP_INLINE static Vector look_up(const Table& table, Vector index) {
    return vqtbl2q_u8(table, index & bytes(31));
  }

  GNN_IBP_INLINE static Mask links(Vector v) {
    static constexpr Sixteen kBits([](unsigned i) { return 1u << i % 8; });
    const uint8x16_t ones = tops(v) & load(kBits.bytes);
    return static_cast<Mask>(vaddv_u8(vget_low_u8(ones)) | vaddv_u8(vget_high_u8(ones)) << 8);
  }
  GNN_IBP_INLINE static Vector choose(Vector links, Vector yes, Vector no) {
    return vbslq_u8(tops(links), yes, no);
  }

  GNN_IBP_INLINE static Vector window(const uint8_t* at) { return load(at); }
  GNN_IBP_INLINE static Vector pick(Vector window, Vector places) { return vqtbl1q_u8(window, places); }

  template <unsigned Bits>
  GNN_IBP_INLINE static Vector fields(const uint8_t* stream, uint64_t at, Mask mask) {
    // The first sixteen fields of the stream, of which the lanes then take those of their ranks.
    const uint64x2_t window = vdupq_n_u64(low_bits_at(stream, at));
    const uint8x8_t low = unpacked<Bits, 0>(vreinterpretq_u8_u64(window));
    const uint8x8_t high = unpacked<Bits, 8>(vreinterpretq_u8_u64(window));
    const uint64_t below = static_cast<uint64_t>(std::popcount(mask & 0xFFu));
    const uint64_t of_high = kRanksOfByte.ranks[mask >> 8] + below * 0x0101010101010101u;
    const uint64x2_t ranks = {kRanksOfByte.ranks[mask & 0xFF], of_high};
    return vqtbl1q_u8(vcombine_u8(low, high), vreinterpretq_u8_u64(ranks));
  }

  // One register is unpacked to chunks in order.
  template <size_t S>
  GNN_IBP_INLINE static Vector in_order_of_tops(Vector v) {
    return v;
  }
  GNN_IBP_INLINE static Vector words_in_order_of_tops(const uint8_t* at) { return load(at); }

  GNN_IBP_INLINE static Vector low_half8(Vector v, Vector w) { return vzip1q_u8(v, w); }
  GNN_IBP_INLINE static Vector high_half8(Vector v, Vector w) { return vzip2q_u8(v, w); }
  GNN_IBP_INLINE static Vector low_half16(Vector v, Vector w) {
    return of_words(vzip1q_u16(to_words(v), to_words(w)));
  }
  GNN_IBP_INLINE static Vector high_half16(Vector v, Vector w) {
    return of_words(vzip2q_u16(to_words(v), to_words(w)));
  }
  GNN_IBP_INLINE static Vector low_half32(Vector v, Vector w) {
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(v), vreinterpretq_u32_u8(w)));
  }
  GNN_IBP_INLINE static Vector high_half32(Vector v, Vector w) {
    return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(v), vreinterpretq_u32_u8(w)));
  }

  template <size_t S, unsigned LowBytes>
  GNN_IBP_INLINE static Vector low_bytes(const uint8_t* at) {
    static constexpr Sixteen kLow(
        [](unsigned i) { return i % S < LowBytes ? i / S * LowBytes + i % S : 255; });
    return vqtbl1q_u8(load(at), load(kLow.bytes));
  }

 private:
  GNN_IBP_INLINE static uint16x8_t to_words(Vector v) { return vreinterpretq_u16_u8(v); }
  GNN_IBP_INLINE static Vector of_words(uint16x8_t v) { return vreinterpretq_u8_u16(v); }

  // Bytes of ones where the highest bit is 1.
  GNN_IBP_INLINE static Vector tops(Vector v) {
    return vreinterpretq_u8_s8(vshrq_n_s8(vreinterpretq_s8_u8(v), 7));
  }

  // Eight fields of the window, from field First on, a byte each.
  template <unsigned Bits, unsigned First>
  GNN_IBP_INLINE static uint8x8_t unpacked(Vector window) {
    static constexpr Sixteen kPlaces([](unsigned i) { return (First + i / 2) * Bits / 8 + i % 2; });
    // Of a word only the lower byte tells how far; below 0 it is to the right.
    static constexpr Sixteen kDown([](unsigned i) { return i % 2 ? 0 : 0x100 - (First + i / 2) * Bits % 8; });
    const uint16x8_t pairs = to_words(pick(window, load(kPlaces.bytes)));
    const int16x8_t down = vreinterpretq_s16_u8(load(kDown.bytes));
    return vmovn_u16(vshlq_u16(pairs, down)) & vdup_n_u8((1u << Bits) - 1);
  }
};

template <typename Word>
using NeonBlock = Ibp2VectorBlock<Word, NeonLanes>;

}  // namespace

template <typename Word>
Ibp2Level<Word> ibp2_neon() {
  return Ibp2Rows<Word, NeonBlock>::level(NeonLanes::kLanes);
}

template Ibp2Level<uint8_t> ibp2_neon();
template Ibp2Level<uint16_t> ibp2_neon();
template Ibp2Level<uint32_t> ibp2_neon();
template Ibp2Level<uint64_t> ibp2_neon();

}  // namespace gnn_ibp
#endif
