#include "cpu/edge_records.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "cpu/sort_tails.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <class Word>
EdgeRecord<Word> make_record(Word src, Word dst, Word, EdgeRecord<Word>) {
  return {src, dst};
}
template <class Word>
RankedRecord<Word> make_record(Word src, Word dst, Word rank, RankedRecord<Word>) {
  return {src, dst, rank};
}

// Calls body(record) for the records of a bucket, run after run.
template <class Record, class Body>
void for_each_record(const RecordRuns<Record>& runs, int64_t bucket, const Body& body) {
  const int64_t* starts = runs.starts + bucket;
  for (int64_t run = 0; run < runs.num_runs; ++run, starts += runs.num_buckets + 1)
    for (int64_t at = starts[0]; at < starts[1]; ++at) body(runs.records[at]);
}

// Sorts one bucket: by destination through counting, the edges of each destination by `sort_tails`.
template <class Record, class Index>
int64_t sort_bucket(const RecordRuns<Record>& runs, int64_t bucket, bool dedup, Tail<Record>* tails,
                    Index* indices, int64_t* perm, int64_t* counts) {
  const int64_t num_nodes = int64_t{1} << runs.shift, first_node = runs.first_node + (bucket << runs.shift);
  std::vector<uint32_t> starts(num_nodes + 2, 0);  // [v + 2] counts, [v + 1] then tells where v's next goes
  const auto node_of = [&](const Record& record) { return static_cast<int64_t>(record.dst) - first_node; };
  for_each_record(runs, bucket, [&](const Record& record) { ++starts[node_of(record) + 2]; });
  for (int64_t v = 0; v < num_nodes; ++v) starts[v + 2] += starts[v + 1];
  for_each_record(runs, bucket,
                  [&](const Record& record) { tails[starts[node_of(record) + 1]++] = tail_of(record); });

  int64_t num_kept = 0;
  for (int64_t v = 0; v < num_nodes; ++v) {
    const int64_t kept = sort_tails(tails + starts[v], starts[v + 1] - starts[v], dedup, indices + num_kept,
                                    perm ? perm + num_kept : nullptr);
    counts[v] += kept;
    num_kept += kept;
  }
  return num_kept;
}

// Where the records of each bucket come to stand when those of all runs are brought together.
template <class Record>
std::vector<int64_t> bucket_places(const RecordRuns<Record>& runs) {
  std::vector<int64_t> places(runs.num_buckets + 1, 0);
  const int64_t* starts = runs.starts;
  for (int64_t run = 0; run < runs.num_runs; ++run, starts += runs.num_buckets + 1)
    for (int64_t bucket = 0; bucket <= runs.num_buckets; ++bucket)
      places[bucket] += starts[bucket] - starts[0];
  return places;
}

// Collects the records of a bucket until they fill a cache line, which is then written at once: memory is
// touched once for many records, and fewer pages are in use at a time.
template <class Record>
class LineWriter {
  static constexpr int64_t kPerLine = std::bit_floor(64 / sizeof(Record));
  struct alignas(64) Line {
    Record records[kPerLine];
  };

 public:
  // next[b]: where in `out` the next record of bucket b goes.
  LineWriter(const std::vector<int64_t>& next, Record* out)
      : lines_(next.size()), first_(next), next_(next), out_(out) {}

  void put(int64_t bucket, const Record& record) {
    const int64_t at = next_[bucket]++;
    lines_[bucket].records[at % kPerLine] = record;
    if (at % kPerLine == kPerLine - 1) flush(bucket, at + 1 - kPerLine, at + 1);
  }

  void finish() {
    for (size_t bucket = 0; bucket < next_.size(); ++bucket)
      flush(bucket, next_[bucket] / kPerLine * kPerLine, next_[bucket]);
  }

 private:
  void flush(int64_t bucket, int64_t line, int64_t end) {
    const Record* records = lines_[bucket].records;
    if (line >= first_[bucket] && end == line + kPerLine) {
      std::memcpy(out_ + line, records, sizeof(Line::records));
    } else {
      for (int64_t at = std::max(line, first_[bucket]); at < end; ++at) out_[at] = records[at - line];
    }
  }

  std::vector<Line> lines_;
  const std::vector<int64_t> first_;
  std::vector<int64_t> next_;
  Record* const out_;
};

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
      const Word position = static_cast<Word>(first + i);
      bad |= outside(edges.src[i]) | outside(edges.dst[i]);
      if (undirected) {
        out[2 * i] = make_record(src, dst, position, Record{});
        out[2 * i + 1] = make_record(dst, src, position | kReverse<Word>, Record{});
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
    LineWriter<Record> writer(next[piece], out);
    for_each_in(piece, [&](const Record& record) { writer.put(record.dst >> shift, record); });
    writer.finish();
  });
}

template <class Record, class Index>
int64_t sort_records(const RecordRuns<Record>& runs, bool dedup, Tail<Record>* scratch, Index* indices,
                     int64_t* perm, int64_t* counts) {
  const std::vector<int64_t> places = bucket_places(runs);
  std::vector<int64_t> num_kept(runs.num_buckets);
  parallel_for(runs.num_buckets, 1, [&](int64_t bucket, int64_t) {
    const int64_t at = places[bucket];
    num_kept[bucket] = sort_bucket(runs, bucket, dedup, scratch + at, indices + at,
                                   perm ? perm + at : nullptr, counts + (bucket << runs.shift));
  });
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < runs.num_buckets; ++bucket) {
    const int64_t at = places[bucket], kept = num_kept[bucket];
    if (total < at) {
      std::memmove(indices + total, indices + at, kept * sizeof(Index));
      if (perm) std::memmove(perm + total, perm + at, kept * sizeof(int64_t));
    }
    total += kept;
  }
  return total;
}

#define GNN_IBP_RECORD(Record)                                                                      \
  template int64_t pack_edges(const EdgeList<int32_t>&, int64_t, int64_t, bool, Record*);           \
  template int64_t pack_edges(const EdgeList<int64_t>&, int64_t, int64_t, bool, Record*);           \
  template void partition_records(const Record*, int64_t, int, int64_t, Record*, int64_t*);         \
  template int64_t sort_records(const RecordRuns<Record>&, bool, Tail<Record>*, int32_t*, int64_t*, \
                                int64_t*);                                                          \
  template int64_t sort_records(const RecordRuns<Record>&, bool, Tail<Record>*, int64_t*, int64_t*, int64_t*);
GNN_IBP_RECORD(EdgeRecord<uint32_t>)
GNN_IBP_RECORD(EdgeRecord<uint64_t>)
GNN_IBP_RECORD(RankedRecord<uint32_t>)
GNN_IBP_RECORD(RankedRecord<uint64_t>)
#undef GNN_IBP_RECORD

}  // namespace gnn_ibp
