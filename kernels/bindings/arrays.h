// Arrays as they come from NumPy: of one type, back to back; no copies are made.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>

#include "cpu/huge_pages.h"

namespace gnn_ibp {

template <typename T, size_t Dims>
using In = nanobind::ndarray<const T, nanobind::numpy, nanobind::ndim<Dims>, nanobind::c_contig,
                             nanobind::device::cpu>;
template <typename T, size_t Dims>
using Out =
    nanobind::ndarray<T, nanobind::numpy, nanobind::ndim<Dims>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// An array that owns `values`.
template <class T>
Out<T, 1> to_numpy(Huge<T> values, int64_t size) {
  nanobind::capsule owner(values.get(), [](void* memory) noexcept { Free()(memory); });
  return Out<T, 1>(values.release(), {static_cast<size_t>(size)}, owner);
}

}  // namespace gnn_ibp
