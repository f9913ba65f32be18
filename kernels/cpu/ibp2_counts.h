// What row format version 2 is fitted on: how often each head occurs at each position, and which value is the
// most frequent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gnn_ibp {

// counts (num_positions, 2^bits): for each position how many of the chunks have each value in the `bits`
// bits from bit `shift` on; bits: 1 to 16. chunks: little-endian (num_rows, num_positions).
template <typename Word>
void count_tops(const uint8_t* chunks, int64_t num_rows, size_t num_positions, unsigned shift, unsigned bits,
                uint32_t* counts);

template <typename Word>
struct Commonest {
  Word value;
  int64_t count;
};

// The most frequent of the chunks, the smallest of equals; nothing where no more than `least` have it. Fast
// where `least` are some hundredths of all: then few values can be so frequent.
template <typename Word>
std::optional<Commonest<Word>> commonest(const uint8_t* chunks, int64_t num_chunks, int64_t least);

}  // namespace gnn_ibp
