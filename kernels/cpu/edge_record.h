// Edges as they are given, and what is kept of one on its way to its destination.
#pragma once

#include <cstdint>

namespace gnn_ibp {

// Edge i leads from src[i] to dst[i]; Id is int32_t or int64_t.
template <class Id>
struct EdgeList {
  const Id* src;
  const Id* dst;
  int64_t num_edges;
};

// What is kept of an edge; Word is uint32_t where node ids, and ranks, fit, else uint64_t.
template <class Word>
struct EdgeRecord {
  Word src, dst;
};

// The same with its rank: its position in the edge list, with the highest bit set where it is the reverse of
// that edge. Among edges with the same ends the lowest rank is kept.
template <class Word>
struct RankedRecord {
  Word src, dst, rank;
};
template <class Word>
constexpr Word kReverse = Word{1} << (8 * sizeof(Word) - 1);

// What is left of a record when its destination is known: that is what gets sorted.
template <class Record>
struct Tail;
template <class Word>
struct Tail<EdgeRecord<Word>> {
  Word src;
};
template <class Word>
struct Tail<RankedRecord<Word>> {
  Word src, rank;
};

template <class Word>
Tail<EdgeRecord<Word>> tail_of(const EdgeRecord<Word>& record) {
  return {record.src};
}
template <class Word>
Tail<RankedRecord<Word>> tail_of(const RankedRecord<Word>& record) {
  return {record.src, record.rank};
}

}  // namespace gnn_ibp
