// Row format version 2 in plain C++: blocks of 256 coded chunks, in loops that a compiler may turn into
// vectors.
#include <algorithm>
#include <cstring>

#include "cpu/ibp2_codes.h"
#include "cpu/ibp2_level.h"
#include "cpu/ibp2_planes.h"
#include "cpu/ibp2_row.h"
#include "cpu/ibp2_sparse.h"
#include "cpu/little_endian.h"

namespace gnn_ibp {
namespace {

template <typename Word>
struct Portable {
  using Tables = Ibp2Tables<Word>;
  using Codes = Ibp2Codes<Word>;
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);

  static bool check(const Tables& tables, const uint8_t* stored, size_t size) {
    Ibp2Row row;
    if (!row.find(tables, stored, size)) return false;
    Codes codes;
    for (size_t first = 0; first < row.num_coded; first += kIbp2Block)
      if (!codes.read(tables, row.first_fields, first, block_size(row, first), row.later)) return false;
    return true;
  }

  static bool decode(const Tables& tables, const uint8_t* stored, size_t size, uint8_t* chunks) {
    Ibp2Row row;
    if (!row.find(tables, stored, size)) return false;
    if (tables.is_alike) {
      Ibp2Sparse<Word>::write_alike(tables, row, chunks);
      return true;
    }
    return with_low_bytes<Word>(tables.low_bytes, [&](auto low_bytes) {
      return tables.sparse ? decode_sparse<low_bytes()>(tables, row, chunks)
                           : decode_dense<low_bytes()>(tables, row, chunks);
    });
  }

 private:
  static size_t block_size(const Ibp2Row& row, size_t first) {
    return std::min<uint64_t>(kIbp2Block, row.num_coded - first);
  }

  template <unsigned LowBytes>
  static bool decode_dense(const Tables& tables, Ibp2Row& row, uint8_t* chunks) {
    for (size_t first = 0; first < row.num_coded; first += kIbp2Block)
      if (!decode_block<LowBytes>(tables, row, first, block_size(row, first), chunks + first * S))
        return false;
    return true;
  }

  template <unsigned LowBytes>
  static bool decode_sparse(const Tables& tables, Ibp2Row& row, uint8_t* chunks) {
    return Ibp2Sparse<Word>::write(tables, row, chunks, [&](size_t first, size_t count, uint8_t* coded) {
      return decode_block<LowBytes>(tables, row, first, count, coded);
    });
  }

  // Writes the `count` chunks of the block that begins at coded chunk `first`.
  template <unsigned LowBytes>
  static bool decode_block(const Tables& tables, Ibp2Row& row, size_t first, size_t count, uint8_t* chunks) {
    Codes codes;
    if (!codes.read(tables, row.first_fields, first, count, row.later)) return false;
    Block block;
    for (size_t j = 0; j < count; j += 8) {
      const uint64_t eight = load_le<uint64_t>(codes.data() + j);
      for (unsigned i = 0; i < 8; ++i) block.leaves[j + i] = tables.leaf[eight >> 8 * i & kIbp2Leaf];
    }
    const uint8_t* high = row.high_plane + first / 8 * tables.high_bits;
    for (size_t j = 0; j < count; j += 8, high += tables.high_bits)
      store_le(block.highs + j, tables.high_plane.spread(load_le<uint64_t>(high)));
    const size_t entry = tables.entry(first);
    const Shape shape{tables.sign_bits, tables.zero_bits, count};
    assemble<LowBytes>(shape, block, tables.base.data() + entry, tables.flip.data() + entry, codes.data(),
                       row.low_plane + first * LowBytes, chunks);
    put_raw(tables, row.later.stream, codes, chunks);
    return true;
  }

  struct Block {
    Word leaves[kIbp2Block];
    uint8_t highs[kIbp2Block];
  };
  struct Shape {
    unsigned sign_bits, zero_bits;
    size_t count;
  };

  // Puts chunks together: head of the code, tail of the planes.
  template <unsigned LowBytes>
  static void assemble(const Shape& shape, const Block& block, const Word* __restrict base,
                       const uint8_t* __restrict flip, const uint8_t* __restrict codes,
                       const uint8_t* __restrict low, uint8_t* __restrict chunks) {
    const auto [sign_bits, zero_bits, count] = shape;
    for (size_t j = 0; j < count; ++j) {
      const Word exponent = static_cast<Word>(static_cast<Word>(base[j] + block.leaves[j]) >> sign_bits);
      const Word sign = static_cast<Word>(static_cast<Word>((codes[j] ^ flip[j]) & kIbp2Flip) << (W - 7));
      const Word tail = static_cast<Word>(static_cast<Word>(block.highs[j]) << (8 * LowBytes) |
                                          load_low<Word, LowBytes>(low + j * LowBytes));
      store_le(chunks + j * S, static_cast<Word>((exponent ^ sign) | static_cast<Word>(tail << zero_bits)));
    }
  }

  static void put_raw(const Tables& tables, const uint8_t* stream, const Codes& codes, uint8_t* chunks) {
    const unsigned head_bits = tables.sign_bits + tables.head_bits;
    const Word below = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1 >> (head_bits - 1));
    for (size_t i = 0; i < codes.num_raw(); ++i) {
      const Word head =
          static_cast<Word>(low_word_at(stream, codes.raw_at() + i * head_bits) << (W - head_bits));
      uint8_t* chunk = chunks + codes.raw_place(i) * S;
      store_le(chunk, static_cast<Word>((load_le<Word>(chunk) & below) | head));
    }
  }
};

}  // namespace

template <typename Word>
Ibp2Level<Word> ibp2_portable() {
  return {Portable<Word>::check, Portable<Word>::decode};
}

template Ibp2Level<uint8_t> ibp2_portable();
template Ibp2Level<uint16_t> ibp2_portable();
template Ibp2Level<uint32_t> ibp2_portable();
template Ibp2Level<uint64_t> ibp2_portable();

}  // namespace gnn_ibp
