// Neighbor means, and ReLU with dropout, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.h"
#include "cpu/neighbor_mean.h"
#include "cpu/relu_dropout.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

// Rows may stand apart, as columns of a wider matrix do.
using FloatMatrix = nb::ndarray<float, nb::numpy, nb::ndim<2>, nb::device::cpu>;
using ConstFloatMatrix = nb::ndarray<const float, nb::numpy, nb::ndim<2>, nb::device::cpu>;

template <typename Float>
RowsOf<Float> rows_of(const nb::ndarray<Float, nb::numpy, nb::ndim<2>, nb::device::cpu>& m) {
  require(m.shape(1) <= 1 || m.stride(1) == 1, "the columns of a row must lie back to back");
  return {m.data(), m.stride(0), static_cast<int64_t>(m.shape(1))};
}

template <typename Index>
Csr<Index> csr_of(const In<int64_t, 1>& indptr, const In<Index, 1>& indices) {
  return {indptr.data(), indices.data(), static_cast<int64_t>(indptr.shape(0)) - 1};
}

template <typename Index>
void py_neighbor_mean(const ConstFloatMatrix& x, const In<int64_t, 1>& indptr, const In<Index, 1>& indices,
                      const FloatMatrix& out) {
  nb::gil_scoped_release release;
  neighbor_mean(rows_of(x), csr_of(indptr, indices), rows_of(out));
}

void py_mean_and_own(const ConstFloatMatrix& x, const In<int64_t, 1>& indptr, const In<int64_t, 1>& indices,
                     const std::optional<In<float, 1>>& shift, const std::optional<In<float, 1>>& factor,
                     const FloatMatrix& out) {
  const Affine affine{shift ? shift->data() : nullptr, factor ? factor->data() : nullptr};
  nb::gil_scoped_release release;
  mean_and_own(rows_of(x), csr_of(indptr, indices), affine, rows_of(out));
}

void py_mean_and_own_grad(const ConstFloatMatrix& grad_out, const In<int64_t, 1>& indptr,
                          const In<int64_t, 1>& indices, const FloatMatrix& grad_x) {
  nb::gil_scoped_release release;
  mean_and_own_grad(rows_of(grad_out), csr_of(indptr, indices), static_cast<int64_t>(grad_x.shape(0)),
                    rows_of(grad_x));
}

using FloatArray = nb::ndarray<float, nb::numpy, nb::c_contig, nb::device::cpu>;
using ConstFloatArray = nb::ndarray<const float, nb::numpy, nb::c_contig, nb::device::cpu>;

void py_relu_dropout(const FloatArray& h, uint64_t key, uint32_t drop) {
  nb::gil_scoped_release release;
  relu_dropout(h.data(), static_cast<int64_t>(h.size()), key, drop);
}

void py_relu_dropout_grad(const ConstFloatArray& out, const ConstFloatArray& grad_out, uint32_t drop,
                          const FloatArray& grad_in) {
  nb::gil_scoped_release release;
  relu_dropout_grad(out.data(), grad_out.data(), static_cast<int64_t>(out.size()), drop, grad_in.data());
}

}  // namespace

void bind_model(nb::module_& m) {
  m.def("neighbor_mean", &py_neighbor_mean<int32_t>, "x"_a, "indptr"_a, "indices"_a, "out"_a);
  m.def("neighbor_mean", &py_neighbor_mean<int64_t>, "x"_a, "indptr"_a, "indices"_a, "out"_a);
  m.def("mean_and_own", &py_mean_and_own, "x"_a, "indptr"_a, "indices"_a, "shift"_a.none(), "factor"_a.none(),
        "out"_a);
  m.def("mean_and_own_grad", &py_mean_and_own_grad, "grad_out"_a, "indptr"_a, "indices"_a, "grad_x"_a);
  m.def("relu_dropout", &py_relu_dropout, "h"_a, "key"_a, "drop"_a);
  m.def("relu_dropout_grad", &py_relu_dropout_grad, "out"_a, "grad_out"_a, "drop"_a, "grad_in"_a);
}

}  // namespace gnn_ibp
