#include "cpu/ibp2_params.h"

#include <stdexcept>
#include <string>

#include "cpu/little_endian.h"

namespace gnn_ibp {
namespace {

constexpr size_t kHeadBytes = 8;
constexpr size_t kClassBytes = 2 + kIbp2Symbols;

void require(bool condition, const std::string& broken) {
  if (!condition) throw std::invalid_argument(broken);
}

void require_range(uint64_t value, uint64_t least, uint64_t most, const std::string& what) {
  require(value >= least && value <= most, what + " is " + std::to_string(value) + ", want " +
                                               std::to_string(least) + " to " + std::to_string(most));
}

// The block from front to end.
class Reader {
 public:
  explicit Reader(const uint8_t* at) : at_(at) {}

  uint8_t byte() { return *at_++; }

  uint64_t word(unsigned bits) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 8) value |= uint64_t{byte()} << shift;
    return value;
  }

 private:
  const uint8_t* at_;
};

// Returns the number of classes.
unsigned read_head(Reader& reader, size_t row_bytes, Ibp2Params& params) {
  const uint8_t kind = reader.byte();
  require(kind == 'D' || kind == 'S', "kind is neither D nor S");
  params.sparse = kind == 'S';
  params.chunk_bits = reader.byte();
  const unsigned W = params.chunk_bits;
  require(W == 8 || W == 16 || W == 32 || W == 64, "W is " + std::to_string(W) + ", want 8, 16, 32 or 64");
  require(row_bytes % (W / 8) == 0, "chunk_bits does not divide the row");
  params.num_chunks = row_bytes / (W / 8);
  params.sign_bits = reader.byte();
  require_range(params.sign_bits, 0, 1, "sf");
  params.head_bits = reader.byte();
  require_range(params.head_bits, 1, W - params.sign_bits, "E");
  params.zero_bits = reader.byte();
  require_range(params.zero_bits, 0, W - params.sign_bits - params.head_bits, "z");
  params.levels = reader.byte();
  require_range(params.levels, params.sparse ? 1 : 0, params.sparse ? 3 : 0, "levels");
  const unsigned num_classes = reader.byte();
  require_range(num_classes, 1, params.sparse ? 1 : kIbp2Classes, "number of classes");
  require_range(reader.byte(), 0, 0, "byte 7");
  return num_classes;
}

Ibp2Class read_class(Reader& reader, unsigned sign_bits) {
  Ibp2Class made;
  made.k1 = reader.byte();
  made.g = reader.byte();
  require_range(made.k1, 0, 3, "k1");
  require_range(made.g, 0, made.k1 == 0 ? 0 : 2, "g");
  for (unsigned i = 0; i < kIbp2Symbols; ++i) {
    const uint8_t symbol = made.symbols[i] = reader.byte();
    require(i < made.num_symbols() || symbol == 0, "an unused symbol is not 0");
    require((symbol & ~(kIbp2Flip | kIbp2Leaf)) == 0, "a symbol has a bit other than 6 and 4 to 0");
    require(sign_bits || (symbol & kIbp2Flip) == 0, "a symbol has t = 1, want 0 where sf is 0");
  }
  return made;
}

void read_positions(Reader& reader, Ibp2Params& params) {
  const size_t count = params.sparse ? 1 : params.num_chunks;
  params.class_of.resize(count);
  params.sign.resize(count);
  params.base.resize(count);
  for (size_t j = 0; j < count; ++j) {
    const uint8_t byte = reader.byte();
    params.class_of[j] = byte & 0x7F;
    params.sign[j] = byte >> 7;
    require(params.class_of[j] < params.classes.size(), "a position has a class that there is not");
    require(params.sign[j] <= params.sign_bits, "a position has sgn 1, want 0 where sf is 0");
  }
  for (uint64_t& base : params.base) base = reader.word(params.chunk_bits);
}

}  // namespace

Ibp2Params parse_ibp2_params(const uint8_t* block, size_t block_bytes, size_t row_bytes) {
  require(block_bytes >= kHeadBytes, "the block is shorter than its head");
  Reader reader(block);
  Ibp2Params params;
  const unsigned num_classes = read_head(reader, row_bytes, params);
  const size_t S = params.chunk_bits / 8, num_positions = params.sparse ? 1 : params.num_chunks;
  const size_t want =
      kHeadBytes + kIbp2Classes * kClassBytes + (kIbp2Leaves + 1) * S + num_positions * (1 + S);
  require(block_bytes == want,
          "the block has " + std::to_string(block_bytes) + " bytes, want " + std::to_string(want));
  for (unsigned c = 0; c < num_classes; ++c) params.classes.push_back(read_class(reader, params.sign_bits));
  for (size_t i = 0; i < (kIbp2Classes - num_classes) * kClassBytes; ++i)
    require(reader.byte() == 0, "an unused class is not 0");
  for (uint64_t& leaf : params.leaf) leaf = reader.word(params.chunk_bits);
  params.zero = reader.word(params.chunk_bits);
  require_range(params.zero, 0, params.sparse ? ~uint64_t{0} : 0, "zero");
  read_positions(reader, params);
  const uint64_t largest = ~uint64_t{0} >> (64 - params.head_bits);
  for (const uint64_t leaf : params.leaf) require(leaf <= largest, "a leaf has more than E bits");
  for (const uint64_t base : params.base) require(base <= largest, "a base has more than E bits");
  return params;
}

}  // namespace gnn_ibp
