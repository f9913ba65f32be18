// Neighbors sampled, for Python, and the keys of what is drawn at random.
#include "bindings/bindings.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/graph_arrays.h"
#include "cpu/sample.h"
#include "random.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

template <class T>
Huge<T> copied(const T* values, int64_t size) {
  Huge<T> copy = make_huge<T>(size);
  std::copy(values, values + size, copy.get());
  return copy;
}

constexpr int64_t kKeptBytes = 256 << 20;  // a thread's sampling memory above this is given back

template <class Index>
std::tuple<Out<int64_t, 1>, Out<int64_t, 1>, Out<int64_t, 1>, Out<int64_t, 1>, std::vector<int64_t>,
           std::vector<int64_t>>
sample_neighbors(In<int64_t, 1> indptr, In<Index, 1> indices, In<int64_t, 1> seeds,
                 const std::vector<int64_t>& fanouts, bool replace, uint64_t key, bool by_node) {
  thread_local NeighborSample<Index> sample;
  Huge<int64_t> node_ids, starts, locals, edge_ids;
  {
    nb::gil_scoped_release release;
    sample.draw(csc_view(indptr, indices), seeds.data(), seeds.size(), fanouts, replace, key, by_node);
    node_ids = copied(sample.node_ids(), sample.num_nodes());
    starts = copied(sample.indptr(), sample.num_dst() + 1);
    locals = copied(sample.indices(), sample.num_edges());
    edge_ids = copied(sample.edge_ids(), sample.num_edges());
  }
  const int64_t num_nodes = sample.num_nodes(), num_dst = sample.num_dst(), num_edges = sample.num_edges();
  const std::vector<int64_t> nodes_per_hop = sample.nodes_per_hop(), edges_per_hop = sample.edges_per_hop();
  if (sample.nbytes() > kKeptBytes) sample = NeighborSample<Index>();
  return {to_numpy(std::move(node_ids), num_nodes),
          to_numpy(std::move(starts), num_dst + 1),
          to_numpy(std::move(locals), num_edges),
          to_numpy(std::move(edge_ids), num_edges),
          nodes_per_hop,
          edges_per_hop};
}

template <class Index>
void bind_sample_neighbors(nb::module_& m) {
  m.def("sample_neighbors", &sample_neighbors<Index>, "indptr"_a, "indices"_a, "seeds"_a, "fanouts"_a,
        "replace"_a, "key"_a, "by_node"_a,
        "node_ids, indptr, indices, edge_ids, new nodes per hop (seeds first), edges per hop");
}

}  // namespace

void bind_sample(nb::module_& m) {
  bind_sample_neighbors<int32_t>(m);
  bind_sample_neighbors<int64_t>(m);
  m.def("mix", &mix, "key"_a, "value"_a);
  m.def(
      "mix_all",
      [](uint64_t key, In<int64_t, 1> values) {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < values.size(); ++i) key = mix(key, values.data()[i]);
        return key;
      },
      "key"_a, "values"_a);
}

}  // namespace gnn_ibp
