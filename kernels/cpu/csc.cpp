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
constexpr int64_t kBucketEdges = 1 << 16;  // what is sorted at once stays in the processor's own cache
constexpr int64_t kMaxBuckets = 1 << 10;
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

// An edge on its way to its destination. `rank` is its position, reverse edges rank behind all given ones:
// the order of preference among equal edges. Word is 32 bits wide where ids and ranks fit.
template <class Word>
struct Edge {
  Word dst, src, rank;
};

// The key by which the edges of one destination are sorted.
struct PackedKey {
  uint64_t bits;

  explicit PackedKey(const Edge<uint32_t>& edge) : bits(uint64_t{edge.src} << 32 | edge.rank) {}
  uint64_t src() const { return bits >> 32; }
  uint64_t rank() const { return bits & 0xffffffffu; }
  auto operator<=>(const PackedKey&) const = default;
};

struct WideKey {
  uint64_t src_id, rank_at;

  explicit WideKey(const Edge<uint64_t>& edge) : src_id(edge.src), rank_at(edge.rank) {}
  uint64_t src() const { return src_id; }
  uint64_t rank() const { return rank_at; }
  auto operator<=>(const WideKey&) const = default;
};

// Ranges of destinations whose edges are brought together first and then sorted each by itself, because
// writing each edge straight to its place would miss cache and TLB every time.
struct Buckets {
  int shift = 0;  // bucket of v = v >> shift
  int64_t count = 1;

  Buckets(int64_t num_nodes, int64_t num_sorted) {
    const int64_t wanted = std::clamp<int64_t>(num_sorted / kBucketEdges, 1, kMaxBuckets);
    while ((num_nodes >> shift) >= wanted) ++shift;
    count = (num_nodes >> shift) + 1;
  }
};

// Calls body(src, dst, rank) for the edges from `begin` to `end` and, undirected, for their reverses.
template <class Id, class Body>
void for_each_edge(const EdgeList<Id>& edges, int64_t begin, int64_t end, bool undirected, const Body& body) {
  for (int64_t i = begin; i < end; ++i) {
    body(edges.src[i], edges.dst[i], i);
    if (undirected) body(edges.dst[i], edges.src[i], edges.num_edges + i);
  }
}

// All edges by bucket, and where the buckets begin.
template <class Word>
struct Partition {
  Huge<Edge<Word>> edges;
  std::vector<int64_t> starts;
};

// Every piece of the edge list counts what it has for every bucket, and so gets its own places to write to.
template <class Word, class Id>
Partition<Word> partition(const EdgeList<Id>& edges, const Buckets& buckets, bool undirected) {
  const int64_t num_pieces = std::clamp<int64_t>(edges.num_edges / kEdgeGrain, 1, 256);
  const int64_t piece_size = (edges.num_edges + num_pieces - 1) / num_pieces;
  std::vector<std::vector<int64_t>> at(num_pieces, std::vector<int64_t>(buckets.count, 0));
  const auto for_each_in_piece = [&](int64_t piece, const auto& body) {
    const int64_t begin = std::min(piece * piece_size, edges.num_edges);
    for_each_edge(edges, begin, std::min(begin + piece_size, edges.num_edges), undirected, body);
  };

  parallel_for(num_pieces, 1, [&](int64_t piece, int64_t) {
    int64_t* counts = at[piece].data();
    for_each_in_piece(piece, [&](Id, Id dst, int64_t) { ++counts[dst >> buckets.shift]; });
  });
  Partition<Word> parts;
  parts.starts.push_back(0);
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < buckets.count; ++bucket) {
    for (int64_t piece = 0; piece < num_pieces; ++piece) {
      const int64_t count = at[piece][bucket];
      at[piece][bucket] = total;
      total += count;
    }
    parts.starts.push_back(total);
  }
  parts.edges = make_huge<Edge<Word>>(total);
  parallel_for(num_pieces, 1, [&](int64_t piece, int64_t) {
    int64_t* next = at[piece].data();
    for_each_in_piece(piece, [&](Id src, Id dst, int64_t rank) {
      parts.edges[next[dst >> buckets.shift]++] = {static_cast<Word>(dst), static_cast<Word>(src),
                                                   static_cast<Word>(rank)};
    });
  });
  return parts;
}

// Sorts the edges of the destinations [first, last) in place and leaves out duplicates; the sorted ones stand
// at the front. Writes how many each destination keeps.
template <class Key, class Word>
void sort_bucket(Edge<Word>* edges, int64_t num_edges, int64_t first, int64_t last, bool dedup,
                 int64_t* kept) {
  std::vector<int64_t> starts(last - first + 2, 0);  // [v + 2] counts, [v + 1] then tells where v's next goes
  for (int64_t i = 0; i < num_edges; ++i) ++starts[edges[i].dst - first + 2];
  for (int64_t v = 0; v < last - first; ++v) starts[v + 2] += starts[v + 1];
  std::vector<Key> keys(num_edges, Key(Edge<Word>{}));
  for (int64_t i = 0; i < num_edges; ++i) keys[starts[edges[i].dst - first + 1]++] = Key(edges[i]);

  Edge<Word>* out = edges;
  for (int64_t v = 0; v < last - first; ++v) {
    const auto begin = keys.begin() + starts[v];
    auto end = keys.begin() + starts[v + 1];
    std::sort(begin, end);
    if (dedup) end = std::unique(begin, end, [](Key a, Key b) { return a.src() == b.src(); });
    kept[v] = end - begin;
    for (auto key = begin; key < end; ++key)
      *out++ = {static_cast<Word>(first + v), static_cast<Word>(key->src()), static_cast<Word>(key->rank())};
  }
}

template <class Key, class Word, class Id, class Index>
BuiltCsc<Index> build(const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup) {
  const Buckets buckets(num_nodes, undirected ? 2 * edges.num_edges : edges.num_edges);
  const Partition<Word> parts = partition<Word>(edges, buckets, undirected);
  const auto first_of = [&](int64_t bucket) { return std::min(bucket << buckets.shift, num_nodes); };

  BuiltCsc<Index> built;
  built.indptr = make_huge<int64_t>(num_nodes + 1);
  built.indptr[0] = 0;
  parallel_for(buckets.count, 1, [&](int64_t bucket, int64_t) {
    const int64_t first = first_of(bucket), begin = parts.starts[bucket];
    sort_bucket<Key>(parts.edges.get() + begin, parts.starts[bucket + 1] - begin, first, first_of(bucket + 1),
                     dedup, built.indptr.get() + first + 1);
  });
  for (int64_t v = 0; v < num_nodes; ++v) built.indptr[v + 1] += built.indptr[v];

  built.num_edges = built.indptr[num_nodes];
  built.indices = make_huge<Index>(built.num_edges);
  built.perm = make_huge<int64_t>(built.num_edges);
  parallel_for(buckets.count, 1, [&](int64_t bucket, int64_t) {
    const Edge<Word>* edge = parts.edges.get() + parts.starts[bucket];
    const int64_t end = built.indptr[first_of(bucket + 1)];
    for (int64_t at = built.indptr[first_of(bucket)]; at < end; ++at, ++edge) {
      built.indices[at] = static_cast<Index>(edge->src);
      const int64_t rank = edge->rank;
      built.perm[at] = rank < edges.num_edges ? rank : rank - edges.num_edges;
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
  if (std::max(num_nodes, num_ranks) <= int64_t{1} << 32)
    return build<PackedKey, uint32_t, Id, Index>(edges, num_nodes, undirected, dedup);
  return build<WideKey, uint64_t, Id, Index>(edges, num_nodes, undirected, dedup);
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
      // An atomic add waits for its cache line and holds up all that follow: have the line there before.
      if (i + kPrefetchAhead < end) __builtin_prefetch(counts + ids[i + kPrefetchAhead], 1);
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
