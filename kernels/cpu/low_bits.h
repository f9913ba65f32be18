// Streams of bits, least significant bit of each byte first, as row format version 2 has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/little_endian.h"

namespace gnn_ibp {

// Bits of the stream from bit `at` on: 57 of them at least; reads 8 bytes.
inline uint64_t low_bits_at(const uint8_t* stream, uint64_t at) {
  return load_le<uint64_t>(stream + at / 8) >> at % 8;
}

// 64 bits of the stream from bit `at` on; reads 16 bytes.
inline uint64_t low_word_at(const uint8_t* stream, uint64_t at) {
  return low_bits_at(stream, at) | load_le<uint64_t>(stream + at / 8 + 8) << 1 << (63 - at % 8);
}

// Writes a stream, no byte beyond it.
class LowBitWriter {
 public:
  explicit LowBitWriter(uint8_t* out) : out_(out) {}

  // Appends the low `width` bits, 0 to 64; the others are 0.
  void append(uint64_t bits, unsigned width) {
    pending_ |= bits << used_;
    used_ += width;
    if (used_ < 64) return;
    store_le(out_, pending_);
    out_ += 8;
    used_ -= 64;
    pending_ = used_ ? bits >> (width - used_) : 0;
  }

  // Writes the last bytes, filled up with zeros, and returns their end.
  uint8_t* finish() {
    const uint64_t word = to_little_endian(pending_);
    const size_t bytes = (used_ + 7) / 8;
    std::memcpy(out_, &word, bytes);
    return out_ + bytes;
  }

 private:
  uint8_t* out_;
  uint64_t pending_ = 0;
  unsigned used_ = 0;  // bits of pending_, fewer than 64
};

}  // namespace gnn_ibp
