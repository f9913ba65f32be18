// Edges on their way to their destinations: packed into records, brought together by ranges of destinations
// in runs, which lie in memory or in a file, and each range sorted by itself.
#pragma once

#include <cstdint>

#include "cpu/edge_record.h"

namespace gnn_ibp {

// Packs edges, the first of which has the position `first`, into out (num_edges or, undirected, twice as
// many; a reverse edge follows the given one). Returns the index of the first edge that names a node outside
// [0, num_nodes), or -1; out is unfinished then.
template <class Record, class Id>
int64_t pack_edges(const EdgeList<Id>& edges, int64_t num_nodes, int64_t first, bool undirected, Record* out);

// Brings the records of bucket dst >> shift together, in their order. starts (num_buckets + 1,).
template <class Record>
void partition_records(const Record* records, int64_t num_records, int shift, int64_t num_buckets,
                       Record* out, int64_t* starts);

// Runs of records, each partitioned into the same buckets: those of bucket b in run r are the records
// starts[r][b] to starts[r][b + 1] - 1. Their destinations are first_node + (b << shift) and the
// (1 << shift) - 1 nodes behind it.
template <class Record>
struct RecordRuns {
  const Record* records;
  const int64_t* starts;  // (num_runs, num_buckets + 1)
  int64_t num_runs;
  int64_t num_buckets;
  int64_t first_node;
  int shift;
};

// Sorts by destination, source and rank. `dedup` keeps one edge for every source and destination. Writes the
// sources of what is kept to indices and, unless perm is null, positions to perm; adds to counts[v] how many
// edges of the node first_node + v are kept. scratch: a Tail for every record. Returns the number kept.
template <class Record, class Index>
int64_t sort_records(const RecordRuns<Record>& runs, bool dedup, Tail<Record>* scratch, Index* indices,
                     int64_t* perm, int64_t* counts);

}  // namespace gnn_ibp
