// The AVX-512 instructions that the *_avx512.cpp use, in plain C++ and under their own names, so that its
// very lines run on any x86-64 with AVX2. Inside of namespace gnn_ibp these names hide those of
// <immintrin.h>.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

// Some are macros where nothing is optimised.
#undef _mm512_alignr_epi32
#undef _mm512_alignr_epi64
#undef _mm512_extracti32x4_epi32
#undef _mm512_mask_blend_epi16
#undef _mm512_mask_blend_epi8
#undef _mm512_slli_epi32
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32
#undef _mm512_srli_epi64

namespace gnn_ibp {

struct Emulated512 {
  uint8_t bytes[64];
};
using __m512i = Emulated512;

template <typename T>
T lane(const __m512i& x, unsigned i) {
  T value;
  std::memcpy(&value, x.bytes + i * sizeof(T), sizeof(T));
  return value;
}

// The register whose lane i of type T is of(i).
template <typename T, typename Of>
__m512i lanes(const Of& of) {
  __m512i made;
  for (unsigned i = 0; i < 64 / sizeof(T); ++i) {
    const T value = static_cast<T>(of(i));
    std::memcpy(made.bytes + i * sizeof(T), &value, sizeof(T));
  }
  return made;
}

// The upper half of (a:b) << (count modulo the width).
template <typename T>
T funnel(T a, T b, T count) {
  constexpr unsigned W = 8 * sizeof(T);
  const unsigned by = static_cast<unsigned>(count % W);
  return by == 0 ? a : static_cast<T>(static_cast<T>(a << by) | static_cast<T>(b >> (W - by)));
}

// The bytes of `source` as numbers of type T; 0 where `mask` has none.
template <typename T, typename Bytes>
__m512i widened(uint64_t mask, const Bytes* source) {
  uint8_t bytes[sizeof(Bytes)];
  std::memcpy(bytes, source, sizeof(Bytes));
  return lanes<T>([&](unsigned i) { return mask >> i & 1 ? bytes[i] : 0; });
}

// (a:b) shifted to the right by lanes, the lower half of it.
template <typename T>
__m512i aligned(const __m512i& a, const __m512i& b, unsigned by) {
  constexpr unsigned kLanes = 64 / sizeof(T);
  return lanes<T>(
      [&](unsigned i) { return i + by < kLanes ? lane<T>(b, i + by) : lane<T>(a, i + by - kLanes); });
}

// The count of a shift whose lanes share it.
inline uint64_t places(const __m128i& by) { return static_cast<uint64_t>(_mm_cvtsi128_si64(by)); }

#define EMULATED(name, T, arguments, expression)                             \
  inline __m512i name arguments {                                            \
    return lanes<T>([&](unsigned i) { return static_cast<T>(expression); }); \
  }
#define A(T) lane<T>(a, i)
#define B(T) lane<T>(b, i)
#define ONE (const __m512i& a, unsigned by)
#define BY (const __m512i& a, const __m128i& by)
#define TWO (const __m512i& a, const __m512i& b)

// What there is for lanes of each width.
#define EMULATED_WIDTH(n, T)                                                                       \
  EMULATED(_mm512_set1_epi##n, T, (int##n##_t x), x + 0 * i)                                       \
  EMULATED(_mm512_add_epi##n, T, TWO, A(T) + B(T))                                                 \
  EMULATED(_mm512_sub_epi##n, T, TWO, A(T) - B(T))                                                 \
  EMULATED(_mm512_srli_epi##n, T, ONE, by < n ? A(T) >> by : 0)                                    \
  EMULATED(_mm512_sllv_epi##n, T, TWO, B(T) < n ? A(T) << B(T) : 0)                                \
  EMULATED(_mm512_srlv_epi##n, T, TWO, B(T) < n ? A(T) >> B(T) : 0)                                \
  EMULATED(_mm512_permutexvar_epi##n, T, TWO, lane<T>(b, static_cast<unsigned>(A(T) % (512 / n)))) \
  EMULATED(_mm512_shldv_epi##n, T, (const __m512i& a, const __m512i& b, const __m512i& c),         \
           funnel<T>(A(T), B(T), lane<T>(c, i)))                                                   \
  EMULATED(_mm512_mask_blend_epi##n, T, (uint64_t mask, const __m512i& a, const __m512i& b),       \
           mask >> i & 1 ? B(T) : A(T))                                                            \
  template <typename Bytes>                                                                        \
  __m512i _mm512_maskz_cvtepu8_epi##n(uint64_t mask, const Bytes& source) {                        \
    return widened<T>(mask, &source);                                                              \
  }                                                                                                \
  inline uint64_t _mm512_cmpeq_epi##n##_mask(const __m512i& a, const __m512i& b) {                 \
    uint64_t mask = 0;                                                                             \
    for (unsigned i = 0; i < 512 / n; ++i) mask |= uint64_t{A(T) == B(T)} << i;                    \
    return mask;                                                                                   \
  }

EMULATED_WIDTH(16, uint16_t)
EMULATED_WIDTH(32, uint32_t)
EMULATED_WIDTH(64, uint64_t)

// What there is for bytes, where lanes of the other widths have it above.
EMULATED(_mm512_set1_epi8, uint8_t, (char x), x + 0 * i)
EMULATED(_mm512_add_epi8, uint8_t, TWO, A(uint8_t) + B(uint8_t))
EMULATED(_mm512_permutexvar_epi8, uint8_t, TWO, b.bytes[A(uint8_t) % 64])
EMULATED(_mm512_maskz_permutexvar_epi8, uint8_t, (uint64_t mask, const __m512i& a, const __m512i& b),
         mask >> i & 1 ? b.bytes[A(uint8_t) % 64] : 0)
EMULATED(_mm512_mask_blend_epi8, uint8_t, (uint64_t mask, const __m512i& a, const __m512i& b),
         mask >> i & 1 ? B(uint8_t) : A(uint8_t))

EMULATED(_mm512_sll_epi16, uint16_t, BY, places(by) < 16 ? A(uint16_t) << places(by) : 0)
EMULATED(_mm512_srl_epi16, uint16_t, BY, places(by) < 16 ? A(uint16_t) >> places(by) : 0)
EMULATED(_mm512_mullo_epi16, uint16_t, TWO, unsigned{A(uint16_t)} * B(uint16_t))
EMULATED(_mm512_mulhi_epu16, uint16_t, TWO, unsigned{A(uint16_t)} * B(uint16_t) >> 16)
EMULATED(_mm512_slli_epi32, uint32_t, ONE, by < 32 ? A(uint32_t) << by : 0)
EMULATED(_mm512_and_si512, uint64_t, TWO, A(uint64_t) & B(uint64_t))
EMULATED(_mm512_or_si512, uint64_t, TWO, A(uint64_t) | B(uint64_t))
EMULATED(_mm512_madd_epi16, int32_t, TWO,
         lane<int16_t>(a, 2 * i) * lane<int16_t>(b, 2 * i) +
             lane<int16_t>(a, 2 * i + 1) * lane<int16_t>(b, 2 * i + 1))
EMULATED(_mm512_maskz_loadu_epi8, uint8_t, (uint64_t mask, const uint8_t* at), mask >> i & 1 ? at[i] : 0)

#undef EMULATED_WIDTH
#undef EMULATED
#undef ONE
#undef BY
#undef TWO

inline __m512i _mm512_loadu_si512(const void* at) {
  __m512i made;
  std::memcpy(made.bytes, at, 64);
  return made;
}

inline void _mm512_storeu_si512(void* at, const __m512i& a) { std::memcpy(at, a.bytes, 64); }

inline __m512i _mm512_setzero_si512() { return {}; }

inline __m512i _mm512_alignr_epi32(const __m512i& a, const __m512i& b, unsigned by) {
  return aligned<uint32_t>(a, b, by);
}

inline __m512i _mm512_alignr_epi64(const __m512i& a, const __m512i& b, unsigned by) {
  return aligned<uint64_t>(a, b, by);
}

inline __m512i operator&(const __m512i& a, const __m512i& b) { return _mm512_and_si512(a, b); }
inline __m512i operator|(const __m512i& a, const __m512i& b) { return _mm512_or_si512(a, b); }
inline __m512i operator^(const __m512i& a, const __m512i& b) {
  return lanes<uint64_t>([&](unsigned i) { return A(uint64_t) ^ B(uint64_t); });
}

inline uint64_t _mm512_movepi8_mask(const __m512i& a) {
  uint64_t mask = 0;
  for (unsigned i = 0; i < 64; ++i) mask |= uint64_t{A(uint8_t)} >> 7 << i;
  return mask;
}

inline __m512i _mm512_broadcast_i64x4(const __m256i& a) {
  __m512i made;
  std::memcpy(made.bytes, &a, 32);
  std::memcpy(made.bytes + 32, &a, 32);
  return made;
}

// The bytes of a, in order, where the mask has ones; 0 elsewhere.
inline __m512i _mm512_maskz_expand_epi8(uint64_t mask, const __m512i& a) {
  unsigned num = 0;
  return lanes<uint8_t>([&](unsigned i) { return mask >> i & 1 ? a.bytes[num++] : 0; });
}

// Of each lane of b, rotated by each byte of a's, the lowest byte.
inline __m512i _mm512_multishift_epi64_epi8(const __m512i& a, const __m512i& b) {
  return lanes<uint8_t>([&](unsigned i) {
    const uint64_t of = lane<uint64_t>(b, i / 8);
    return funnel<uint64_t>(of, of, 64 - A(uint8_t) % 64);
  });
}

// In each 16 bytes, the lanes of a and b in turns: of their lower halves from 0 on, of their upper ones from
// the middle on.
template <typename T>
__m512i in_turns(const __m512i& a, const __m512i& b, unsigned first) {
  constexpr unsigned kLanes = 16 / sizeof(T);
  return lanes<T>([&](unsigned i) {
    const unsigned from = i / kLanes * kLanes + first * kLanes / 2 + i % kLanes / 2;
    return lane<T>(i % 2 ? b : a, from);
  });
}

#define EMULATED_UNPACK(n)                                                    \
  inline __m512i _mm512_unpacklo_epi##n(const __m512i& a, const __m512i& b) { \
    return in_turns<uint##n##_t>(a, b, 0);                                    \
  }                                                                           \
  inline __m512i _mm512_unpackhi_epi##n(const __m512i& a, const __m512i& b) { \
    return in_turns<uint##n##_t>(a, b, 1);                                    \
  }
EMULATED_UNPACK(8)
EMULATED_UNPACK(16)
EMULATED_UNPACK(32)
#undef EMULATED_UNPACK

inline __m128i _mm512_extracti32x4_epi32(const __m512i& a, int which) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(a.bytes + 16 * which));
}

inline __m512i _mm512_sad_epu8(const __m512i& a, const __m512i& b) {
  return lanes<uint64_t>([&](unsigned i) {
    unsigned sum = 0;
    for (unsigned k = 8 * i; k < 8 * i + 8; ++k)
      sum += a.bytes[k] < b.bytes[k] ? b.bytes[k] - a.bytes[k] : a.bytes[k] - b.bytes[k];
    return sum;
  });
}

#undef A
#undef B

}  // namespace gnn_ibp
