// The edges of one destination, sorted by source, and by rank where they have one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "cpu/edge_record.h"

namespace gnn_ibp {

constexpr int64_t kFewTails = 64;

// Places each source behind all smaller ones, whose number it counts: nothing there is to be guessed by the
// processor, and comparisons go side by side. Equal sources meet in one place; the places behind it that
// stay empty are left out, or filled.
template <int64_t kRoom, class Word, class Index>
int64_t sort_few_tails(const Tail<EdgeRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices) {
  using Key = std::make_signed_t<Word>;  // processors compare signed words side by side
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  Key keys[kRoom] = {}, num_smaller[kRoom] = {};
  for (int64_t i = 0; i < num_tails; ++i) keys[i] = static_cast<Key>(tails[i].src ^ kSign);
  for (int64_t j = 0; j < num_tails; ++j)
    for (int64_t i = 0; i < kRoom; ++i) num_smaller[i] += keys[j] < keys[i];

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

// One pass of a radix sort by the byte at `shift`.
template <class From, class To, class SrcOf>
void sort_by_byte(const From* from, int64_t count, int shift, To* to, const SrcOf& src_of) {
  std::array<uint32_t, 257> starts{};
  const auto byte_of = [&](const From& value) { return src_of(value) >> shift & 0xFF; };
  for (int64_t i = 0; i < count; ++i) ++starts[byte_of(from[i]) + 1];
  for (int byte = 1; byte < 256; ++byte) starts[byte + 1] += starts[byte];
  for (int64_t i = 0; i < count; ++i) to[starts[byte_of(from[i])]++] = To(src_of(from[i]));
}

template <class Word, class Index>
int64_t sort_many_tails(Tail<EdgeRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices) {
  const auto of_tail = [](Tail<EdgeRecord<Word>> tail) { return tail.src; };
  const auto of_index = [](Index index) { return static_cast<Word>(index); };
  Word all = 0;
  for (int64_t i = 0; i < num_tails; ++i) all |= tails[i].src;
  int shift = 0;
  for (; shift < 8 * static_cast<int>(sizeof(Word)) && all >> shift; shift += 16) {
    sort_by_byte(tails, num_tails, shift, indices, of_tail);
    sort_by_byte(indices, num_tails, shift + 8, tails, of_index);
  }
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

template <class Word, class Index>
int64_t sort_tails(Tail<RankedRecord<Word>>* tails, int64_t num_tails, bool dedup, Index* indices,
                   int64_t* perm) {
  Tail<RankedRecord<Word>>* end = tails + num_tails;
  std::sort(tails, end,
            [](const auto& a, const auto& b) { return std::tie(a.src, a.rank) < std::tie(b.src, b.rank); });
  if (dedup) end = std::unique(tails, end, [](const auto& a, const auto& b) { return a.src == b.src; });
  const int64_t num_kept = end - tails;
  for (int64_t i = 0; i < num_kept; ++i) {
    indices[i] = static_cast<Index>(tails[i].src);
    if (perm) perm[i] = static_cast<int64_t>(tails[i].rank & ~kReverse);
  }
  return num_kept;
}

}  // namespace gnn_ibp
