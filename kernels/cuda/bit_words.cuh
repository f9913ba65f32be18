// Bits of stored rows, out of 32-bit words: the lowest bit of a word comes first.
#pragma once

#include "cuda/prelude.cuh"

namespace gnn_ibp {

// Words in shared memory. What lies behind a row is read, too, and not used.
struct SharedWords {
  const uint32_t* words;

  __device__ __forceinline__ uint32_t operator()(uint32_t k) const { return words[k]; }
};

// Words in global memory, of which none behind `last` is read.
struct GlobalWords {
  const uint32_t* words;
  uint32_t last;

  __device__ __forceinline__ uint32_t operator()(uint32_t k) const { return __ldg(words + min(k, last)); }
};

// The 32 bits, or 64, from bit `at` on.
template <typename Words>
__device__ __forceinline__ uint32_t bits32(const Words& words, uint32_t at) {
  const uint32_t k = at / 32;
  return __funnelshift_r(words(k), words(k + 1), at);
}

template <typename Words>
__device__ __forceinline__ uint64_t bits64(const Words& words, uint32_t at) {
  const uint32_t k = at / 32;
  const uint32_t middle = words(k + 1);
  return static_cast<uint64_t>(__funnelshift_r(middle, words(k + 2), at)) << 32 |
         __funnelshift_r(words(k), middle, at);
}

// As many bits as a Word has.
template <typename Word, typename Words>
__device__ __forceinline__ Word bits_of(const Words& words, uint32_t at) {
  return sizeof(Word) == 8 ? static_cast<Word>(bits64(words, at)) : static_cast<Word>(bits32(words, at));
}

// Words k to k + 3.
template <typename Words>
__device__ __forceinline__ uint4 four_words(const Words& words, uint32_t k) {
  return make_uint4(words(k), words(k + 1), words(k + 2), words(k + 3));
}

}  // namespace gnn_ibp
