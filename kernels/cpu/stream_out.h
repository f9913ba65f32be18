// Rows written past the caches: a batch that does not fit them would only push out what is about to be read,
// and each of its lines would be read from memory before it is overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gnn_ibp {

// Of the last cache, what one process may hope for; systems report the whole machine's.
inline constexpr size_t kCacheShare = size_t{16} << 20;

// Copies a row; whole cache lines go to memory directly. finish_streaming() before others read them.
inline void stream_row(uint8_t* to, const uint8_t* from, size_t num_bytes) {
#if defined(__x86_64__)
  constexpr size_t kLine = 64;
  const size_t before = -reinterpret_cast<uintptr_t>(to) % kLine;  // a part of a line stays in the caches
  if (num_bytes < before + kLine) {
    std::memcpy(to, from, num_bytes);
    return;
  }
  std::memcpy(to, from, before);
  to += before, from += before, num_bytes -= before;
  for (; num_bytes >= kLine; to += kLine, from += kLine, num_bytes -= kLine) {
    for (size_t at = 0; at < kLine; at += 16) {
      const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), piece);
    }
  }
#endif
  std::memcpy(to, from, num_bytes);
}

inline void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace gnn_ibp
