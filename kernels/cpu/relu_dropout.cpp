#include "cpu/relu_dropout.h"

#include <algorithm>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements per piece of work, a multiple of kPerDraw
constexpr int64_t kPerDraw = 4;      // elements that share one 64-bit draw

// splitmix64's finalizer over a counter (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
inline uint64_t draw(uint64_t key, uint64_t counter) {
  uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

float scale_of(uint32_t drop) { return 65536.0f / static_cast<float>(65536u - drop); }

}  // namespace

void relu_dropout(float* h, int64_t n, uint64_t key, uint32_t drop) {
  const float scale = scale_of(drop);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    if (drop == 0) {
      for (int64_t i = begin; i < end; ++i) h[i] = h[i] > 0.0f ? h[i] : 0.0f;
      return;
    }
    for (int64_t i = begin; i < end; i += kPerDraw) {
      const uint64_t bits = draw(key, static_cast<uint64_t>(i / kPerDraw));
      const int64_t m = std::min(kPerDraw, end - i);
      for (int64_t k = 0; k < m; ++k) {
        const bool keep = ((bits >> (16 * k)) & 0xFFFF) >= drop;
        const float kept = keep ? scale : 0.0f;
        h[i + k] = (h[i + k] > 0.0f ? h[i + k] : 0.0f) * kept;
      }
    }
  });
}

void relu_dropout_grad(const float* out, const float* grad_out, int64_t n, uint32_t drop, float* grad_in) {
  const float scale = scale_of(drop);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) grad_in[i] = out[i] > 0.0f ? grad_out[i] * scale : 0.0f;
  });
}

}  // namespace gnn_ibp
