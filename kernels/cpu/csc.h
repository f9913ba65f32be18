// The topology of a graph: the in-neighbours of node v are indices[indptr[v]], …, indices[indptr[v + 1] - 1].
#pragma once

#include <cstdint>

#include "cpu/huge_pages.h"

namespace gnn_ibp {

// A view; Index is int32_t or int64_t.
template <class Index>
struct Csc {
  const int64_t* indptr;  // (num_nodes + 1,)
  const Index* indices;   // (num_edges,)
  int64_t num_nodes;
  int64_t num_edges;
};

// Edge i leads from src[i] to dst[i]; Id is int32_t or int64_t.
template <class Id>
struct EdgeList {
  const Id* src;
  const Id* dst;
  int64_t num_edges;
};

// The position of the first edge that names a node outside [0, num_nodes), or -1.
template <class Id>
int64_t first_bad_edge(const EdgeList<Id>& edges, int64_t num_nodes);

template <class Index>
struct BuiltCsc {
  int64_t num_edges = 0;
  Huge<int64_t> indptr;
  Huge<Index> indices;
  Huge<int64_t> perm;  // where each edge stood in the edge list
};

// Sorts edges by destination, then source, then position. `undirected` adds the reverse of every edge, whose
// perm is that of the edge it reverses. `dedup` keeps one edge for every source and destination: the first
// that was given in this direction, or else the first that was given in the other.
// No edge may be bad.
template <class Id, class Index>
BuiltCsc<Index> build_csc(const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup);

// The first node whose range of edges is not a range or holds an id outside [0, num_nodes), or -1.
template <class Index>
int64_t first_bad_node(const Csc<Index>& graph);

// Adds to counts[v] how often v occurs in ids, and returns true; returns false at an id outside
// [0, num_nodes), counts being unfinished then.
template <class Index>
bool count_ids(const Index* ids, int64_t num_ids, int64_t* counts, int64_t num_nodes);

}  // namespace gnn_ibp
