#include "cpu/sample.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "random.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kBlockEdges =
    1024;  // drawn, then read, then numbered: their cache lines are in flight together
constexpr int64_t kLookThrough = 64;  // below it comparing with all earlier draws beats a hash table

int64_t num_drawn(int64_t degree, int64_t fanout, bool replace) {
  if (fanout < 0) return degree;
  if (replace) return degree > 0 ? fanout : 0;
  return std::min(degree, fanout);
}

}  // namespace

template <class Index>
void NeighborSample::draw(const Csc<Index>& graph, const int64_t* seeds, int64_t num_seeds,
                          const std::vector<int64_t>& fanouts, bool replace, uint64_t key, bool by_node) {
  nodes_per_hop_ = {num_seeds};
  edges_per_hop_.clear();
  num_nodes_ = num_seeds;
  num_dst_ = num_edges_ = 0;
  node_ids_.reserve(num_seeds, 0);
  indptr_.reserve(1, 0);
  indptr_[0] = 0;
  local_ids_.clear();
  local_ids_.reserve(num_seeds, nullptr, 0);
  for (int64_t i = 0; i < num_seeds; ++i) {
    node_ids_[i] = seeds[i];
    local_ids_.insert(seeds[i], i);
  }

  for (const int64_t fanout : fanouts) {
    const Hop hop{num_dst_, num_nodes_, fanout, replace, key};
    measure_hop(graph, fanout, replace);
    if (by_node) {
      draw_by_node(graph, hop);
    } else {
      draw_in_turn(graph, hop);
    }
    const int64_t num_edges = indptr_[hop.last_dst];
    num_dst_ = hop.last_dst;
    nodes_per_hop_.push_back(num_nodes_ - hop.last_dst);
    edges_per_hop_.push_back(num_edges - num_edges_);
    num_edges_ = num_edges;
  }
}

template <class Index>
void NeighborSample::draw_in_turn(const Csc<Index>& graph, const Hop& hop) {
  int64_t block = num_edges_;
  for (int64_t dst = hop.first_dst; dst < hop.last_dst; ++dst) {
    draw_edges(dst, hop);
    for (int64_t at = indptr_[dst]; at < indptr_[dst + 1]; ++at)
      __builtin_prefetch(&graph.indices[edge_ids_[at]]);
    if (indptr_[dst + 1] - block < kBlockEdges && dst + 1 < hop.last_dst) continue;
    for (const int64_t last = indptr_[dst + 1]; block < last;) {
      const int64_t end = std::min(last, block + kBlockEdges);
      read_sources(graph, block, end);
      relabel(block, end);
      block = end;
    }
  }
}

// A page that several nodes share is read once, and the disk's head, or its read-ahead, goes one way.
template <class Index>
void NeighborSample::draw_by_node(const Csc<Index>& graph, const Hop& hop) {
  const int64_t num_hop = hop.last_dst - hop.first_dst;
  order_.reserve(num_hop, 0);
  for (int64_t i = 0; i < num_hop; ++i) order_[i] = hop.first_dst + i;
  std::sort(order_.data(), order_.data() + num_hop,
            [&](int64_t a, int64_t b) { return node_ids_[a] < node_ids_[b]; });
  for (int64_t i = 0; i < num_hop; ++i) {
    const int64_t dst = order_[i];
    draw_edges(dst, hop);
    read_sources(graph, indptr_[dst], indptr_[dst + 1]);
  }
  const int64_t last = indptr_[hop.last_dst];
  for (int64_t begin = num_edges_; begin < last; begin += kBlockEdges)
    relabel(begin, std::min(last, begin + kBlockEdges));
}

// Reads the ranges of the hop's destinations and lays out its edges; makes room for all it can add.
template <class Index>
void NeighborSample::measure_hop(const Csc<Index>& graph, int64_t fanout, bool replace) {
  const int64_t num_hop = num_nodes_ - num_dst_;
  ranges_.reserve(num_hop, 0);
  indptr_.reserve(num_nodes_ + 1, num_dst_ + 1);
  int64_t at = num_edges_;
  for (int64_t i = 0; i < num_hop; ++i) {
    const int64_t node = node_ids_[num_dst_ + i];
    const int64_t begin = graph.indptr[node], end = graph.indptr[node + 1];
    if (begin < 0 || end < begin || end > graph.num_edges)
      throw std::domain_error("indptr is damaged at node " + std::to_string(node));
    ranges_[i] = {begin, end - begin};
    at += num_drawn(end - begin, fanout, replace);
    indptr_[num_dst_ + i + 1] = at;
  }
  edge_ids_.reserve(at, num_edges_);
  indices_.reserve(at, num_edges_);
  node_ids_.reserve(num_nodes_ + at - num_edges_, num_nodes_);
}

void NeighborSample::draw_edges(int64_t dst, const Hop& hop) {
  const Range range = ranges_[dst - hop.first_dst];
  int64_t* edges = edge_ids_.data() + indptr_[dst];
  const int64_t count = indptr_[dst + 1] - indptr_[dst];
  if (hop.fanout < 0 || (!hop.replace && count == range.degree)) {
    for (int64_t k = 0; k < count; ++k) edges[k] = range.begin + k;
    return;
  }
  const uint64_t node_key = mix(hop.key, node_ids_[dst]);
  if (!hop.replace) return draw_distinct(edges, count, range, node_key);
  for (int64_t k = 0; k < count; ++k) edges[k] = range.begin + bounded(mix(node_key, k), range.degree);
}

// Floyd's draw without replacement (Bentley, Floyd 1987): `count` < degree distinct edges, one number each.
void NeighborSample::draw_distinct(int64_t* edges, int64_t count, Range range, uint64_t key) {
  if (count > kLookThrough) {
    drawn_.clear();
    drawn_.reserve(count, nullptr, 0);
  }
  for (int64_t k = 0; k < count; ++k) {
    const int64_t last = range.degree - count + k;
    int64_t edge = range.begin + bounded(mix(key, k), last + 1);
    const bool taken =
        count > kLookThrough ? drawn_.insert(edge, k) != k : std::find(edges, edges + k, edge) != edges + k;
    if (taken) {
      edge = range.begin + last;
      if (count > kLookThrough) drawn_.insert(edge, k);
    }
    edges[k] = edge;
  }
}

// The sources of the edges, as the graph numbers them.
template <class Index>
void NeighborSample::read_sources(const Csc<Index>& graph, int64_t first_edge, int64_t last_edge) {
  for (int64_t at = first_edge; at < last_edge; ++at) {
    const int64_t src = graph.indices[edge_ids_[at]];
    if (static_cast<uint64_t>(src) >= static_cast<uint64_t>(graph.num_nodes))
      throw std::domain_error("indices is damaged at position " + std::to_string(edge_ids_[at]));
    indices_[at] = src;
  }
}

// Numbers the sources of at most `kBlockEdges` edges that have been read.
void NeighborSample::relabel(int64_t first_edge, int64_t last_edge) {
  local_ids_.reserve(num_nodes_ + last_edge - first_edge, node_ids_.data(), num_nodes_);
  for (int64_t at = first_edge; at < last_edge; ++at) local_ids_.prefetch(indices_[at]);
  int64_t num_nodes = num_nodes_;
  for (int64_t at = first_edge; at < last_edge; ++at) {
    const int64_t src = indices_[at];
    const int64_t local = local_ids_.insert(src, num_nodes);
    if (local == num_nodes) node_ids_[num_nodes++] = src;
    indices_[at] = local;
  }
  num_nodes_ = num_nodes;
}

template void NeighborSample::draw(const Csc<int32_t>&, const int64_t*, int64_t, const std::vector<int64_t>&,
                                   bool, uint64_t, bool);
template void NeighborSample::draw(const Csc<int64_t>&, const int64_t*, int64_t, const std::vector<int64_t>&,
                                   bool, uint64_t, bool);

}  // namespace gnn_ibp
