// The IBP row, format version 1: layout and bit code, shared by host and device.
//
//   W = chunk_bits, S = W / 8, V = chunks per row; all words little-endian
//
//   | participation bits          | payload                                                     |
//   | bit j is byte j/8, bit j%8  | W-bit words, each filled from its MOST significant bit down |
//   | ceil(V/8) bytes, zeros up   | chunk j adds, high to low: the bits where its mask has a 0  |
//   | to a multiple of S          | if it participates, all W bits if not                       |
//
//   A chunk participates where (chunk & mask) == bitval. The unused low bits of the last word are 0.
//   A row that would take V * S bytes or more is stored raw.
#pragma once

#include "integers.h"

#ifdef __CUDACC__
#define GNN_IBP_HD __host__ __device__ __forceinline__
#else
#define GNN_IBP_HD inline
#endif

namespace gnn_ibp {

template <typename Word>
struct WordBits {
  static constexpr unsigned value = 8 * sizeof(Word);
};

// Bytes of the participation bits of a row.
GNN_IBP_HD size_t participation_bytes(size_t num_chunks, size_t word_bytes) {
  return ((num_chunks + 7) / 8 + word_bytes - 1) / word_bytes * word_bytes;
}

// Bytes of an encoded row whose payload has `payload_bits` bits.
GNN_IBP_HD size_t encoded_size(size_t num_chunks, size_t word_bytes, uint64_t payload_bits) {
  const uint64_t words = (payload_bits + 8 * word_bytes - 1) / (8 * word_bytes);
  return participation_bytes(num_chunks, word_bytes) + static_cast<size_t>(words) * word_bytes;
}

// Eight bytes of payload, loaded little-endian, so that the stream runs from the top bit down; and back.
template <typename Word>
GNN_IBP_HD uint64_t swap_words(uint64_t bytes) {
  constexpr unsigned W = WordBits<Word>::value;
  if (W <= 32) bytes = bytes << 32 | bytes >> 32;
  if (W <= 16) bytes = (bytes & 0x0000FFFF0000FFFFu) << 16 | (bytes >> 16 & 0x0000FFFF0000FFFFu);
  if (W <= 8) bytes = (bytes & 0x00FF00FF00FF00FFu) << 8 | (bytes >> 8 & 0x00FF00FF00FF00FFu);
  return bytes;
}

// The top `width` bits of `stream`, 0 to W. A shift by 64 would be undefined, hence two, or a mask.
template <typename Word>
GNN_IBP_HD Word top_bits(uint64_t stream, unsigned width) {
  if (WordBits<Word>::value < 64) return static_cast<Word>(stream >> 1 >> ((63 - width) & 63));
  return static_cast<Word>(stream >> ((64 - width) & 63) & -static_cast<uint64_t>(width != 0));
}

// Where the kept bits of a chunk go. Bit p of `keep` lies at rank(p), the number of kept bits below it, in
// the payload. Its way down, p - rank(p), is split into powers of two: moves[i] holds the places, before
// the step, of the bits that step i moves down by 2^i. Steps never run two bits into one place.
template <typename Word>
GNN_IBP_HD unsigned split_moves(Word keep, Word* moves) {
  constexpr unsigned W = WordBits<Word>::value;
  unsigned rank = 0, num_steps = 0;
  for (unsigned i = 0; (1u << i) < W; ++i) moves[i] = 0;
  for (unsigned p = 0; p < W; ++p) {
    if (!(keep >> p & 1)) continue;
    unsigned place = p;
    const unsigned down = p - rank++;
    for (unsigned i = 0; (1u << i) <= down; ++i) {
      if (!(down >> i & 1)) continue;
      moves[i] = static_cast<Word>(moves[i] | static_cast<Word>(1) << place);
      place -= 1u << i;
      if (num_steps < i + 1) num_steps = i + 1;
    }
  }
  return num_steps;  // steps that move anything: 0 to log2(W)
}

// One step of gathering kept bits at the low end; apply steps upwards to chunk & keep.
template <typename Word>
GNN_IBP_HD Word move_down(Word value, Word moves, unsigned step) {
  const Word moved = static_cast<Word>(value & moves);
  return static_cast<Word>(static_cast<Word>(value ^ moved) | static_cast<Word>(moved >> (1u << step)));
}

// One step of spreading them again; apply steps downwards, then & keep.
template <typename Word>
GNN_IBP_HD Word move_up(Word value, Word moves, unsigned step) {
  const Word moved = static_cast<Word>(static_cast<Word>(value << (1u << step)) & moves);
  return static_cast<Word>(static_cast<Word>(value & static_cast<Word>(~moves)) | moved);
}

}  // namespace gnn_ibp
