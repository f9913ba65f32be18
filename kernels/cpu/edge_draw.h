// Which of its edges a node draws: positions in the graph's `indices`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/local_ids.h"

namespace gnn_ibp {

struct EdgeRange {  // of a node's edges in the graph
  int64_t begin;
  int64_t degree;
};

// How the nodes of one hop draw: each `fanout` of its edges (-1: all), from counters under `key` and its id.
class EdgeDraw {
 public:
  EdgeDraw(int64_t fanout, bool replace, uint64_t key);

  // How many edges a node of this degree draws.
  int64_t count(int64_t degree) const {
    if (fanout_ < 0) return degree;
    if (replace_) return degree > 0 ? fanout_ : 0;
    return std::min(degree, fanout_);
  }

  // The draws of some nodes, one after the other, from edges[0] on. `taken` is used where a node draws many.
  void draw(const int64_t* nodes, const EdgeRange* ranges, int64_t num_nodes, int64_t* edges,
            LocalIds<uint64_t>& taken) const;

 private:
  using DrawFew = void (*)(EdgeRange range, uint64_t key, int64_t* edges);

  void draw_replaced(EdgeRange range, uint64_t key, int64_t* edges) const;
  void draw_distinct(EdgeRange range, uint64_t key, int64_t* edges, LocalIds<uint64_t>& taken) const;

  const int64_t fanout_;
  const bool replace_;
  const uint64_t key_;
  const DrawFew draw_few_;  // `draw_distinct` for this fanout, where it is small
};

}  // namespace gnn_ibp
