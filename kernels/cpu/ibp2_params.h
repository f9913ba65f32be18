// The parameters of row format version 2: which bits of a chunk get a short code, and which code.
//
//   chunk = s (sf bits) | e (E bits) | tail (w bits) | z zero bits          most significant first
//
//   first level, k1 bits   | A: 2^k1 - g symbols  | g fields lead on
//   second level, 2 bits   | B: 4 g - 1 symbols   | the last field leads on
//   third level, 3 bits    | C: 7 symbols         | the last field is RAW: sf + E bits follow as they are
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gnn_ibp {

inline constexpr size_t kIbp2Block = 256;  // coded chunks whose later fields lie together
inline constexpr unsigned kIbp2Leaves = 32;
inline constexpr unsigned kIbp2Classes = 4;
inline constexpr unsigned kIbp2Symbols = 20;  // of a class, at most

// A symbol: bit 6 flips the sign, bits 4 to 0 are the number of a leaf.
inline constexpr uint8_t kIbp2Flip = 0x40;
inline constexpr uint8_t kIbp2Leaf = kIbp2Leaves - 1;

// A code for positions that are alike.
struct Ibp2Class {
  unsigned k1 = 0, g = 0;
  uint8_t symbols[kIbp2Symbols] = {};  // those of the levels A, B, C, back to back

  unsigned num_first() const { return (1u << k1) - g; }
  unsigned num_second() const { return g ? 4 * g - 1 : 0; }
  unsigned num_third() const { return g ? 7 : 0; }
  unsigned num_symbols() const { return num_first() + num_second() + num_third(); }
};

struct Ibp2Params {
  bool sparse = false;  // kind S: only chunks that differ from `zero` are coded
  unsigned chunk_bits = 0, sign_bits = 0, head_bits = 0, zero_bits = 0;  // W, sf, E, z
  unsigned levels = 0;                                                   // of the bitmap; kind D: 0
  size_t num_chunks = 0;
  std::vector<Ibp2Class> classes;
  uint64_t leaf[kIbp2Leaves] = {};
  uint64_t zero = 0;

  // One entry a position; kind S: one for all.
  std::vector<uint8_t> class_of, sign;
  std::vector<uint64_t> base;

  unsigned tail_bits() const { return chunk_bits - sign_bits - head_bits - zero_bits; }
};

// The parameters in a block of a file whose raw rows have `row_bytes` bytes. Throws std::invalid_argument
// that names the rule of the format the block breaks.
Ibp2Params parse_ibp2_params(const uint8_t* block, size_t block_bytes, size_t row_bytes);

}  // namespace gnn_ibp
