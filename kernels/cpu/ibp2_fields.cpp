#include "cpu/ibp2_fields.h"

#include <algorithm>

namespace gnn_ibp {
namespace {

// Fields are joined for a group of chunks before they are appended; those of the third level and RAW are few.
template <typename Word>
void write_fields(const Ibp2BlockFields<Word>& block, LowBitWriter& firsts, LowBitWriter& later) {
  const Ibp2Symbols<Word>& symbols = block.symbols;
  uint16_t found[kIbp2Block];
  uint8_t thirds[kIbp2Block];
  size_t num_thirds = 0;
  symbols.find(block.chunks, block.entry, block.count, found);
  const uint8_t* at = block.first_at;
  for (size_t begin = 0; begin < block.count; begin += kIbp2Group, ++at) {
    const size_t end = std::min(block.count, begin + kIbp2Group);
    uint64_t first_fields = 0, second_fields = 0;
    unsigned second_at = 0;
    for (size_t i = begin; i < end; ++i, ++at) {
      const Ibp2Code code = symbols.code(found[i]);
      first_fields |= uint64_t{code.first} << *at;
      second_fields |= uint64_t{code.second} << second_at;
      second_at += 2 * (code.level >= 2);
      thirds[num_thirds] = static_cast<uint8_t>(i);
      num_thirds += code.level >= 3;
    }
    firsts.append(first_fields, *at);
    later.append(second_fields, second_at);
  }
  for (size_t k = 0; k < num_thirds; ++k) later.append(symbols.code(found[thirds[k]]).third, 3);
  for (size_t k = 0; k < num_thirds; ++k)
    if (symbols.code(found[thirds[k]]).level == Ibp2Code::kRaw)
      later.append(block.head(thirds[k]), block.top_bits);
}

}  // namespace

template <typename Word>
Ibp2WriteFields<Word> ibp2_write_fields_portable() {
  return write_fields<Word>;
}

template Ibp2WriteFields<uint8_t> ibp2_write_fields_portable();
template Ibp2WriteFields<uint16_t> ibp2_write_fields_portable();
template Ibp2WriteFields<uint32_t> ibp2_write_fields_portable();
template Ibp2WriteFields<uint64_t> ibp2_write_fields_portable();

}  // namespace gnn_ibp
