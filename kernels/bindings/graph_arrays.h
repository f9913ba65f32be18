// A graph whose edges are arrays of NumPy.
#pragma once

#include "bindings/arrays.h"
#include "cpu/csc.h"

namespace gnn_ibp {

template <class Index>
Csc<Index> csc_view(const In<int64_t, 1>& indptr, const In<Index, 1>& indices) {
  return {indptr.data(), indices.data(), static_cast<int64_t>(indptr.size()) - 1,
          static_cast<int64_t>(indices.size())};
}

}  // namespace gnn_ibp
