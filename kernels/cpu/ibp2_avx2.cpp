// Row format version 2 by AVX2 and BMI2: 32 chunks at a time.
#include "cpu/simd_level.h"

#ifdef GNN_IBP_X86
#include <immintrin.h>

#define GNN_IBP_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define GNN_IBP_INLINE GNN_IBP_TARGET __attribute__((always_inline)) inline
#include "cpu/ibp2_vector_block.h"

namespace gnn_ibp {
namespace {

struct Avx2Lanes {
  using Vector = __m256i;
  using Mask = uint32_t;
  using Count = __m128i;
  static constexpr size_t kLanes = 32;

  GNN_IBP_INLINE static Vector load(const void* at) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(at));
  }
  GNN_IBP_INLINE static void store(void* at, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(at), v); }
  GNN_IBP_INLINE static Vector bytes(uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  GNN_IBP_INLINE static Vector words(uint16_t x) { return _mm256_set1_epi16(static_cast<int16_t>(x)); }
  GNN_IBP_INLINE static Count count(unsigned n) { return _mm_cvtsi32_si128(static_cast<int>(n)); }

  GNN_IBP_INLINE static Vector add8(Vector v, Vector w) { return _mm256_add_epi8(v, w); }
  GNN_IBP_INLINE static Vector add(Vector v, Vector w) { return _mm256_add_epi16(v, w); }
  GNN_IBP_INLINE static Vector shift_left(Vector v, Count n) { return _mm256_sll_epi16(v, n); }
  GNN_IBP_INLINE static Vector shift_right(Vector v, Count n) { return _mm256_srl_epi16(v, n); }
  GNN_IBP_INLINE static Vector low_product(Vector v, Vector w) { return _mm256_mullo_epi16(v, w); }
  GNN_IBP_INLINE static Vector high_product(Vector v, Vector w) { return _mm256_mulhi_epu16(v, w); }

  // One register for the lower entries, one for the upper ones.
  struct Table {
    Vector lower, upper;
  };
  GNN_IBP_INLINE static Table table(const uint8_t* at) { return {window(at), window(at + 16)}; }
  GNN_IBP_INLINE static Vector look_up(const Table& table, Vector index) {
    const Vector is_upper = _mm256_slli_epi16(index, 3);  // bit 4 to the top of its byte
    return choose(is_upper, pick(table.upper, index), pick(table.lower, index));
  }

  GNN_IBP_INLINE static Mask links(Vector v) { return static_cast<Mask>(_mm256_movemask_epi8(v)); }
  GNN_IBP_INLINE static Vector choose(Vector links, Vector yes, Vector no) {
    return _mm256_blendv_epi8(no, yes, links);
  }

  // Sixteen bytes, twice.
  GNN_IBP_INLINE static Vector window(const uint8_t* at) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  GNN_IBP_INLINE static Vector pick(Vector window, Vector places) {
    return _mm256_shuffle_epi8(window, places);
  }

  template <unsigned Bits>
  GNN_IBP_INLINE static Vector fields(const uint8_t* stream, uint64_t at, Mask mask) {
    if constexpr (Bits == 2) {
      return pairs(stream, at, mask);
    } else {
      return nibbles<Bits>(stream, at, mask);
    }
  }

  template <size_t S>
  GNN_IBP_INLINE static Vector in_order_of_tops(Vector v) {
    if constexpr (S == 4) return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    if constexpr (S == 8) {
      const __m128i pairs = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
      v = _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(pairs));
    }
    return _mm256_permute4x64_epi64(v, 0xD8);
  }
  GNN_IBP_INLINE static Vector words_in_order_of_tops(const uint8_t* at) {
    return _mm256_permute4x64_epi64(load(at), 0xD8);
  }

  GNN_IBP_INLINE static Vector low_half8(Vector v, Vector w) { return _mm256_unpacklo_epi8(v, w); }
  GNN_IBP_INLINE static Vector high_half8(Vector v, Vector w) { return _mm256_unpackhi_epi8(v, w); }
  GNN_IBP_INLINE static Vector low_half16(Vector v, Vector w) { return _mm256_unpacklo_epi16(v, w); }
  GNN_IBP_INLINE static Vector high_half16(Vector v, Vector w) { return _mm256_unpackhi_epi16(v, w); }
  GNN_IBP_INLINE static Vector low_half32(Vector v, Vector w) { return _mm256_unpacklo_epi32(v, w); }
  GNN_IBP_INLINE static Vector high_half32(Vector v, Vector w) { return _mm256_unpackhi_epi32(v, w); }

  template <size_t S, unsigned LowBytes>
  GNN_IBP_INLINE static Vector low_bytes(const uint8_t* at) {
    alignas(16) int8_t places[16];
    for (unsigned i = 0; i < 16; ++i)
      places[i] = static_cast<int8_t>(i % S < LowBytes ? i / S * LowBytes + i % S : 0x80);
    const auto* half = reinterpret_cast<const __m128i*>(at);
    const auto* other = reinterpret_cast<const __m128i*>(at + 16 / S * LowBytes);
    return pick(_mm256_loadu2_m128i(other, half), window(reinterpret_cast<const uint8_t*>(places)));
  }

 private:
  // Fields of two bits: all in one word.
  GNN_IBP_INLINE static Vector pairs(const uint8_t* stream, uint64_t at, Mask mask) {
    const uint64_t places = _pdep_u64(mask, 0x5555555555555555u) * 3;
    const bool are_few = _mm_popcnt_u32(mask) <= 28;
    const uint64_t packed = _pdep_u64(are_few ? low_bits_at(stream, at) : low_word_at(stream, at), places);
    const Vector four_each =
        _mm256_shuffle_epi8(_mm256_set1_epi64x(static_cast<int64_t>(packed)),
                            _mm256_setr_epi8(-1, 0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4,
                                             -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7));
    const Vector two_each = four_each & _mm256_set1_epi32(static_cast<int>(0xF0000F00));
    // Their upper halves: the lower field at the lower end, the other one six bits up.
    return high_product(two_each, _mm256_set1_epi32(65 << 20 | 65 << 8)) & bytes(3);
  }

  // Fields of up to four bits, sixteen in a word.
  template <unsigned Bits>
  GNN_IBP_INLINE static Vector nibbles(const uint8_t* stream, uint64_t at, Mask mask) {
    const uint64_t low = sixteen<Bits>(stream, at, mask & 0xFFFF);
    at += Bits * static_cast<unsigned>(_mm_popcnt_u32(mask & 0xFFFF));
    const uint64_t high = sixteen<Bits>(stream, at, mask >> 16);
    const __m128i both = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
    const Vector two_each = _mm256_cvtepu8_epi16(both);
    return (two_each | _mm256_slli_epi16(two_each, 4)) & bytes(0x0F);
  }

  template <unsigned Bits>
  GNN_IBP_INLINE static uint64_t sixteen(const uint8_t* stream, uint64_t at, unsigned mask) {
    const uint64_t places = _pdep_u64(mask, 0x1111111111111111u) * ((1u << Bits) - 1);
    return _pdep_u64(low_bits_at(stream, at), places);
  }
};

template <typename Word>
using Avx2Block = Ibp2VectorBlock<Word, Avx2Lanes>;

}  // namespace

template <typename Word>
Ibp2Level<Word> ibp2_avx2() {
  return Ibp2Rows<Word, Avx2Block>::level(Avx2Lanes::kLanes);
}

template Ibp2Level<uint8_t> ibp2_avx2();
template Ibp2Level<uint16_t> ibp2_avx2();
template Ibp2Level<uint32_t> ibp2_avx2();
template Ibp2Level<uint64_t> ibp2_avx2();

}  // namespace gnn_ibp
#endif
