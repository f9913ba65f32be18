// The topology of a graph: the in-neighbours of node v are indices[indptr[v]], …, indices[indptr[v + 1] - 1].
#pragma once

#include <cstdint>

namespace gnn_ibp {

// A view; Index is int32_t or int64_t.
template <class Index>
struct Csc {
  const int64_t* indptr;  // (num_nodes + 1,)
  const Index* indices;   // (num_edges,)
  int64_t num_nodes;
  int64_t num_edges;
};

// The first node whose range of edges is not a range or holds an id outside [0, num_nodes), or -1.
template <class Index>
int64_t first_bad_node(const Csc<Index>& graph);

// Adds to counts[v] how often v occurs in ids, and returns true; returns false at an id outside
// [0, num_nodes), counts being unfinished then.
template <class Index>
bool count_ids(const Index* ids, int64_t num_ids, int64_t* counts, int64_t num_nodes);

}  // namespace gnn_ibp
