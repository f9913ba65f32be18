#include "cpu/neighbor_mean.h"

#include <algorithm>

#include "cpu/huge_pages.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kRowGrain = 128;     // destinations per piece of work
constexpr int64_t kPrefetchEdges = 4;  // rows asked for ahead of their use
constexpr int64_t kLine = 16;          // floats in a cache line

inline void prefetch(const float* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += kLine) __builtin_prefetch(row + d);
}

// Sum of the neighbors' rows, each less `shift` where there is one, times 1 / their number.
template <typename Index>
inline void mean_row(ConstFloatRows x, Csr<Index> csr, int64_t i, const float* shift, float* out) {
  const int64_t dim = x.dim;
  const int64_t begin = csr.indptr[i] - csr.indptr[0], end = csr.indptr[i + 1] - csr.indptr[0];
  const int64_t last = csr.indptr[csr.num_rows] - csr.indptr[0];
  std::fill(out, out + dim, 0.0f);
  for (int64_t e = begin; e < end; ++e) {
    if (e + kPrefetchEdges < last) prefetch(x[csr.indices[e + kPrefetchEdges]], dim);
    const float* row = x[csr.indices[e]];
    if (shift) {
      for (int64_t d = 0; d < dim; ++d) out[d] += row[d] - shift[d];
    } else {
      for (int64_t d = 0; d < dim; ++d) out[d] += row[d];
    }
  }
  if (end > begin + 1) {
    const float share = 1.0f / static_cast<float>(end - begin);
    for (int64_t d = 0; d < dim; ++d) out[d] *= share;
  }
}

// Which destinations read a source: dst[begin[i] .. begin[i + 1]), in the order of the edges.
struct Transposed {
  Huge<int64_t> begin, dst;

  Transposed(Csr<int64_t> csr, int64_t num_src)
      : begin(make_huge<int64_t>(num_src + 2)), dst(make_huge<int64_t>(csr.indptr[csr.num_rows])) {
    std::fill(begin.get(), begin.get() + num_src + 2, 0);
    const int64_t num_edges = csr.indptr[csr.num_rows];
    for (int64_t e = 0; e < num_edges; ++e) ++begin[csr.indices[e] + 2];
    for (int64_t i = 2; i <= num_src + 1; ++i) begin[i] += begin[i - 1];
    // begin[i + 1] is where the next reader of i is written; in the end, where those of i + 1 begin
    for (int64_t i = 0; i < csr.num_rows; ++i) {
      for (int64_t e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) dst[begin[csr.indices[e] + 1]++] = i;
    }
  }
};

}  // namespace

template <typename Index>
void neighbor_mean(ConstFloatRows x, Csr<Index> csr, FloatRows out) {
  parallel_for(csr.num_rows, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) mean_row(x, csr, i, nullptr, out[i]);
  });
}

template void neighbor_mean<int32_t>(ConstFloatRows, Csr<int32_t>, FloatRows);
template void neighbor_mean<int64_t>(ConstFloatRows, Csr<int64_t>, FloatRows);

void mean_and_own(ConstFloatRows x, Csr<int64_t> csr, Affine affine, FloatRows out) {
  const int64_t dim = x.dim;
  parallel_for(csr.num_rows, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* mean = out[i];
      float* own = mean + dim;
      mean_row(x, csr, i, affine.shift, mean);
      std::copy(x[i], x[i] + dim, own);
      if (affine.shift) {
        for (int64_t d = 0; d < dim; ++d) own[d] = (own[d] - affine.shift[d]) * affine.factor[d];
        for (int64_t d = 0; d < dim; ++d) mean[d] *= affine.factor[d];
      }
    }
  });
}

void mean_and_own_grad(ConstFloatRows grad_out, Csr<int64_t> csr, int64_t num_src, FloatRows grad_x) {
  const int64_t dim = grad_x.dim, num_dst = csr.num_rows;
  const Transposed readers(csr, num_src);
  parallel_for(num_src, kRowGrain, [&](int64_t begin, int64_t end) {
    const int64_t last = readers.begin[end];
    for (int64_t i = begin; i < end; ++i) {
      float* row = grad_x[i];
      if (i < num_dst) {
        std::copy(grad_out[i] + dim, grad_out[i] + 2 * dim, row);
      } else {
        std::fill(row, row + dim, 0.0f);
      }
      for (int64_t e = readers.begin[i]; e < readers.begin[i + 1]; ++e) {
        if (e + kPrefetchEdges < last) prefetch(grad_out[readers.dst[e + kPrefetchEdges]], dim);
        const int64_t dst = readers.dst[e];
        const float* mean = grad_out[dst];
        const float share = 1.0f / static_cast<float>(csr.indptr[dst + 1] - csr.indptr[dst]);
        for (int64_t d = 0; d < dim; ++d) row[d] += mean[d] * share;
      }
    }
  });
}

}  // namespace gnn_ibp
