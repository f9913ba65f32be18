#include "cpu/csc.h"

#include <atomic>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kEdgeGrain = 1 << 18;
constexpr int64_t kNodeGrain = 1 << 12;
constexpr int64_t kPrefetchAhead = 24;

template <class Id>
bool outside(Id id, int64_t num_nodes) {
  return static_cast<uint64_t>(static_cast<int64_t>(id)) >= static_cast<uint64_t>(num_nodes);
}

void lower_to(std::atomic<int64_t>& least, int64_t value) {
  int64_t seen = least.load();
  while (value < seen && !least.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

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
      // An atomic add waits for its cache line and holds up all that follow: have the line there before.
      if (i + kPrefetchAhead < end) __builtin_prefetch(counts + ids[i + kPrefetchAhead], 1);
      std::atomic_ref(counts[ids[i]]).fetch_add(1, std::memory_order_relaxed);
    }
  });
  return good;
}

template int64_t first_bad_node(const Csc<int32_t>&);
template int64_t first_bad_node(const Csc<int64_t>&);
template bool count_ids(const int32_t*, int64_t, int64_t*, int64_t);
template bool count_ids(const int64_t*, int64_t, int64_t*, int64_t);

}  // namespace gnn_ibp
