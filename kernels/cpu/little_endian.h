// Unaligned little-endian words in memory, on any machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace gnn_ibp {

template <typename Word>
inline Word to_little_endian(Word word) {
  if constexpr (std::endian::native == std::endian::little || sizeof(Word) == 1) {
    return word;
  } else {
    Word swapped = 0;
    for (size_t i = 0; i < sizeof(Word); ++i)
      swapped = static_cast<Word>(swapped | (word >> (8 * i) & 0xFF) << (8 * (sizeof(Word) - 1 - i)));
    return swapped;
  }
}

template <typename Word>
inline Word load_le(const uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof(Word));
  return to_little_endian(word);
}

template <typename Word>
inline void store_le(uint8_t* at, Word word) {
  word = to_little_endian(word);
  std::memcpy(at, &word, sizeof(Word));
}

}  // namespace gnn_ibp
