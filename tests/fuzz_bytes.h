// Random numbers and bytes for programs that try the kernels under the sanitizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "cpu/row_codec.h"

namespace gnn_ibp {

inline std::mt19937_64 rng;

inline uint64_t below(uint64_t n) { return rng() % n; }

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// `size` bytes in memory of their own, with the padding that a decoder may read on both sides.
class Padded {
 public:
  explicit Padded(size_t size) : bytes_(new uint8_t[size + 2 * kPadBytes]) {
    for (size_t i = 0; i < size + 2 * kPadBytes; ++i) bytes_[i] = static_cast<uint8_t>(rng());
  }
  uint8_t* first() { return bytes_.get() + kPadBytes; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
};

// The body of main: a number of rounds, argv[1] or 1000, each of which draws from a seed of its own.
template <typename Round>
int run_rounds(int argc, char** argv, Round round) {
  const int num_rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
  for (int i = 0; i < num_rounds; ++i) {
    rng.seed(i);
    round();
  }
  return 0;
}

}  // namespace gnn_ibp
