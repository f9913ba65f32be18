#include "cpu/sample.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace gnn_ibp {
namespace {

// Nodes and edges go through one short loop after the other, each of which waits for one kind of memory: many
// of its cache lines are in flight together, and no wrongly predicted branch holds them up.
constexpr int64_t kBlockNodes = 256;
constexpr int64_t kBlockEdges = 1024;
constexpr int64_t kAhead = 24;  // by so many turns a loop fetches the lines that it will need
constexpr int64_t kMaxEdges = int64_t{1} << 48;  // of a sample: more than memory holds, less than overflows

}  // namespace

template <class Index>
void NeighborSample<Index>::draw(const Csc<Index>& graph, const int64_t* seeds, int64_t num_seeds,
                                 const std::vector<int64_t>& fanouts, bool replace, uint64_t key,
                                 bool by_node) {
  start(seeds, num_seeds);
  for (const int64_t fanout : fanouts) {
    const Hop hop{num_dst_, num_nodes_, EdgeDraw(fanout, replace, key)};
    measure(graph, hop);
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
void NeighborSample<Index>::start(const int64_t* seeds, int64_t num_seeds) {
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
}

// Reads the ranges of the hop's destinations and lays out its edges; makes room for all it can add.
template <class Index>
void NeighborSample<Index>::measure(const Csc<Index>& graph, const Hop& hop) {
  const int64_t num_hop = hop.last_dst - hop.first_dst;
  ranges_.reserve(num_hop, 0);
  indptr_.reserve(hop.last_dst + 1, hop.first_dst + 1);
  const int64_t* nodes = node_ids_.data() + hop.first_dst;
  int64_t* ends = indptr_.data() + hop.first_dst + 1;
  int64_t at = num_edges_;
  for (int64_t i = 0; i < num_hop; ++i) {
    if (i + kAhead < num_hop) __builtin_prefetch(&graph.indptr[nodes[i + kAhead]]);
    const int64_t begin = graph.indptr[nodes[i]], end = graph.indptr[nodes[i] + 1];
    if (begin < 0 || end < begin || end > graph.num_edges)
      throw std::domain_error("indptr is damaged at node " + std::to_string(nodes[i]));
    ranges_[i] = {begin, end - begin};
    const int64_t num_drawn = hop.edges.count(end - begin);
    if (num_drawn > kMaxEdges - at) throw std::overflow_error("a sample of more than 2^48 edges");
    at += num_drawn;
    ends[i] = at;
  }
  edge_ids_.reserve(at, num_edges_);
  indices_.reserve(at, num_edges_);
  node_ids_.reserve(num_nodes_ + at - num_edges_ + 1, num_nodes_);  // `relabel` writes one too many
}

template <class Index>
void NeighborSample<Index>::draw_in_turn(const Csc<Index>& graph, const Hop& hop) {
  for (int64_t first = hop.first_dst; first < hop.last_dst; first += kBlockNodes) {
    const int64_t last = std::min(hop.last_dst, first + kBlockNodes);
    draw_edges(hop, first, last);
    for (int64_t edge = indptr_[first]; edge < indptr_[last]; edge += kBlockEdges) {
      const int64_t last_edge = std::min(indptr_[last], edge + kBlockEdges);
      for (int64_t at = edge; at < last_edge; ++at) __builtin_prefetch(&graph.indices[edge_ids_[at]]);
      read_sources(graph, edge, last_edge);
      relabel(edge, last_edge);
    }
  }
}

// A page that several nodes share is read once, and the disk's head, or its read-ahead, goes one way.
template <class Index>
void NeighborSample<Index>::draw_by_node(const Csc<Index>& graph, const Hop& hop) {
  const int64_t num_hop = hop.last_dst - hop.first_dst;
  order_.reserve(num_hop, 0);
  for (int64_t i = 0; i < num_hop; ++i) order_[i] = hop.first_dst + i;
  std::sort(order_.data(), order_.data() + num_hop,
            [&](int64_t a, int64_t b) { return node_ids_[a] < node_ids_[b]; });
  for (int64_t i = 0; i < num_hop; ++i) {
    const int64_t dst = order_[i];
    draw_edges(hop, dst, dst + 1);
    read_sources(graph, indptr_[dst], indptr_[dst + 1]);
  }
  const int64_t last_edge = indptr_[hop.last_dst];
  for (int64_t edge = num_edges_; edge < last_edge; edge += kBlockEdges)
    relabel(edge, std::min(last_edge, edge + kBlockEdges));
}

template <class Index>
void NeighborSample<Index>::draw_edges(const Hop& hop, int64_t first_dst, int64_t last_dst) {
  hop.edges.draw(node_ids_.data() + first_dst, ranges_.data() + (first_dst - hop.first_dst),
                 last_dst - first_dst, edge_ids_.data() + indptr_[first_dst], taken_);
}

// The sources of the edges, as the graph numbers them.
template <class Index>
void NeighborSample<Index>::read_sources(const Csc<Index>& graph, int64_t first_edge, int64_t last_edge) {
  for (int64_t at = first_edge; at < last_edge; ++at) {
    const int64_t src = graph.indices[edge_ids_[at]];
    if (static_cast<uint64_t>(src) >= static_cast<uint64_t>(graph.num_nodes))
      throw std::domain_error("indices is damaged at position " + std::to_string(edge_ids_[at]));
    indices_[at] = src;
  }
}

// Numbers the sources of edges that have been read.
template <class Index>
void NeighborSample<Index>::relabel(int64_t first_edge, int64_t last_edge) {
  local_ids_.reserve(num_nodes_ + last_edge - first_edge, node_ids_.data(), num_nodes_);
  int64_t* indices = indices_.data();
  int64_t* node_ids = node_ids_.data();
  int64_t num_nodes = num_nodes_;
  for (int64_t at = first_edge; at < std::min(last_edge, first_edge + kAhead); ++at)
    local_ids_.prefetch(indices[at]);
  for (int64_t at = first_edge; at < last_edge; ++at) {
    if (at + kAhead < last_edge) local_ids_.prefetch(indices[at + kAhead]);
    const int64_t src = indices[at];
    const int64_t local = local_ids_.insert(src, num_nodes);
    node_ids[num_nodes] = src;  // counts if it is new
    num_nodes += local == num_nodes;
    indices[at] = local;
  }
  num_nodes_ = num_nodes;
}

template class NeighborSample<int32_t>;
template class NeighborSample<int64_t>;

}  // namespace gnn_ibp
