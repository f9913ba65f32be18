// Random numbers that depend on keys and counters alone, never on the order of execution: inline, the same
// on the host and on a GPU. What is drawn here is part of the sampler's promise and never changes.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

#ifdef __CUDACC__
#define GNN_IBP_RANDOM __host__ __device__ inline
#else
#define GNN_IBP_RANDOM inline
#endif

namespace gnn_ibp {

// A number for every (key, value): output value + 1 of the SplitMix64 generator (Steele, Lea, Flood 2014)
// that was seeded with `key`, reached in one step. Keys of keys are made the same way.
GNN_IBP_RANDOM uint64_t mix(uint64_t key, uint64_t value) {
  uint64_t z = key + (value + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Maps a random number to [0, n): the high half of their product (Lemire 2019, without the rejection, whose
// bias is below n / 2^64).
GNN_IBP_RANDOM uint64_t bounded(uint64_t random, uint64_t n) {
#ifdef __CUDA_ARCH__
  return __umul64hi(random, n);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * n) >> 64);
#endif
}

}  // namespace gnn_ibp
