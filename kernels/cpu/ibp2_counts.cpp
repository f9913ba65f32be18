#include "cpu/ibp2_counts.h"

#include <algorithm>
#include <vector>

#include "cpu/little_endian.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {

template <typename Word>
void count_tops(const uint8_t* chunks, int64_t num_rows, size_t num_positions, unsigned shift, unsigned bits,
                uint32_t* counts) {
  // As many positions together as have their counts in the second cache, but whole lines of memory.
  constexpr size_t kCacheCounts = 1 << 16, kLine = 64 / sizeof(Word);
  const size_t together = std::max(kLine, kCacheCounts >> bits);
  const size_t row_bytes = num_positions * sizeof(Word);
  const size_t mask = (size_t{1} << bits) - 1;
  const auto count = [&](size_t first, size_t last) {
    std::fill(counts + (first << bits), counts + (last << bits), 0u);
    for (int64_t i = 0; i < num_rows; ++i) {
      const uint8_t* row = chunks + static_cast<size_t>(i) * row_bytes;
      for (size_t j = first; j < last; ++j)
        ++counts[(j << bits) + (load_le<Word>(row + j * sizeof(Word)) >> shift & mask)];
    }
  };
  const int64_t num_tiles = static_cast<int64_t>((num_positions + together - 1) / together);
  parallel_for(num_tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const size_t first = static_cast<size_t>(tile) * together;
      count(first, std::min(num_positions, first + together));
    }
  });
}

// Digit by digit from the top: a value can only be frequent where what it begins with is. Few beginnings
// are, so each digit takes one pass over the chunks.
template <typename Word>
std::optional<Commonest<Word>> commonest(const uint8_t* chunks, int64_t num_chunks, int64_t least) {
  constexpr unsigned W = 8 * sizeof(Word), kDigit = std::min(W, 16u);
  constexpr size_t kDigits = size_t{1} << kDigit;
  std::vector<Commonest<Word>> frequent{{0, num_chunks}};  // by what they begin with
  for (unsigned shift = W; shift > 0 && !frequent.empty();) {
    shift -= kDigit;
    std::vector<int64_t> counts(frequent.size() * kDigits);
    for (int64_t i = 0; i < num_chunks; ++i) {
      const uint64_t beginning = load_le<Word>(chunks + static_cast<size_t>(i) * sizeof(Word)) >> shift;
      for (size_t k = 0; k < frequent.size(); ++k)
        if (frequent[k].value == beginning >> kDigit) ++counts[k * kDigits + beginning % kDigits];
    }
    std::vector<Commonest<Word>> next;
    for (size_t k = 0; k < counts.size(); ++k) {
      const uint64_t above = uint64_t{frequent[k / kDigits].value} << kDigit;
      if (counts[k] > least) next.push_back({static_cast<Word>(above | k % kDigits), counts[k]});
    }
    frequent = std::move(next);
  }
  if (frequent.empty()) return {};
  return *std::max_element(frequent.begin(), frequent.end(),
                           [](const auto& a, const auto& b) { return a.count < b.count; });
}

#define GNN_IBP_COUNTS(Word)                                                                      \
  template void count_tops<Word>(const uint8_t*, int64_t, size_t, unsigned, unsigned, uint32_t*); \
  template std::optional<Commonest<Word>> commonest<Word>(const uint8_t*, int64_t, int64_t);

GNN_IBP_COUNTS(uint8_t)
GNN_IBP_COUNTS(uint16_t)
GNN_IBP_COUNTS(uint32_t)
GNN_IBP_COUNTS(uint64_t)

}  // namespace gnn_ibp
