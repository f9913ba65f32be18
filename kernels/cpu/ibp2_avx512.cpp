// Row format version 2 by AVX-512: 64 chunks at a time. Fields are unpacked as they lie in the stream
// (VBMI), then moved to the chunks they belong to (VBMI2).
#include "cpu/simd_level.h"

#ifdef GNN_IBP_X86
#ifdef GNN_IBP_EMULATED_AVX512  // a test of these very lines on a processor without AVX-512
#include "emulated_avx512.h"
#define GNN_IBP_TARGET __attribute__((target("avx2")))
#else
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC warns of its own headers' undefined registers
#pragma GCC diagnostic ignored "-Wuninitialized"
#define GNN_IBP_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
#endif
#define GNN_IBP_INLINE GNN_IBP_TARGET __attribute__((always_inline)) inline
#include "cpu/ibp2_vector_block.h"

namespace gnn_ibp {
namespace {

// The places of 64 bytes, those that `at` gives.
struct Places {
  template <typename At>
  explicit constexpr Places(const At& at) : bytes() {
    for (unsigned i = 0; i < 64; ++i) bytes[i] = static_cast<uint8_t>(at(i));
  }
  alignas(64) uint8_t bytes[64];
};

struct Avx512Lanes {
  using Vector = __m512i;
  using Mask = uint64_t;
  using Count = __m128i;
  static constexpr size_t kLanes = 64;

  GNN_IBP_INLINE static Vector load(const void* at) { return _mm512_loadu_si512(at); }
  GNN_IBP_INLINE static void store(void* at, Vector v) { _mm512_storeu_si512(at, v); }
  GNN_IBP_INLINE static Vector bytes(uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  GNN_IBP_INLINE static Vector words(uint16_t x) { return _mm512_set1_epi16(static_cast<int16_t>(x)); }
  GNN_IBP_INLINE static Count count(unsigned n) { return _mm_cvtsi32_si128(static_cast<int>(n)); }

  GNN_IBP_INLINE static Vector add8(Vector v, Vector w) { return _mm512_add_epi8(v, w); }
  GNN_IBP_INLINE static Vector add(Vector v, Vector w) { return _mm512_add_epi16(v, w); }
  GNN_IBP_INLINE static Vector shift_left(Vector v, Count n) { return _mm512_sll_epi16(v, n); }
  GNN_IBP_INLINE static Vector shift_right(Vector v, Count n) { return _mm512_srl_epi16(v, n); }
  GNN_IBP_INLINE static Vector low_product(Vector v, Vector w) { return _mm512_mullo_epi16(v, w); }
  GNN_IBP_INLINE static Vector high_product(Vector v, Vector w) { return _mm512_mulhi_epu16(v, w); }

  using Table = Vector;
  GNN_IBP_INLINE static Table table(const uint8_t* at) { return window(at); }
  GNN_IBP_INLINE static Vector look_up(Table table, Vector index) { return pick(table, index); }

  GNN_IBP_INLINE static Mask links(Vector v) { return _mm512_movepi8_mask(v); }
  GNN_IBP_INLINE static Vector choose(Vector links, Vector yes, Vector no) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(links), no, yes);
  }

  // 32 bytes, twice.
  GNN_IBP_INLINE static Vector window(const uint8_t* at) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  GNN_IBP_INLINE static Vector pick(Vector window, Vector places) {
    return _mm512_permutexvar_epi8(places, window);
  }

  template <unsigned Bits>
  GNN_IBP_INLINE static Vector fields(const uint8_t* stream, uint64_t at, Mask mask) {
    static constexpr Places kEight([](unsigned i) { return i / 8 * Bits + i % 8; });  // fields in 8 bytes
    constexpr uint64_t kOne = 0x0101010101010101u, kFirst = 0x0706050403020100u;
    const Vector eights = pick(window(stream + at / 8), load(kEight.bytes));
    const Vector shifts = _mm512_set1_epi64(static_cast<int64_t>(kFirst * Bits + kOne * (at % 8)));
    const Vector fields = _mm512_multishift_epi64_epi8(shifts, eights) & bytes((1u << Bits) - 1);
    return _mm512_maskz_expand_epi8(mask, fields);
  }

  template <size_t S>
  GNN_IBP_INLINE static Vector in_order_of_tops(Vector v) {
    static constexpr Places kChunks([](unsigned i) { return ibp2_chunk_at(i, kLanes, S); });
    return pick(v, load(kChunks.bytes));
  }
  GNN_IBP_INLINE static Vector words_in_order_of_tops(const uint8_t* at) {
    static constexpr Places kWords(
        [](unsigned i) { return 2 * ibp2_chunk_at(i / 16 * 16 + i % 16 / 2, kLanes, 4) + i % 2; });
    return pick(load(at), load(kWords.bytes));
  }

  GNN_IBP_INLINE static Vector low_half8(Vector v, Vector w) { return _mm512_unpacklo_epi8(v, w); }
  GNN_IBP_INLINE static Vector high_half8(Vector v, Vector w) { return _mm512_unpackhi_epi8(v, w); }
  GNN_IBP_INLINE static Vector low_half16(Vector v, Vector w) { return _mm512_unpacklo_epi16(v, w); }
  GNN_IBP_INLINE static Vector high_half16(Vector v, Vector w) { return _mm512_unpackhi_epi16(v, w); }
  GNN_IBP_INLINE static Vector low_half32(Vector v, Vector w) { return _mm512_unpacklo_epi32(v, w); }
  GNN_IBP_INLINE static Vector high_half32(Vector v, Vector w) { return _mm512_unpackhi_epi32(v, w); }

  template <size_t S, unsigned LowBytes>
  GNN_IBP_INLINE static Vector low_bytes(const uint8_t* at) {
    static constexpr Places kLow(
        [](unsigned i) { return i / S * LowBytes + std::min<size_t>(i % S, LowBytes); });
    constexpr uint64_t kOnes = [] {
      uint64_t ones = 0;
      for (unsigned i = 0; i < 64; ++i) ones |= uint64_t{i % S < LowBytes} << i;
      return ones;
    }();
    return _mm512_maskz_permutexvar_epi8(kOnes, load(kLow.bytes), load(at));
  }
};

template <typename Word>
using Avx512Block = Ibp2VectorBlock<Word, Avx512Lanes>;

}  // namespace

template <typename Word>
Ibp2Level<Word> ibp2_avx512() {
  return Ibp2Rows<Word, Avx512Block>::level(Avx512Lanes::kLanes);
}

template Ibp2Level<uint8_t> ibp2_avx512();
template Ibp2Level<uint16_t> ibp2_avx512();
template Ibp2Level<uint32_t> ibp2_avx512();
template Ibp2Level<uint64_t> ibp2_avx512();

}  // namespace gnn_ibp
#endif
