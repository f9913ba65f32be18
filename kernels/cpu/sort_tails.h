// The edges of one destination, sorted by source, and by rank where they have one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cpu/edge_record.h"

namespace gnn_ibp {

constexpr int64_t kFewTails = 64;

// For every source, how many smaller ones there are: nothing there is to be guessed by the processor, and
// comparisons go side by side. Room for kRoom numbers; those behind the tails are of no use.
template <int64_t kRoom, class Tail>
void count_smaller(const Tail* tails, int64_t num_tails, auto* num_smaller) {
  using Word = decltype(Tail::src);
  using Key = std::make_signed_t<Word>;  // processors compare signed words side by side
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  Key keys[kRoom] = {};
  for (int64_t i = 0; i < num_tails; ++i) keys[i] = static_cast<Key>(tails[i].src ^ kSign);
  for (int64_t j = 0; j < num_tails; ++j)
    for (int64_t i = 0; i < kRoom; ++i) num_smaller[i] += keys[j] < keys[i];
}

// Places each source behind all smaller ones. Equal sources meet in one place; the places behind it that
// stay empty are left out, or filled.
template <int64_t kRoom, class Word, class Index>
int64_t sort_few_tails(const Tail<EdgeRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices) {
  std::make_signed_t<Word> num_smaller[kRoom] = {};
  count_smaller<kRoom>(tails, num_tails, num_smaller);

  constexpr Index kEmpty = -1;
  std::fill_n(indices, num_tails, kEmpty);
  for (int64_t i = 0; i < num_tails; ++i) indices[num_smaller[i]] = static_cast<Index>(tails[i].src);
  if (!dedup) {
    for (int64_t i = 1; i < num_tails; ++i) indices[i] = indices[i] == kEmpty ? indices[i - 1] : indices[i];
    return num_tails;
  }
  int64_t num_kept = 0;
  for (int64_t i = 0; i < num_tails; ++i) {
    const Index src = indices[i];
    indices[num_kept] = src;
    num_kept += src != kEmpty;
  }
  return num_kept;
}

// One pass of a radix sort by the byte at `shift`; equal ones stay in their order.
template <class From, class To, class SrcOf>
void sort_by_byte(const From* from, int64_t count, int shift, To* to, const SrcOf& src_of) {
  std::array<uint32_t, 257> starts{};
  const auto byte_of = [&](const From& value) { return src_of(value) >> shift & 0xFF; };
  for (int64_t i = 0; i < count; ++i) ++starts[byte_of(from[i]) + 1];
  for (int byte = 1; byte < 256; ++byte) starts[byte + 1] += starts[byte];
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<From, To>) {
      to[starts[byte_of(from[i])]++] = from[i];
    } else {
      to[starts[byte_of(from[i])]++] = To(src_of(from[i]));
    }
  }
}

// Sorts tails by source, byte after byte, to `room` and back.
template <class Tail, class Value, class SrcOf>
void sort_by_source(Tail* tails, int64_t num_tails, Value* room, const SrcOf& src_of) {
  using Word = decltype(Tail::src);
  const auto of_tail = [](const Tail& tail) { return tail.src; };
  Word all = 0;
  for (int64_t i = 0; i < num_tails; ++i) all |= tails[i].src;
  for (int shift = 0; shift < 8 * static_cast<int>(sizeof(Word)) && all >> shift; shift += 16) {
    sort_by_byte(tails, num_tails, shift, room, of_tail);
    sort_by_byte(room, num_tails, shift + 8, tails, src_of);
  }
}

template <class Word, class Index>
int64_t sort_many_tails(Tail<EdgeRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices) {
  sort_by_source(tails, num_tails, indices, [](Index index) { return static_cast<Word>(index); });
  for (int64_t i = 0; i < num_tails; ++i) indices[i] = static_cast<Index>(tails[i].src);
  return dedup ? std::unique(indices, indices + num_tails) - indices : num_tails;
}

// Sorts the tails of one destination and writes the sources of those that are kept to indices, and, unless
// perm is null, their positions to perm. `dedup` keeps one for every source. Returns the number kept. The
// tails are used up; both outputs have room for all of them.
template <class Word, class Index>
int64_t sort_tails(Tail<EdgeRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices, int64_t*) {
  if (num_tails <= 8) return sort_few_tails<8>(tails, num_tails, dedup, indices);
  if (num_tails <= 16) return sort_few_tails<16>(tails, num_tails, dedup, indices);
  if (num_tails <= 32) return sort_few_tails<32>(tails, num_tails, dedup, indices);
  if (num_tails <= kFewTails) return sort_few_tails<kFewTails>(tails, num_tails, dedup, indices);
  return sort_many_tails(tails, num_tails, dedup, indices);
}

// The same with ranks: equal sources are placed one behind the other, and sorted by rank there, which mostly
// is how they came.
template <int64_t kRoom, class Word>
void sort_few_tails(Tail<RankedRecord<Word>>* tails, int64_t num_tails) {
  std::make_signed_t<Word> num_smaller[kRoom] = {};
  count_smaller<kRoom>(tails, num_tails, num_smaller);
  Tail<RankedRecord<Word>> sorted[kRoom];
  uint8_t num_equal[kRoom] = {};
  for (int64_t i = 0; i < num_tails; ++i) {
    const int64_t first = num_smaller[i];
    int64_t at = first + num_equal[first]++;
    for (; at > first && tails[i].rank < sorted[at - 1].rank; --at) sorted[at] = sorted[at - 1];
    sorted[at] = tails[i];
  }
  std::copy_n(sorted, num_tails, tails);
}

template <class Word>
void sort_many_tails(Tail<RankedRecord<Word>>* tails, int64_t num_tails) {
  std::vector<Tail<RankedRecord<Word>>> room(num_tails);
  sort_by_source(tails, num_tails, room.data(), [](const auto& tail) { return tail.src; });
  const auto before = [](const auto& a, const auto& b) { return a.rank < b.rank; };
  for (auto *first = tails, *end = tails + num_tails, *last = first; first < end; first = last) {
    last = std::find_if(first, end, [&](const auto& tail) { return tail.src != first->src; });
    if (!std::is_sorted(first, last, before)) std::sort(first, last, before);
  }
}

template <class Word, class Index>
int64_t sort_tails(Tail<RankedRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices,
                   int64_t* perm) {
  if (num_tails <= 8) {
    sort_few_tails<8>(tails, num_tails);
  } else if (num_tails <= 16) {
    sort_few_tails<16>(tails, num_tails);
  } else if (num_tails <= 32) {
    sort_few_tails<32>(tails, num_tails);
  } else if (num_tails <= kFewTails) {
    sort_few_tails<kFewTails>(tails, num_tails);
  } else {
    sort_many_tails(tails, num_tails);
  }
  Tail<RankedRecord<Word>>* end = tails + num_tails;
  if (dedup) end = std::unique(tails, end, [](const auto& a, const auto& b) { return a.src == b.src; });
  const int64_t num_kept = end - tails;
  for (int64_t i = 0; i < num_kept; ++i) {
    indices[i] = static_cast<Index>(tails[i].src);
    if (perm) perm[i] = static_cast<int64_t>(tails[i].rank & ~kReverse<Word>);
  }
  return num_kept;
}

}  // namespace gnn_ibp
