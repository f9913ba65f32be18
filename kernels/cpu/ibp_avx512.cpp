// Invariant Bit Packing by AVX-512: 64 bytes of chunks at a time. Each lane takes its bits out of a window of
// the payload by one funnel shift (VBMI2), then spreads them over its chunk run by run.
#include "cpu/simd_level.h"

#ifdef GNN_IBP_X86
#ifdef GNN_IBP_EMULATED_AVX512  // a test of these very lines on a processor without AVX-512
#include "emulated_avx512.h"
#define GNN_IBP_TARGET __attribute__((target("avx2")))
#else
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC warns of its own headers' undefined registers
#define GNN_IBP_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))
#endif
#include "cpu/ibp_groups.h"

namespace gnn_ibp {
namespace {

GNN_IBP_TARGET inline __m512i load(const void* at) { return _mm512_loadu_si512(at); }

// Sums of 16 lanes of 32 bits, each with those before it.
GNN_IBP_TARGET inline __m512i prefix_sums32(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

GNN_IBP_TARGET inline __m512i prefix_sums64(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 7));
  x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 6));
  return _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 4));
}

GNN_IBP_TARGET inline uint64_t last32(__m512i x) {
  return static_cast<uint32_t>(_mm_extract_epi32(_mm512_extracti32x4_epi32(x, 3), 3));
}

GNN_IBP_TARGET inline uint64_t last64(__m512i x) {
  return static_cast<uint64_t>(_mm_extract_epi64(_mm512_extracti32x4_epi32(x, 3), 1));
}

// Where each chunk of a group begins, in bits from the first, and how many bits all of them have.
struct Starts {
  __m512i bits;
  uint64_t total;
};

// Lanes of one chunk each. Counts of a funnel shift are taken modulo the width; left() and right() give 0 for
// a shift by the width.
template <typename Word>
struct Lanes;

template <>
struct Lanes<uint16_t> {
  using Mask = __mmask32;
  GNN_IBP_TARGET static __m512i all(unsigned x) { return _mm512_set1_epi16(static_cast<int16_t>(x)); }
  GNN_IBP_TARGET static __m512i bytes(Mask mask, const uint8_t* at) {
    return _mm512_maskz_cvtepu8_epi16(mask, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  GNN_IBP_TARGET static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi16(a, b); }
  GNN_IBP_TARGET static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi16(a, b); }
  GNN_IBP_TARGET static __m512i word_of(__m512i bits) { return _mm512_srli_epi16(bits, 4); }
  GNN_IBP_TARGET static __m512i pick(__m512i from, __m512i lane) {
    return _mm512_permutexvar_epi16(lane, from);
  }
  GNN_IBP_TARGET static __m512i funnel(__m512i high, __m512i low, __m512i count) {
    return _mm512_shldv_epi16(high, low, count);
  }
  GNN_IBP_TARGET static __m512i left(__m512i x, __m512i count) { return _mm512_sllv_epi16(x, count); }
  GNN_IBP_TARGET static __m512i right(__m512i x, __m512i count) { return _mm512_srlv_epi16(x, count); }
  GNN_IBP_TARGET static Mask equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi16_mask(a, b); }
  GNN_IBP_TARGET static __m512i choose(Mask mask, __m512i yes, __m512i no) {
    return _mm512_mask_blend_epi16(mask, no, yes);
  }
  // Neighbours are summed in lanes of 32 bits; the second one begins where the first one ends.
  GNN_IBP_TARGET static Starts starts(__m512i width) {
    const __m512i of_two = _mm512_madd_epi16(width, _mm512_set1_epi16(1));
    const __m512i end = prefix_sums32(of_two);
    const __m512i first = _mm512_sub_epi32(end, of_two);
    const __m512i second = _mm512_slli_epi32(_mm512_add_epi32(first, width), 16);
    return {_mm512_or_si512(first, second), last32(end)};
  }
};

template <>
struct Lanes<uint32_t> {
  using Mask = __mmask16;
  GNN_IBP_TARGET static __m512i all(unsigned x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); }
  GNN_IBP_TARGET static __m512i bytes(Mask mask, const uint8_t* at) {
    return _mm512_maskz_cvtepu8_epi32(mask, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  GNN_IBP_TARGET static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  GNN_IBP_TARGET static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
  GNN_IBP_TARGET static __m512i word_of(__m512i bits) { return _mm512_srli_epi32(bits, 5); }
  GNN_IBP_TARGET static __m512i pick(__m512i from, __m512i lane) {
    return _mm512_permutexvar_epi32(lane, from);
  }
  GNN_IBP_TARGET static __m512i funnel(__m512i high, __m512i low, __m512i count) {
    return _mm512_shldv_epi32(high, low, count);
  }
  GNN_IBP_TARGET static __m512i left(__m512i x, __m512i count) { return _mm512_sllv_epi32(x, count); }
  GNN_IBP_TARGET static __m512i right(__m512i x, __m512i count) { return _mm512_srlv_epi32(x, count); }
  GNN_IBP_TARGET static Mask equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi32_mask(a, b); }
  GNN_IBP_TARGET static __m512i choose(Mask mask, __m512i yes, __m512i no) {
    return _mm512_mask_blend_epi32(mask, no, yes);
  }
  GNN_IBP_TARGET static Starts starts(__m512i width) {
    const __m512i end = prefix_sums32(width);
    return {_mm512_sub_epi32(end, width), last32(end)};
  }
};

template <>
struct Lanes<uint64_t> {
  using Mask = __mmask8;
  GNN_IBP_TARGET static __m512i all(unsigned x) { return _mm512_set1_epi64(x); }
  GNN_IBP_TARGET static __m512i bytes(Mask mask, const uint8_t* at) {
    return _mm512_maskz_cvtepu8_epi64(mask, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  GNN_IBP_TARGET static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
  GNN_IBP_TARGET static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi64(a, b); }
  GNN_IBP_TARGET static __m512i word_of(__m512i bits) { return _mm512_srli_epi64(bits, 6); }
  GNN_IBP_TARGET static __m512i pick(__m512i from, __m512i lane) {
    return _mm512_permutexvar_epi64(lane, from);
  }
  GNN_IBP_TARGET static __m512i funnel(__m512i high, __m512i low, __m512i count) {
    return _mm512_shldv_epi64(high, low, count);
  }
  GNN_IBP_TARGET static __m512i left(__m512i x, __m512i count) { return _mm512_sllv_epi64(x, count); }
  GNN_IBP_TARGET static __m512i right(__m512i x, __m512i count) { return _mm512_srlv_epi64(x, count); }
  GNN_IBP_TARGET static Mask equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi64_mask(a, b); }
  GNN_IBP_TARGET static __m512i choose(Mask mask, __m512i yes, __m512i no) {
    return _mm512_mask_blend_epi64(mask, no, yes);
  }
  GNN_IBP_TARGET static Starts starts(__m512i width) {
    const __m512i end = prefix_sums64(width);
    return {_mm512_sub_epi64(end, width), last64(end)};
  }
};

template <typename Word>
struct Avx512Group {
  using Tables = IbpTables<Word>;
  using Block = IbpBlock<Word>;
  using L = Lanes<Word>;
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t kChunks = 64 / sizeof(Word);

  GNN_IBP_TARGET static uint64_t saved(const Tables& tables, size_t first, uint64_t takes_part) {
    const __m512i saved = _mm512_maskz_loadu_epi8(takes_part, tables.saved.data() + first);
    uint64_t sums[8];
    _mm512_storeu_si512(sums, _mm512_sad_epu8(saved, _mm512_setzero_si512()));
    return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
  }

  GNN_IBP_TARGET static uint64_t participation(const Block& block, size_t j, const uint8_t* chunks) {
    return L::equal(_mm512_and_si512(load(chunks), load(block.mask + j)), load(block.bitval + j));
  }

  GNN_IBP_TARGET static uint64_t decode(const Block& block, size_t j, uint64_t takes_part,
                                        const uint8_t* payload, uint64_t at, uint8_t* chunks) {
    const auto takes = static_cast<typename L::Mask>(takes_part);
    const __m512i saved = L::bytes(takes, block.saved + j);
    const Starts starts = L::starts(L::subtract(L::all(W), saved));
    const __m512i pos = L::add(starts.bits, L::all(at % W));
    const uint8_t* words = payload + at / W * sizeof(Word);
    const __m512i high = L::pick(load(words), L::word_of(pos));
    const __m512i low = L::pick(load(words + sizeof(Word)), L::word_of(pos));
    const __m512i kept = L::right(L::funnel(high, low, pos), saved);
    __m512i chunk = load(block.bitval + j);
    for (size_t run = j, end_of_runs = block.num_runs * kIbpBlock; run < end_of_runs; run += kIbpBlock) {
      const __m512i moved = L::left(kept, load(block.run_up + run));
      chunk = _mm512_or_si512(chunk, _mm512_and_si512(moved, load(block.run_bits + run)));
    }
    _mm512_storeu_si512(chunks, L::choose(takes, chunk, kept));
    return starts.total;
  }
};

}  // namespace

template <typename Word>
IbpLevel<Word> ibp_avx512() {
  const IbpLevel<Word> other = ibp_bmi2<Word>();
  if constexpr (sizeof(Word) == 1) {
    return other;  // pdep takes eight such chunks at once
  } else {
    using Level = Grouped<Word, Avx512Group>;
    return {Level::saved_by_stored, Level::saved_by_row, other.encode, Level::decode};
  }
}

template IbpLevel<uint8_t> ibp_avx512();
template IbpLevel<uint16_t> ibp_avx512();
template IbpLevel<uint32_t> ibp_avx512();
template IbpLevel<uint64_t> ibp_avx512();

}  // namespace gnn_ibp
#endif
