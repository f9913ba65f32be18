// Means over the in-neighbors of nodes, and the gradient: what a GraphSAGE layer does besides its product.
//
// Rows are float32. Row i of the result belongs to destination i, the mean of the rows of `x` named by
// indices[indptr[i] .. indptr[i + 1]); 0 where there are none. Sums go in the order of the edges, so results
// do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace gnn_ibp {

// Rows of `dim` floats, `stride` floats from one to the next.
template <typename Float>
struct RowsOf {
  Float* data;
  int64_t stride, dim;
  Float* operator[](int64_t i) const { return data + i * stride; }
};
using FloatRows = RowsOf<float>;
using ConstFloatRows = RowsOf<const float>;

// Index is int32_t or int64_t. The first offset need not be 0: indices begin at the first edge of row 0.
template <typename Index>
struct Csr {
  const int64_t* indptr;
  const Index* indices;
  int64_t num_rows;
};

// x is read as (x - shift) * factor, column by column; null pointers read it as it is.
struct Affine {
  const float* shift;
  const float* factor;
};

// out row i (x.dim floats) = the mean.
template <typename Index>
void neighbor_mean(ConstFloatRows x, Csr<Index> csr, FloatRows out);

// out row i (2 * x.dim floats) = [the mean | x row i].
void mean_and_own(ConstFloatRows x, Csr<int64_t> csr, Affine affine, FloatRows out);

// The gradient of mean_and_own (without affine) with respect to x: writes all `num_src` rows of
// grad_x, each from the rows that read it. csr begins at offset 0. Keeps 8 bytes a source and an edge.
void mean_and_own_grad(ConstFloatRows grad_out, Csr<int64_t> csr, int64_t num_src, FloatRows grad_x);

}  // namespace gnn_ibp
