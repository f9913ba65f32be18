// ReLU and dropout in one pass, with random bits that depend on a key and the element's position only.
#pragma once

#include <cstdint>

namespace gnn_ibp {

// In place: h[i] = h[i] > 0 and element i is kept ? h[i] * scale : 0, where `drop` of 65536 elements are
// dropped on average and scale = 65536 / (65536 - drop). The random bits come from (key, i).
// NaN stays where it is kept.
void relu_dropout(float* h, int64_t n, uint64_t key, uint32_t drop);

// From the result of relu_dropout: grad_in[i] = out[i] != 0 ? grad_out[i] * scale : 0. May be in place.
void relu_dropout_grad(const float* out, const float* grad_out, int64_t n, uint32_t drop, float* grad_in);

}  // namespace gnn_ibp
