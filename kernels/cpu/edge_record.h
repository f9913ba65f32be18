// What is kept of an edge while it is on its way through a file.
#pragma once

#include <cstdint>

namespace gnn_ibp {

// Word is uint32_t where node ids fit, else uint64_t.
template <class Word>
struct EdgeRecord {
  Word src, dst;
};

// The same with its rank: its position in the edge list, with `kReverse` set where it is the reverse of that
// edge. Among edges with the same ends the lowest rank is kept.
constexpr uint64_t kReverse = uint64_t{1} << 63;
template <class Word>
struct RankedRecord {
  Word src, dst;
  uint64_t rank;
};

// What is left of a record when its destination is known: that is what gets sorted.
template <class Record>
struct Tail;
template <class Word>
struct Tail<EdgeRecord<Word>> {
  Word src;
};
template <class Word>
struct Tail<RankedRecord<Word>> {
  Word src;
  uint64_t rank;
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
