// The fields of eight chunks at a time: a byte has all fields of a chunk, pext takes those of a level
// together.
#include "cpu/ibp2_fields.h"

#ifdef GNN_IBP_X86
#include <immintrin.h>

#define GNN_IBP_TARGET __attribute__((target("bmi,bmi2,popcnt")))

namespace gnn_ibp {
namespace {

constexpr size_t kEights = kIbp2Block / 8;
constexpr uint64_t kEach = 0x0101010101010101u;

// Of the chunks of a block, filled up to whole eights, all fields, and which behind the first one there are,
// as Ibp2Symbols tells them.
struct Fields {
  uint8_t all[kIbp2Block], later[kIbp2Block];

  template <typename Word>
  GNN_IBP_TARGET explicit Fields(const Ibp2BlockFields<Word>& block) {
    uint16_t found[kIbp2Block];
    block.symbols.find(block.chunks, block.entry, block.count, found);
    const uint16_t* fields = block.symbols.fields();
    for (size_t i = 0; i < block.count; ++i) found[i] = fields[found[i]];
    size_t end = block.count;
    for (; end % 8; ++end) found[end] = 0;
    for (size_t i = 0; i < end; ++i) {
      all[i] = static_cast<uint8_t>(found[i]);
      later[i] = static_cast<uint8_t>(found[i] >> 8);
    }
  }
};

// Bits of a stream.
struct Bits {
  uint64_t bits;
  unsigned width;
};
GNN_IBP_TARGET Bits extract(uint64_t fields, uint64_t mask) {
  return {_pext_u64(fields, mask), static_cast<unsigned>(_mm_popcnt_u64(mask))};
}

template <typename Word>
GNN_IBP_TARGET void write_fields(const Ibp2BlockFields<Word>& block, LowBitWriter& firsts,
                                 LowBitWriter& later) {
  using Symbols = Ibp2Symbols<Word>;
  const Fields fields(block);
  Bits thirds[kEights];
  uint64_t raw[kEights / 8] = {};
  const size_t num_eights = (block.count + 7) / 8;
  for (size_t i = 0; i < num_eights; ++i) {
    const uint64_t eight = load_le<uint64_t>(fields.all + 8 * i);
    const uint64_t mask = load_le<uint64_t>(fields.later + 8 * i);
    const size_t left = block.count - 8 * i;
    const uint64_t there = left < 8 ? ~(~uint64_t{0} << 8 * left) : ~uint64_t{0};
    const Bits first = extract(eight, block.first_masks[i] & there);
    const Bits second = extract(eight, mask & Symbols::kSecondBits * kEach);
    firsts.append(first.bits, first.width);
    later.append(second.bits, second.width);
    thirds[i] = extract(eight, mask & Symbols::kThirdBits * kEach);
    raw[i / 8] |= _pext_u64(mask, Symbols::kIsRaw * kEach) << 8 * (i % 8);
  }
  for (size_t i = 0; i < num_eights; ++i) later.append(thirds[i].bits, thirds[i].width);
  for (size_t i = 0; i < kEights / 8; ++i)
    for (uint64_t ones = raw[i]; ones; ones &= ones - 1)
      later.append(block.head(64 * i + _tzcnt_u64(ones)), block.top_bits);
}

}  // namespace

template <typename Word>
Ibp2WriteFields<Word> ibp2_write_fields_bmi2() {
  return write_fields<Word>;
}

template Ibp2WriteFields<uint8_t> ibp2_write_fields_bmi2();
template Ibp2WriteFields<uint16_t> ibp2_write_fields_bmi2();
template Ibp2WriteFields<uint32_t> ibp2_write_fields_bmi2();
template Ibp2WriteFields<uint64_t> ibp2_write_fields_bmi2();

}  // namespace gnn_ibp
#endif
