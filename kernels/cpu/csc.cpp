#include "cpu/csc.h"

#include <algorithm>
#include <atomic>
#include <compare>
#include <vector>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kEdgeGrain = 1 << 18;
constexpr int64_t kNodeGrain = 1 << 12;

template <class Id>
bool outside(Id id, int64_t num_nodes) {
  return static_cast<uint64_t>(static_cast<int64_t>(id)) >= static_cast<uint64_t>(num_nodes);
}

void lower_to(std::atomic<int64_t>& least, int64_t value) {
  int64_t seen = least.load();
  while (value < seen && !least.compare_exchange_weak(seen, value)) {
  }
}

// What is sorted for every edge of one destination: by source, then rank, the order of preference among
// equal edges. The packed form takes half the memory and is the one that graphs below 2^32 edges get.
struct PackedEdge {
  uint64_t bits;

  static bool fits(int64_t num_nodes, int64_t num_ranks) {
    return num_nodes <= int64_t{1} << 32 && num_ranks <= int64_t{1} << 32;
  }
  static PackedEdge make(int64_t src, int64_t rank) { return {static_cast<uint64_t>(src) << 32 | rank}; }
  int64_t src() const { return bits >> 32; }
  int64_t rank() const { return bits & 0xffffffffu; }
  auto operator<=>(const PackedEdge&) const = default;
};

struct WideEdge {
  int64_t src_id, rank_at;

  static WideEdge make(int64_t src, int64_t rank) { return {src, rank}; }
  int64_t src() const { return src_id; }
  int64_t rank() const { return rank_at; }
  auto operator<=>(const WideEdge&) const = default;
};

// Calls body(src, dst, rank) for every edge; reverse edges rank behind all given ones.
template <class Id, class Body>
void for_each_edge(const EdgeList<Id>& edges, bool undirected, const Body& body) {
  parallel_for(edges.num_edges, kEdgeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      body(edges.src[i], edges.dst[i], i);
      if (undirected) body(edges.dst[i], edges.src[i], edges.num_edges + i);
    }
  });
}

template <class Edge, class Id, class Index>
BuiltCsc<Index> build(const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup) {
  // Counting sort by destination. starts[v + 1] counts, then tells where v begins, then where it ends.
  std::vector<int64_t> starts(num_nodes + 2, 0);
  for_each_edge(edges, undirected, [&](Id, Id dst, int64_t) {
    std::atomic_ref(starts[dst + 2]).fetch_add(1, std::memory_order_relaxed);
  });
  for (int64_t v = 0; v < num_nodes; ++v) starts[v + 2] += starts[v + 1];
  const int64_t num_sorted = starts[num_nodes + 1];
  auto sorted = std::make_unique_for_overwrite<Edge[]>(num_sorted);
  for_each_edge(edges, undirected, [&](Id src, Id dst, int64_t rank) {
    const int64_t at = std::atomic_ref(starts[dst + 1]).fetch_add(1, std::memory_order_relaxed);
    sorted[at] = Edge::make(src, rank);
  });

  // Threads wrote in any order; the sort within each destination makes it one.
  BuiltCsc<Index> built;
  built.indptr = std::make_unique_for_overwrite<int64_t[]>(num_nodes + 1);
  built.indptr[0] = 0;
  parallel_for(num_nodes, kNodeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      Edge* first = sorted.get() + starts[v];
      Edge* last = sorted.get() + starts[v + 1];
      std::sort(first, last);
      if (dedup)
        last = std::unique(first, last, [](const Edge& a, const Edge& b) { return a.src() == b.src(); });
      built.indptr[v + 1] = last - first;
    }
  });
  for (int64_t v = 0; v < num_nodes; ++v) built.indptr[v + 1] += built.indptr[v];

  built.num_edges = built.indptr[num_nodes];
  built.indices = std::make_unique_for_overwrite<Index[]>(built.num_edges);
  built.perm = std::make_unique_for_overwrite<int64_t[]>(built.num_edges);
  parallel_for(num_nodes, kNodeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      const Edge* edge = sorted.get() + starts[v];
      for (int64_t at = built.indptr[v]; at < built.indptr[v + 1]; ++at, ++edge) {
        built.indices[at] = static_cast<Index>(edge->src());
        const int64_t rank = edge->rank();
        built.perm[at] = rank < edges.num_edges ? rank : rank - edges.num_edges;
      }
    }
  });
  return built;
}

}  // namespace

template <class Id>
int64_t first_bad_edge(const EdgeList<Id>& edges, int64_t num_nodes) {
  std::atomic<int64_t> first{edges.num_edges};
  parallel_for(edges.num_edges, kEdgeGrain, [&](int64_t begin, int64_t end) {
    bool bad = false;
    for (int64_t i = begin; i < end; ++i)
      bad |= outside(edges.src[i], num_nodes) | outside(edges.dst[i], num_nodes);
    if (!bad) return;
    while (!outside(edges.src[begin], num_nodes) && !outside(edges.dst[begin], num_nodes)) ++begin;
    lower_to(first, begin);
  });
  return first == edges.num_edges ? -1 : first.load();
}

template <class Id, class Index>
BuiltCsc<Index> build_csc(const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup) {
  const int64_t num_ranks = undirected ? 2 * edges.num_edges : edges.num_edges;
  if (PackedEdge::fits(num_nodes, num_ranks))
    return build<PackedEdge, Id, Index>(edges, num_nodes, undirected, dedup);
  return build<WideEdge, Id, Index>(edges, num_nodes, undirected, dedup);
}

template <class Index>
int64_t first_bad_node(const Csc<Index>& graph) {
  std::atomic<int64_t> first{graph.num_nodes};
  parallel_for(graph.num_nodes, kNodeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      const int64_t from = graph.indptr[v], to = graph.indptr[v + 1];
      bool bad = from < 0 || to < from || to > graph.num_edges;
      for (int64_t at = from; !bad && at < to; ++at) bad = outside(graph.indices[at], graph.num_nodes);
      if (bad) return lower_to(first, v);
    }
  });
  return first == graph.num_nodes ? -1 : first.load();
}

template <class Index>
bool count_ids(const Index* ids, int64_t num_ids, int64_t* counts, int64_t num_nodes) {
  std::atomic<bool> good{true};
  parallel_for(num_ids, kEdgeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (outside(ids[i], num_nodes)) {
        good = false;
        return;
      }
      std::atomic_ref(counts[ids[i]]).fetch_add(1, std::memory_order_relaxed);
    }
  });
  return good;
}

template int64_t first_bad_edge(const EdgeList<int32_t>&, int64_t);
template int64_t first_bad_edge(const EdgeList<int64_t>&, int64_t);
template BuiltCsc<int32_t> build_csc(const EdgeList<int32_t>&, int64_t, bool, bool);
template BuiltCsc<int32_t> build_csc(const EdgeList<int64_t>&, int64_t, bool, bool);
template BuiltCsc<int64_t> build_csc(const EdgeList<int32_t>&, int64_t, bool, bool);
template BuiltCsc<int64_t> build_csc(const EdgeList<int64_t>&, int64_t, bool, bool);
template int64_t first_bad_node(const Csc<int32_t>&);
template int64_t first_bad_node(const Csc<int64_t>&);
template bool count_ids(const int32_t*, int64_t, int64_t*, int64_t);
template bool count_ids(const int64_t*, int64_t, int64_t*, int64_t);

}  // namespace gnn_ibp
