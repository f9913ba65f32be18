// Checks and counts of a topology, for Python.
#include "bindings/bindings.h"

#include "bindings/graph_arrays.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

template <class Index>
void bind_node_ids(nb::module_& m) {
  m.def(
      "first_bad_node",
      [](In<int64_t, 1> indptr, In<Index, 1> indices) {
        nb::gil_scoped_release release;
        return first_bad_node(csc_view(indptr, indices));
      },
      "indptr"_a, "indices"_a);
  m.def(
      "count_ids",
      [](In<Index, 1> ids, Out<int64_t, 1> counts) {
        nb::gil_scoped_release release;
        return count_ids(ids.data(), static_cast<int64_t>(ids.size()), counts.data(),
                         static_cast<int64_t>(counts.size()));
      },
      "ids"_a, "counts"_a);
}

}  // namespace

void bind_csc(nb::module_& m) {
  bind_node_ids<int32_t>(m);
  bind_node_ids<int64_t>(m);
}

}  // namespace gnn_ibp
