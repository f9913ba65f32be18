// Counts ones in many words, in plain operations on words side by side, which compilers turn into vectors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gnn_ibp {

inline constexpr size_t kCountedWords = 32;  // words are counted in blocks of so many

// Adds three words bit by bit: `sum` keeps the ones of each place, the carries are returned.
inline uint64_t add_bits(uint64_t& sum, uint64_t a, uint64_t b) {
  const uint64_t either = sum ^ a;
  const uint64_t carry = (sum & a) | (either & b);
  sum = either ^ b;
  return carry;
}

// The ones of the upper and of the lower 32 bits of x, in these.
inline uint64_t ones_of_halves(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F;
  x = (x & 0x00FF00FF00FF00FF) + (x >> 8 & 0x00FF00FF00FF00FF);
  return (x & 0x0000FFFF0000FFFF) + (x >> 16 & 0x0000FFFF0000FFFF);
}

// Ones of a & b: num_words words, a multiple of kCountedWords and less than 2^32. Adders of bits leave one
// word of eight to be counted (Harley and Seal's method).
inline int64_t count_ones(const uint64_t* a, const uint64_t* b, size_t num_words) {
  constexpr size_t kLanes = kCountedWords / 8;
  uint64_t ones[kLanes] = {}, twos[kLanes] = {}, fours[kLanes] = {}, eights[kLanes] = {};
  for (size_t first = 0; first < num_words; first += kCountedWords)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto word = [&, at = first + lane](size_t k) { return a[at + k * kLanes] & b[at + k * kLanes]; };
      const uint64_t two0 = add_bits(ones[lane], word(0), word(1));
      const uint64_t two1 = add_bits(ones[lane], word(2), word(3));
      const uint64_t two2 = add_bits(ones[lane], word(4), word(5));
      const uint64_t two3 = add_bits(ones[lane], word(6), word(7));
      const uint64_t four0 = add_bits(twos[lane], two0, two1);
      const uint64_t four1 = add_bits(twos[lane], two2, two3);
      eights[lane] += ones_of_halves(add_bits(fours[lane], four0, four1));
    }
  int64_t count = 0;
  for (size_t lane = 0; lane < kLanes; ++lane)
    count += std::popcount(ones[lane]) + 2 * std::popcount(twos[lane]) + 4 * std::popcount(fours[lane]) +
             8 * static_cast<int64_t>((eights[lane] >> 32) + (eights[lane] & 0xFFFFFFFF));
  return count;
}

}  // namespace gnn_ibp
