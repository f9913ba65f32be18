// What decoders of row format version 2 by vector instructions look up, laid out as their registers are.
//
// A field of a stream gets a lane of 16 bits: a shuffle of a window of the stream puts the two bytes there
// that hold it, a multiplication shifts it by its own distance. Windows begin a byte early, so that each
// field begins 1 to 8 bits above the lower end of its lane: the upper half of its product with 2^(16 - shift)
// then has it at the lower end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/ibp2_params.h"

namespace gnn_ibp {

// The chunk of a part whose byte stands at place i of a vector of so many lanes in the order of tops: where
// unpacking bytes to chunks of S bytes, in each 16 bytes by itself, gives them in order.
constexpr size_t ibp2_chunk_at(size_t i, size_t lanes, size_t S) {
  const size_t together = 16 / S;  // chunks that 16 bytes hold
  const size_t unit = i % 16 / together, row = i / 16;
  return (unit * (lanes / 16) + row) * together + i % together;
}

class Ibp2LaneTables {
 public:
  // lanes: bytes of a vector, 0, 16, 32 or 64; a part of a block is as many chunks.
  Ibp2LaneTables(const Ibp2Params& params, size_t lanes);

  // Whether heads and upper tail bits of chunks fit in 16 bits, and no shift parts the rest of them.
  bool has_tops;

  // First fields: where the window of a part begins, in bytes after the stream, and seven vectors a part: of
  // the even chunks and of the odd ones the bytes of the window, the factors, and ones in place of the
  // field's bits; then eight times the classes. Odd fields are shifted up, to the upper bytes.
  std::vector<uint64_t> window_at;
  std::vector<uint8_t> first;

  // Upper bits of tails, for half of a part, in the order of tops: bytes of the window, factors.
  std::vector<uint8_t> high;

  // Whether heads without their sign fit in a byte.
  bool has_byte_heads;

  // A vector and one or two more a part, in the order of tops: of each position sgn as kIbp2Flip in a byte,
  // and base as the upper bits of a byte (has_byte_heads) or of 16.
  std::vector<uint8_t> tops;
  uint8_t leaf[2][kIbp2Leaves];  // the lower and the upper byte of leaves as the upper bits of 16

 private:
  void add_first(const Ibp2Params& params, size_t lanes, size_t num_parts);
  void add_tops(const Ibp2Params& params, size_t lanes, size_t num_parts);
};

}  // namespace gnn_ibp
