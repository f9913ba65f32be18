#include "cpu/edge_records.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>
#include <vector>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <class Word>
EdgeRecord<Word> make_record(Word src, Word dst, uint64_t, EdgeRecord<Word>) {
  return {src, dst};
}
template <class Word>
RankedRecord<Word> make_record(Word src, Word dst, uint64_t rank, RankedRecord<Word>) {
  return {src, dst, rank};
}

template <class Word>
Tail<EdgeRecord<Word>> tail_of(const EdgeRecord<Word>& record) {
  return {record.src};
}
template <class Word>
Tail<RankedRecord<Word>> tail_of(const RankedRecord<Word>& record) {
  return {record.src, record.rank};
}

template <class Word>
bool operator<(const Tail<EdgeRecord<Word>>& a, const Tail<EdgeRecord<Word>>& b) {
  return a.src < b.src;
}
template <class Word>
bool operator<(const Tail<RankedRecord<Word>>& a, const Tail<RankedRecord<Word>>& b) {
  return std::tie(a.src, a.rank) < std::tie(b.src, b.rank);
}

template <class Word>
int64_t position_of(const Tail<EdgeRecord<Word>>&) {
  return 0;
}
template <class Word>
int64_t position_of(const Tail<RankedRecord<Word>>& tail) {
  return static_cast<int64_t>(tail.rank & ~kReverse);
}

// Sorts one bucket: by destination through counting, the edges of each destination by comparing.
template <class Record, class Index>
int64_t sort_bucket(const Record* records, int64_t num_records, int64_t first_node, int64_t num_nodes,
                    bool dedup, Tail<Record>* tails, Index* indices, int64_t* perm, int64_t* counts) {
  std::vector<int64_t> starts(num_nodes + 2, 0);  // [v + 2] counts, [v + 1] then tells where v's next goes
  const auto node_of = [&](const Record& record) { return static_cast<int64_t>(record.dst) - first_node; };
  for (int64_t i = 0; i < num_records; ++i) ++starts[node_of(records[i]) + 2];
  for (int64_t v = 0; v < num_nodes; ++v) starts[v + 2] += starts[v + 1];
  for (int64_t i = 0; i < num_records; ++i) tails[starts[node_of(records[i]) + 1]++] = tail_of(records[i]);

  int64_t num_kept = 0;
  for (int64_t v = 0; v < num_nodes; ++v) {
    Tail<Record>* const begin = tails + starts[v];
    Tail<Record>* end = tails + starts[v + 1];
    if (begin == end) continue;
    std::sort(begin, end, [](const auto& a, const auto& b) { return a < b; });
    if (dedup) end = std::unique(begin, end, [](const auto& a, const auto& b) { return a.src == b.src; });
    counts[v] += end - begin;
    for (const Tail<Record>* tail = begin; tail < end; ++tail, ++num_kept) {
      indices[num_kept] = static_cast<Index>(tail->src);
      if (perm) perm[num_kept] = position_of(*tail);
    }
  }
  return num_kept;
}

}  // namespace

template <class Record, class Id>
int64_t pack_edges(const EdgeList<Id>& edges, int64_t num_nodes, int64_t first, bool undirected,
                   Record* out) {
  using Word = decltype(Record::src);
  const auto outside = [&](Id id) {
    return static_cast<uint64_t>(static_cast<int64_t>(id)) >= static_cast<uint64_t>(num_nodes);
  };
  std::atomic<int64_t> first_bad{edges.num_edges};
  parallel_for(edges.num_edges, kGrain, [&](int64_t begin, int64_t end) {
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) {
      const Word src = static_cast<Word>(edges.src[i]), dst = static_cast<Word>(edges.dst[i]);
      const uint64_t position = static_cast<uint64_t>(first + i);
      bad |= outside(edges.src[i]) | outside(edges.dst[i]);
      if (undirected) {
        out[2 * i] = make_record(src, dst, position, Record{});
        out[2 * i + 1] = make_record(dst, src, position | kReverse, Record{});
      } else {
        out[i] = make_record(src, dst, position, Record{});
      }
    }
    if (!bad) return;
    while (!outside(edges.src[begin]) && !outside(edges.dst[begin])) ++begin;
    int64_t seen = first_bad.load();
    while (begin < seen && !first_bad.compare_exchange_weak(seen, begin)) {
    }
  });
  return first_bad == edges.num_edges ? -1 : first_bad.load();
}

template <class Record>
void partition_records(const Record* records, int64_t num_records, int shift, int64_t num_buckets,
                       Record* out, int64_t* starts) {
  const int64_t num_pieces = std::clamp<int64_t>(num_records / kGrain, 1, 4 * num_threads());
  const int64_t piece_size = (num_records + num_pieces - 1) / num_pieces;
  std::vector<std::vector<int64_t>> next(num_pieces, std::vector<int64_t>(num_buckets, 0));
  const auto for_each_in = [&](int64_t piece, const auto& body) {
    const int64_t begin = std::min(piece * piece_size, num_records);
    const int64_t end = std::min(begin + piece_size, num_records);
    for (const Record* record = records + begin; record < records + end; ++record) body(*record);
  };
  parallel_for(num_pieces, 1, [&](int64_t piece, int64_t) {
    int64_t* counts = next[piece].data();
    for_each_in(piece, [&](const Record& record) { ++counts[record.dst >> shift]; });
  });
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < num_buckets; ++bucket) {
    starts[bucket] = total;
    for (int64_t piece = 0; piece < num_pieces; ++piece) {
      const int64_t count = next[piece][bucket];
      next[piece][bucket] = total;
      total += count;
    }
  }
  starts[num_buckets] = total;
  parallel_for(num_pieces, 1, [&](int64_t piece, int64_t) {
    int64_t* at = next[piece].data();
    for_each_in(piece, [&](const Record& record) { out[at[record.dst >> shift]++] = record; });
  });
}

template <class Record, class Index>
int64_t sort_records(const RecordBuckets<Record>& buckets, bool dedup, Tail<Record>* scratch, Index* indices,
                     int64_t* perm, int64_t* counts) {
  std::vector<int64_t> num_kept(buckets.num_buckets);
  parallel_for(buckets.num_buckets, 1, [&](int64_t bucket, int64_t) {
    const int64_t at = buckets.starts[bucket], first = bucket << buckets.shift;
    num_kept[bucket] = sort_bucket(buckets.records + at, buckets.starts[bucket + 1] - at,
                                   buckets.first_node + first, int64_t{1} << buckets.shift, dedup,
                                   scratch + at, indices + at, perm ? perm + at : nullptr, counts + first);
  });
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < buckets.num_buckets; ++bucket) {
    const int64_t at = buckets.starts[bucket], kept = num_kept[bucket];
    if (total < at) {
      std::memmove(indices + total, indices + at, kept * sizeof(Index));
      if (perm) std::memmove(perm + total, perm + at, kept * sizeof(int64_t));
    }
    total += kept;
  }
  return total;
}

#define GNN_IBP_RECORD(Record)                                                                         \
  template int64_t pack_edges(const EdgeList<int32_t>&, int64_t, int64_t, bool, Record*);              \
  template int64_t pack_edges(const EdgeList<int64_t>&, int64_t, int64_t, bool, Record*);              \
  template void partition_records(const Record*, int64_t, int, int64_t, Record*, int64_t*);            \
  template int64_t sort_records(const RecordBuckets<Record>&, bool, Tail<Record>*, int32_t*, int64_t*, \
                                int64_t*);                                                             \
  template int64_t sort_records(const RecordBuckets<Record>&, bool, Tail<Record>*, int64_t*, int64_t*, \
                                int64_t*);
GNN_IBP_RECORD(EdgeRecord<uint32_t>)
GNN_IBP_RECORD(EdgeRecord<uint64_t>)
GNN_IBP_RECORD(RankedRecord<uint32_t>)
GNN_IBP_RECORD(RankedRecord<uint64_t>)
#undef GNN_IBP_RECORD

}  // namespace gnn_ibp
