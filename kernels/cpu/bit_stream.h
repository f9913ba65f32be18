// The payload of an encoded row as a stream of bits: words of W bits, each filled from the top down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/little_endian.h"
#include "ibp_row.h"

namespace gnn_ibp {

// 64 bits of the payload from bit `at` on; at least 64 - (W - 1) of them, all 64 for W = 64.
template <typename Word>
inline uint64_t stream_at(const uint8_t* payload, uint64_t at) {
  constexpr unsigned W = 8 * sizeof(Word);
  const uint8_t* word = payload + at / W * sizeof(Word);
  const uint64_t stream = swap_words<Word>(load_le<uint64_t>(word)) << at % W;
  if constexpr (W < 64) return stream;
  return stream | load_le<uint64_t>(word + 8) >> 1 >> (63 - at % W);
}

// Collects the payload's stream. After at most kMaxAppends calls of append() comes one of flush().
template <typename Word, size_t kMaxAppends>
class BitWriter {
 public:
  // Appends the low `width` bits, 0 to 64; the others are 0. Every call writes its word without a branch;
  // one that is not full yet is written again by the next call.
  void append(uint64_t bits, unsigned width) {
    const uint64_t left = bits << ((64 - width) & 63);
    pending_ |= left >> used_;
    full_[num_full_] = to_little_endian(swap_words<Word>(pending_));
    const uint64_t rest = left << 1 << (63 - used_);
    const unsigned end = used_ + width;
    const uint64_t filled = -static_cast<uint64_t>(end >> 6);
    pending_ = (rest & filled) | (pending_ & ~filled);
    used_ = end & 63;
    num_full_ += end >> 6;
  }

  // Copies the full words to `out` and returns the end.
  uint8_t* flush(uint8_t* out) {
    const size_t bytes = num_full_ * sizeof(uint64_t);
    std::memcpy(out, full_, bytes);
    num_full_ = 0;
    return out + bytes;
  }

  // Copies the last words, filled up with zeros.
  void finish(uint8_t* out) const {
    const uint64_t word = to_little_endian(swap_words<Word>(pending_));
    std::memcpy(out, &word, (used_ + 8 * sizeof(Word) - 1) / (8 * sizeof(Word)) * sizeof(Word));
  }

 private:
  uint64_t pending_ = 0;  // bits of the word that is not yet full, at its high end
  unsigned used_ = 0;     // their number, less than 64
  size_t num_full_ = 0;
  uint64_t full_[kMaxAppends + 1];
};

}  // namespace gnn_ibp
