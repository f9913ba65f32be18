// Invariant Bit Packing by AVX2: 32 bytes of chunks at a time. Each lane shifts its bits out of a window of
// the payload, then spreads them over its chunk run by run.
#include "cpu/simd_level.h"

#ifdef GNN_IBP_X86
#include <immintrin.h>

#define GNN_IBP_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "cpu/ibp_groups.h"

namespace gnn_ibp {
namespace {

GNN_IBP_TARGET inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

GNN_IBP_TARGET inline void store(void* at, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(at), value);
}

// value where `mask` has ones, otherwise `other`.
GNN_IBP_TARGET inline __m256i where(__m256i mask, __m256i value, __m256i other) {
  return _mm256_blendv_epi8(other, value, mask);
}

// The upper half filled with the highest lane of the lower one, of W bits; the lower half 0.
template <unsigned W>
GNN_IBP_TARGET inline __m256i carry(__m256i sums) {
  const __m256i low = _mm256_permute2x128_si256(sums, sums, 0x08);
  return W == 64 ? _mm256_unpackhi_epi64(low, low) : _mm256_shuffle_epi32(low, 0xFF);
}

// Sums of 8 lanes of 32 bits, each with those before it.
GNN_IBP_TARGET inline __m256i prefix_sums32(__m256i x) {
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  return _mm256_add_epi32(x, carry<32>(x));
}

GNN_IBP_TARGET inline __m256i prefix_sums64(__m256i x) {
  x = _mm256_add_epi64(x, _mm256_slli_si256(x, 8));
  return _mm256_add_epi64(x, carry<64>(x));
}

// 32 bits of a stream from each of the bits `pos` on, less than 256: window is its first 8 words, next begins
// a word later.
GNN_IBP_TARGET inline __m256i bits_at32(__m256i window, __m256i next, __m256i pos) {
  const __m256i word = _mm256_srli_epi32(pos, 5), shift = _mm256_and_si256(pos, _mm256_set1_epi32(31));
  const __m256i high = _mm256_sllv_epi32(_mm256_permutevar8x32_epi32(window, word), shift);
  const __m256i rest = _mm256_sub_epi32(_mm256_set1_epi32(32), shift);  // a shift by 32 gives 0
  return _mm256_or_si256(high, _mm256_srlv_epi32(_mm256_permutevar8x32_epi32(next, word), rest));
}

GNN_IBP_TARGET inline __m256i bits_at64(__m256i window, __m256i next, __m256i pos) {
  const __m256i word = _mm256_slli_epi64(_mm256_srli_epi64(pos, 6), 1);  // its lower half, as 32-bit words
  const __m256i halves = _mm256_add_epi32(_mm256_or_si256(word, _mm256_slli_epi64(word, 32)),
                                          _mm256_set1_epi64x(int64_t{1} << 32));
  const __m256i shift = _mm256_and_si256(pos, _mm256_set1_epi64x(63));
  const __m256i high = _mm256_sllv_epi64(_mm256_permutevar8x32_epi32(window, halves), shift);
  const __m256i rest = _mm256_sub_epi64(_mm256_set1_epi64x(64), shift);
  return _mm256_or_si256(high, _mm256_srlv_epi64(_mm256_permutevar8x32_epi32(next, halves), rest));
}

// Bits left out of a block of chunks of any width.
template <typename Word>
GNN_IBP_TARGET uint64_t saved_in_block(const IbpTables<Word>& tables, size_t first, uint64_t takes_part) {
  const __m256i byte_of = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  __m256i sums = _mm256_setzero_si256();
  for (size_t j = 0; j < kIbpBlock; j += 32) {
    const __m256i bits = _mm256_set1_epi32(static_cast<int32_t>(takes_part >> j));
    const __m256i bit = _mm256_and_si256(_mm256_shuffle_epi8(bits, byte_of), bit_of);
    const __m256i takes = _mm256_cmpeq_epi8(bit, bit_of);
    const __m256i saved = _mm256_and_si256(takes, load(tables.saved.data() + first + j));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(saved, _mm256_setzero_si256()));
  }
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1));
}

template <typename Word>
struct Avx2Group;

template <>
struct Avx2Group<uint64_t> {
  using Tables = IbpTables<uint64_t>;
  using Block = IbpBlock<uint64_t>;
  static constexpr size_t kChunks = 4;

  GNN_IBP_TARGET static uint64_t saved(const Tables& tables, size_t first, uint64_t takes_part) {
    return saved_in_block(tables, first, takes_part);
  }

  GNN_IBP_TARGET static uint64_t participation(const Block& block, size_t j, const uint8_t* chunks) {
    const __m256i fixed = _mm256_and_si256(load(chunks), load(block.mask + j));
    const __m256i takes = _mm256_cmpeq_epi64(fixed, load(block.bitval + j));
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(takes)));
  }

  GNN_IBP_TARGET static uint64_t decode(const Block& block, size_t j, uint64_t takes_part,
                                        const uint8_t* payload, uint64_t at, uint8_t* chunks) {
    const __m256i lane = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(takes_part));
    const __m256i takes = _mm256_cmpeq_epi64(_mm256_and_si256(bits, lane), lane);
    int32_t saved_of_four;
    std::memcpy(&saved_of_four, block.saved + j, 4);
    const __m256i saved = _mm256_and_si256(takes, _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(saved_of_four)));
    const __m256i width = _mm256_sub_epi64(_mm256_set1_epi64x(64), saved);
    const __m256i end = prefix_sums64(width);
    const __m256i pos = _mm256_add_epi64(_mm256_sub_epi64(end, width), _mm256_set1_epi64x(at % 64));
    const uint8_t* words = payload + at / 64 * 8;
    const __m256i kept = _mm256_srlv_epi64(bits_at64(load(words), load(words + 8), pos), saved);
    __m256i chunk = load(block.bitval + j);
    for (size_t run = j, end_of_runs = block.num_runs * kIbpBlock; run < end_of_runs; run += kIbpBlock) {
      const __m256i moved = _mm256_sllv_epi64(kept, load(block.run_up + run));
      chunk = _mm256_or_si256(chunk, _mm256_and_si256(moved, load(block.run_bits + run)));
    }
    store(chunks, where(takes, chunk, kept));
    return static_cast<uint64_t>(_mm256_extract_epi64(end, 3));
  }
};

template <>
struct Avx2Group<uint32_t> {
  using Tables = IbpTables<uint32_t>;
  using Block = IbpBlock<uint32_t>;
  static constexpr size_t kChunks = 8;

  GNN_IBP_TARGET static uint64_t saved(const Tables& tables, size_t first, uint64_t takes_part) {
    return saved_in_block(tables, first, takes_part);
  }

  GNN_IBP_TARGET static uint64_t participation(const Block& block, size_t j, const uint8_t* chunks) {
    const __m256i fixed = _mm256_and_si256(load(chunks), load(block.mask + j));
    const __m256i takes = _mm256_cmpeq_epi32(fixed, load(block.bitval + j));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(takes)));
  }

  GNN_IBP_TARGET static uint64_t decode(const Block& block, size_t j, uint64_t takes_part,
                                        const uint8_t* payload, uint64_t at, uint8_t* chunks) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i bits = _mm256_set1_epi32(static_cast<int32_t>(takes_part));
    const __m256i takes = _mm256_cmpeq_epi32(_mm256_and_si256(bits, lane), lane);
    const __m128i saved_of_eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block.saved + j));
    const __m256i saved = _mm256_and_si256(takes, _mm256_cvtepu8_epi32(saved_of_eight));
    const __m256i width = _mm256_sub_epi32(_mm256_set1_epi32(32), saved);
    const __m256i end = prefix_sums32(width);
    const __m256i pos =
        _mm256_add_epi32(_mm256_sub_epi32(end, width), _mm256_set1_epi32(static_cast<int32_t>(at % 32)));
    const uint8_t* words = payload + at / 32 * 4;
    const __m256i kept = _mm256_srlv_epi32(bits_at32(load(words), load(words + 4), pos), saved);
    __m256i chunk = load(block.bitval + j);
    for (size_t run = j, end_of_runs = block.num_runs * kIbpBlock; run < end_of_runs; run += kIbpBlock) {
      const __m256i moved = _mm256_sllv_epi32(kept, load(block.run_up + run));
      chunk = _mm256_or_si256(chunk, _mm256_and_si256(moved, load(block.run_bits + run)));
    }
    store(chunks, where(takes, chunk, kept));
    return static_cast<uint32_t>(_mm256_extract_epi32(end, 7));
  }
};

// Two neighbours share a lane of 32 bits until theirs are out of the payload: AVX2 shifts no 16-bit lanes.
template <>
struct Avx2Group<uint16_t> {
  using Tables = IbpTables<uint16_t>;
  using Block = IbpBlock<uint16_t>;
  static constexpr size_t kChunks = 16;

  GNN_IBP_TARGET static uint64_t saved(const Tables& tables, size_t first, uint64_t takes_part) {
    return saved_in_block(tables, first, takes_part);
  }

  GNN_IBP_TARGET static uint64_t participation(const Block& block, size_t j, const uint8_t* chunks) {
    const __m256i fixed = _mm256_and_si256(load(chunks), load(block.mask + j));
    const __m256i takes = _mm256_cmpeq_epi16(fixed, load(block.bitval + j));
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(takes), _mm256_extracti128_si256(takes, 1));
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
  }

  GNN_IBP_TARGET static uint64_t decode(const Block& block, size_t j, uint64_t takes_part,
                                        const uint8_t* payload, uint64_t at, uint8_t* chunks) {
    const __m256i lane =
        _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768);
    const __m256i bits = _mm256_set1_epi16(static_cast<int16_t>(takes_part));
    const __m256i takes = _mm256_cmpeq_epi16(_mm256_and_si256(bits, lane), lane);
    const __m128i saved_of_all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.saved + j));
    const __m256i saved = _mm256_and_si256(takes, _mm256_cvtepu8_epi16(saved_of_all));
    const __m256i width = _mm256_sub_epi16(_mm256_set1_epi16(16), saved);
    const __m256i of_two = _mm256_madd_epi16(width, _mm256_set1_epi16(1));
    const __m256i end = prefix_sums32(of_two);
    const __m256i pos =
        _mm256_add_epi32(_mm256_sub_epi32(end, of_two), _mm256_set1_epi32(static_cast<int32_t>(at % 16)));
    const uint8_t* words = payload + at / 16 * 2;
    const __m256i stream = bits_at32(swapped(load(words)), swapped(load(words + 4)), pos);
    const __m256i kept_of_two = _mm256_srlv_epi32(stream, _mm256_sub_epi32(_mm256_set1_epi32(32), of_two));
    const __m256i second_width = _mm256_srli_epi32(width, 16);
    const __m256i of_first = _mm256_srlv_epi32(kept_of_two, second_width);
    const __m256i of_second = _mm256_xor_si256(kept_of_two, _mm256_sllv_epi32(of_first, second_width));
    const __m256i kept = _mm256_or_si256(of_first, _mm256_slli_epi32(of_second, 16));
    __m256i chunk = load(block.bitval + j);
    for (size_t run = j, end_of_runs = block.num_runs * kIbpBlock; run < end_of_runs; run += kIbpBlock) {
      const __m256i moved = _mm256_mullo_epi16(kept, power_of_two(load(block.run_up + run)));
      chunk = _mm256_or_si256(chunk, _mm256_and_si256(moved, load(block.run_bits + run)));
    }
    store(chunks, where(takes, chunk, kept));
    return static_cast<uint32_t>(_mm256_extract_epi32(end, 7));
  }

 private:
  // The 16-bit words of each 32 bits, the first one to the top.
  GNN_IBP_TARGET static __m256i swapped(__m256i words) {
    return _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xB1), 0xB1);
  }

  // 1 << exponent in every 16-bit lane; exponents 0 to 15.
  GNN_IBP_TARGET static __m256i power_of_two(__m256i exponents) {
    const __m256i powers = _mm256_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                            1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i both = _mm256_or_si256(exponents, _mm256_slli_epi16(exponents, 8));
    const __m256i high = _mm256_set1_epi16(static_cast<int16_t>(0xF800));  // takes 8 off the upper byte
    return _mm256_shuffle_epi8(powers, _mm256_add_epi8(both, high));
  }
};

}  // namespace

template <typename Word>
IbpLevel<Word> ibp_avx2() {
  const IbpLevel<Word> other = has_fast_pdep() ? ibp_bmi2<Word>() : ibp_portable<Word>();
  if constexpr (sizeof(Word) == 1) {
    return other;  // pdep takes eight such chunks at once
  } else {
    using Level = Grouped<Word, Avx2Group>;
    return {Level::saved_by_stored, Level::saved_by_row, other.encode, Level::decode};
  }
}

template IbpLevel<uint8_t> ibp_avx2();
template IbpLevel<uint16_t> ibp_avx2();
template IbpLevel<uint32_t> ibp_avx2();
template IbpLevel<uint64_t> ibp_avx2();

}  // namespace gnn_ibp
#endif
