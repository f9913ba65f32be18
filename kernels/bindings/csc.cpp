// Edges sorted by their targets, in memory, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <tuple>
#include <utility>
#include <variant>

#include "bindings/graph_arrays.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

template <class Id, class Index>
std::tuple<Out<int64_t, 1>, std::variant<Out<int32_t, 1>, Out<int64_t, 1>>, Out<int64_t, 1>> build_csc_as(
    const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup) {
  BuiltCsc<Index> built;
  {
    nb::gil_scoped_release release;
    built = build_csc<Id, Index>(edges, num_nodes, undirected, dedup);
  }
  return {to_numpy(std::move(built.indptr), num_nodes + 1),
          to_numpy(std::move(built.indices), built.num_edges),
          to_numpy(std::move(built.perm), built.num_edges)};
}

template <class Id>
void bind_edge_list(nb::module_& m) {
  m.def(
      "first_bad_edge",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes) {
        nb::gil_scoped_release release;
        return first_bad_edge<Id>({src.data(), dst.data(), static_cast<int64_t>(src.size())}, num_nodes);
      },
      "src"_a, "dst"_a, "num_nodes"_a);
  m.def(
      "build_csc",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes, bool undirected, bool dedup) {
        const EdgeList<Id> edges{src.data(), dst.data(), static_cast<int64_t>(src.size())};
        return num_nodes <= int64_t{1} << 31 ? build_csc_as<Id, int32_t>(edges, num_nodes, undirected, dedup)
                                             : build_csc_as<Id, int64_t>(edges, num_nodes, undirected, dedup);
      },
      "src"_a, "dst"_a, "num_nodes"_a, "undirected"_a, "dedup"_a);
}

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
  bind_edge_list<int32_t>(m);
  bind_edge_list<int64_t>(m);
  bind_node_ids<int32_t>(m);
  bind_node_ids<int64_t>(m);
}

}  // namespace gnn_ibp
