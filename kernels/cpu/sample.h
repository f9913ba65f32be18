// Neighbor sampling: the in-neighbourhood of some seed nodes, hop by hop, as one CSR.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "cpu/csc.h"
#include "cpu/edge_draw.h"
#include "cpu/huge_pages.h"
#include "cpu/local_ids.h"

namespace gnn_ibp {

// Memory that grows and is never initialised or given back before its end.
template <class T>
class Scratch {
 public:
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

  // Makes room for `size` values and keeps the first `used`.
  void reserve(int64_t size, int64_t used) {
    if (size <= capacity_) return;
    const int64_t capacity = size + size / 2;
    auto larger = make_huge<T>(capacity);
    for (int64_t i = 0; i < used; ++i) larger[i] = data_[i];
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  int64_t nbytes() const { return capacity_ * sizeof(T); }

 private:
  Huge<T> data_;
  int64_t capacity_ = 0;
};

// One batch after another, in memory that is used again; one object a thread. Index is that of the graph.
template <class Index>
class NeighborSample {
 public:
  // Per hop every node found in the hop before draws `fanouts[hop]` of its in-neighbours (-1: all), from
  // counters under `key` and the node's id. Throws std::domain_error where the graph is damaged,
  // std::overflow_error or std::bad_alloc for too large a sample.
  // `by_node` reads graph.indices hop by hop, ascending from node to node: for indices on a disk. What is
  // drawn is the same.
  void draw(const Csc<Index>& graph, const int64_t* seeds, int64_t num_seeds,
            const std::vector<int64_t>& fanouts, bool replace, uint64_t key, bool by_node);

  // The results, until the next call.
  const int64_t* node_ids() const { return node_ids_.data(); }
  const int64_t* indptr() const { return indptr_.data(); }
  const int64_t* indices() const { return indices_.data(); }
  const int64_t* edge_ids() const { return edge_ids_.data(); }
  const std::vector<int64_t>& nodes_per_hop() const { return nodes_per_hop_; }
  const std::vector<int64_t>& edges_per_hop() const { return edges_per_hop_; }
  int64_t num_nodes() const { return num_nodes_; }
  int64_t num_dst() const { return num_dst_; }
  int64_t num_edges() const { return num_edges_; }

  int64_t nbytes() const {
    return node_ids_.nbytes() + indptr_.nbytes() + indices_.nbytes() + edge_ids_.nbytes() + ranges_.nbytes() +
           local_ids_.nbytes() + taken_.nbytes() + order_.nbytes();
  }

 private:
  struct Hop {
    int64_t first_dst, last_dst;
    EdgeDraw edges;
  };

  void start(const int64_t* seeds, int64_t num_seeds);
  void measure(const Csc<Index>& graph, const Hop& hop);
  void draw_in_turn(const Csc<Index>& graph, const Hop& hop);
  void draw_by_node(const Csc<Index>& graph, const Hop& hop);
  void draw_edges(const Hop& hop, int64_t first_dst, int64_t last_dst);
  void read_sources(const Csc<Index>& graph, int64_t first_edge, int64_t last_edge);
  void relabel(int64_t first_edge, int64_t last_edge);

  Scratch<int64_t> node_ids_, indptr_, indices_, edge_ids_;
  Scratch<EdgeRange> ranges_;  // of the destinations of the hop
  Scratch<int64_t> order_;     // of these destinations, by their ids
  LocalIds<std::make_unsigned_t<Index>> local_ids_;
  LocalIds<uint64_t> taken_;  // the draws of one node, where they are many
  std::vector<int64_t> nodes_per_hop_, edges_per_hop_;
  int64_t num_nodes_ = 0, num_dst_ = 0, num_edges_ = 0;
};

}  // namespace gnn_ibp
