// The two planes of tails in format version 2: the upper bits of each as a stream of bits, the lower ones as
// whole bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/little_endian.h"

namespace gnn_ibp {

// Calls run with the bytes a chunk of the low plane as a constant.
template <typename Word, typename Run>
auto with_low_bytes(unsigned low_bytes, const Run& run) {
  const auto with = [&]<unsigned Bytes>(const auto& self, std::integral_constant<unsigned, Bytes>)
      -> decltype(run(std::integral_constant<unsigned, 0>{})) {
    if constexpr (Bytes + 1 < sizeof(Word)) {
      if (low_bytes != Bytes) return self(self, std::integral_constant<unsigned, Bytes + 1>{});
    }
    return run(std::integral_constant<unsigned, Bytes>{});
  };
  return with(with, std::integral_constant<unsigned, 0>{});
}

// The lower bits of a tail; may load 8 bytes.
template <typename Word, unsigned Bytes>
Word load_low(const uint8_t* low) {
  if constexpr (Bytes == 0) {
    return 0;
  } else if constexpr (Bytes <= 2) {
    return static_cast<Word>(Bytes == 1 ? *low : load_le<uint16_t>(low));
  } else {
    using Loaded = std::conditional_t<Bytes <= 4, uint32_t, uint64_t>;
    constexpr Loaded kBits = static_cast<Loaded>(~Loaded{0}) >> (8 * (sizeof(Loaded) - Bytes));
    return static_cast<Word>(load_le<Loaded>(low) & kBits);
  }
}

// Writes them, no byte more.
template <typename Word, unsigned Bytes>
void store_low(uint8_t* low, Word tail) {
  if constexpr (Bytes == 1 || Bytes == 2) {
    store_le(low, static_cast<std::conditional_t<Bytes == 1, uint8_t, uint16_t>>(tail));
  } else {
    const Word bytes = to_little_endian(tail);
    std::memcpy(low, &bytes, Bytes);
  }
}

// Moves eight fields of `width` bits, 0 to 7, apart to eight bytes and together again: halves, quarters,
// single fields.
class HighPlane {
 public:
  explicit HighPlane(unsigned width) {
    for (unsigned step = 0; step < 3; ++step) {
      const unsigned fields = 4 >> step;  // that stay together
      up_[step] = fields * (8 - width);
      const uint64_t low_half = (uint64_t{1} << fields * width) - 1;
      for (unsigned at = 0; at < 64; at += 16 * fields) low_[step] |= low_half << at;
      high_[step] = low_[step] << 8 * fields;
    }
  }

  uint64_t spread(uint64_t fields) const {
    for (unsigned step = 0; step < 3; ++step)
      fields = (fields & low_[step]) | (fields << up_[step] & high_[step]);
    return fields;
  }

  uint64_t gather(uint64_t bytes) const {
    for (unsigned step = 3; step-- > 0;) bytes = (bytes & low_[step]) | (bytes & high_[step]) >> up_[step];
    return bytes;
  }

 private:
  unsigned up_[3];
  uint64_t low_[3] = {}, high_[3];
};

}  // namespace gnn_ibp
