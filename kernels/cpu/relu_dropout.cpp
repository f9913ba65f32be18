#include "cpu/relu_dropout.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/thread_pool.h"
#include "random.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements per piece of work, a multiple of kPerDraw
constexpr int64_t kPerDraw = 4;      // elements that share one 64-bit draw
constexpr int64_t kBlock = 256;      // elements whose bits are drawn before they are used

float scale_of(uint32_t drop) { return 65536.0f / static_cast<float>(65536u - drop); }

// Choices are made on the bits of the floats: integer masks have no branch that half of the elements miss.
inline int32_t bits_of(float value) { return std::bit_cast<int32_t>(value); }
inline float masked(float value, bool keep) {
  return std::bit_cast<float>(bits_of(value) & -static_cast<int32_t>(keep));
}

// As signed integers all negative floats down to -inf come before all NaNs with a sign: ReLU keeps NaN.
inline float relu(float value) { return masked(value, bits_of(value) > bits_of(-INFINITY)); }

}  // namespace

void relu_dropout(float* h, int64_t n, uint64_t key, uint32_t drop) {
  const float scale = scale_of(drop);
  const auto least = static_cast<int32_t>(drop);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    if (drop == 0) {
      for (int64_t i = begin; i < end; ++i) h[i] = relu(h[i]);
      return;
    }
    uint16_t bits[kBlock];
    for (; begin < end; begin += kBlock) {
      const int64_t m = std::min(kBlock, end - begin);
      for (int64_t k = 0; k < m; k += kPerDraw) {
        const uint64_t four = mix(key, static_cast<uint64_t>((begin + k) / kPerDraw));
        for (int64_t j = 0; j < kPerDraw; ++j) bits[k + j] = static_cast<uint16_t>(four >> (16 * j));
      }
      float* some = h + begin;
      for (int64_t k = 0; k < m; ++k) some[k] = masked(relu(some[k]) * scale, bits[k] >= least);
    }
  });
}

// What passed is not 0 in `out`.
void relu_dropout_grad(const float* out, const float* grad_out, int64_t n, uint32_t drop, float* grad_in) {
  const float scale = scale_of(drop);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) grad_in[i] = masked(grad_out[i] * scale, bits_of(out[i]) != 0);
  });
}

}  // namespace gnn_ibp
