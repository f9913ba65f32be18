// Masks by the paper's thresholds, from the ones of each bit.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <type_traits>
#include <vector>

#include "cpu/fit.h"
#include "cpu/little_endian.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int kFirstPercent = 70, kPercentStep = 5;
constexpr size_t kNumPercents = 6;

// The masks of one threshold.
template <typename Word>
class Candidate {
 public:
  Candidate(const int64_t* ones, int64_t num_rows, size_t row_bytes, int percent)
      : mask_bytes(row_bytes), bitval_bytes(row_bytes) {
    fit_threshold(ones, num_rows, row_bytes, percent, mask_bytes.data(), bitval_bytes.data());
    for (size_t at = 0; at < row_bytes; at += sizeof(Word)) {
      mask_.push_back(load_le<Word>(&mask_bytes[at]));
      bitval_.push_back(load_le<Word>(&bitval_bytes[at]));
      saved_.push_back(static_cast<Saved>(std::popcount(mask_.back())));
    }
  }

  // The paper's objective for a row: max(0, bits saved by participating chunks - chunks).
  int64_t gain(const uint8_t* row) const {
    int64_t bits = 0;
    for (size_t first = 0; first < mask_.size(); first += kBlock)
      bits += saved_in_block(row, first, std::min(mask_.size(), first + kBlock));
    return std::max<int64_t>(0, bits - static_cast<int64_t>(mask_.size()));
  }

  std::vector<uint8_t> mask_bytes, bitval_bytes;

 private:
  // As narrow as a chunk, so that vectors of chunks and of sums go together; wide enough for a block.
  using Saved = std::conditional_t<sizeof(Word) == 1, uint16_t, Word>;
  static constexpr size_t kBlock = 1023;

  int64_t saved_in_block(const uint8_t* row, size_t first, size_t end) const {
    const Word *mask = mask_.data(), *bitval = bitval_.data();
    const Saved* saved = saved_.data();
    Saved bits = 0;
    for (size_t j = first; j < end; ++j) {
      // Neither a branch nor, for 64 bits, a comparison, so that compilers vectorise it.
      const Word differs = (load_le<Word>(row + j * sizeof(Word)) & mask[j]) ^ bitval[j];
      const Saved takes_part = sizeof(Word) < 8 ? differs == 0 : ~(differs | (0 - differs)) >> 63;
      bits = static_cast<Saved>(bits + (saved[j] & -takes_part));
    }
    return static_cast<int64_t>(bits);
  }

  std::vector<Word> mask_, bitval_;
  std::vector<Saved> saved_;  // bits, where the chunk participates
};

template <typename Word>
void sweep(const uint8_t* rows, int64_t num_rows, size_t row_bytes, const int64_t* ones, uint8_t* mask,
           uint8_t* bitval) {
  std::vector<Candidate<Word>> candidates;
  for (size_t k = 0; k < kNumPercents; ++k)
    candidates.emplace_back(ones, num_rows, row_bytes, kFirstPercent + kPercentStep * static_cast<int>(k));
  std::array<std::atomic<int64_t>, kNumPercents> gains{};
  parallel_for(num_rows, 256, [&](int64_t begin, int64_t end) {
    int64_t sums[kNumPercents] = {};
    for (int64_t i = begin; i < end; ++i)
      for (size_t k = 0; k < kNumPercents; ++k)
        sums[k] += candidates[k].gain(rows + static_cast<size_t>(i) * row_bytes);
    for (size_t k = 0; k < kNumPercents; ++k) gains[k] += sums[k];
  });
  const auto most = static_cast<size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
  std::copy_n(candidates[most].mask_bytes.data(), row_bytes, mask);
  std::copy_n(candidates[most].bitval_bytes.data(), row_bytes, bitval);
}

}  // namespace

void fit_threshold(const int64_t* ones, int64_t num_rows, size_t row_bytes, int percent, uint8_t* mask,
                   uint8_t* bitval) {
  std::fill_n(mask, row_bytes, uint8_t{0});
  std::fill_n(bitval, row_bytes, uint8_t{0});
  for (size_t bit = 0; bit < 8 * row_bytes; ++bit) {
    const uint8_t place = static_cast<uint8_t>(1u << bit % 8);
    const bool set = 100 * ones[bit] > percent * num_rows;
    if (set) bitval[bit / 8] |= place;
    if (set || 100 * ones[bit] < (100 - percent) * num_rows) mask[bit / 8] |= place;
  }
}

void fit_sweep(const uint8_t* rows, int64_t num_rows, size_t row_bytes, const int64_t* ones, int chunk_bits,
               uint8_t* mask, uint8_t* bitval) {
  switch (chunk_bits) {
    case 8:
      return sweep<uint8_t>(rows, num_rows, row_bytes, ones, mask, bitval);
    case 16:
      return sweep<uint16_t>(rows, num_rows, row_bytes, ones, mask, bitval);
    case 32:
      return sweep<uint32_t>(rows, num_rows, row_bytes, ones, mask, bitval);
    default:
      return sweep<uint64_t>(rows, num_rows, row_bytes, ones, mask, bitval);
  }
}

}  // namespace gnn_ibp
