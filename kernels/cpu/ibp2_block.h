// Blocks of format version 2 put together chunk by chunk, whatever the shape: heads of the codes, tails of
// the planes. Included after GNN_IBP_TARGET and GNN_IBP_INLINE are defined (see ibp2_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/ibp2_planes.h"
#include "cpu/ibp2_row.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"
#include "cpu/low_bits.h"

namespace gnn_ibp {
namespace {

// Codes: with the members of Ibp2Codes.
template <typename Word, class Codes>
struct Ibp2Block {
  using Tables = Ibp2Tables<Word>;
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);

  GNN_IBP_TARGET static bool check(const Tables& tables, Ibp2Row& row, size_t first, size_t count) {
    Codes codes;
    return codes.read(tables, row, first, count);
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode(const Tables& tables, Ibp2Row& row, size_t first, size_t count,
                                    uint8_t* chunks) {
    Codes codes;
    if (!codes.read(tables, row, first, count)) return false;
    assemble<LowBytes>(tables, row, first, count, codes.data(), chunks);
    put_raw(tables, row.later.stream, codes, chunks);
    return true;
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode_two(const Tables& tables, Ibp2Row (&rows)[2], size_t first, size_t count,
                                        uint8_t* const (&chunks)[2]) {
    return decode<LowBytes>(tables, rows[0], first, count, chunks[0]) &&
           decode<LowBytes>(tables, rows[1], first, count, chunks[1]);
  }

  // Overwrites the heads that are stored as they are. Inlined: GCC leaves out the vzeroupper behind a call of
  // a function that needs none itself, which makes what follows half as fast.
  GNN_IBP_INLINE static void put_raw(const Tables& tables, const uint8_t* stream, const Codes& codes,
                                     uint8_t* chunks) {
    const unsigned head_bits = tables.sign_bits + tables.head_bits;
    const Word below = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1 >> (head_bits - 1));
    uint8_t none[S] = {};
    const auto put = [&](size_t i, uint8_t* chunk) {
      const Word head =
          static_cast<Word>(low_word_at(stream, codes.raw_at() + i * head_bits) << (W - head_bits));
      store_le(chunk, static_cast<Word>((load_le<Word>(chunk) & below) | head));
    };
    const size_t num = codes.num_raw();
    // A third of all rows have one, too many and too few to guess: the first is put somewhere at any rate.
    put(0, num > 0 ? chunks + codes.raw_place(0) * S : none);
    for (size_t i = 1; i < num; ++i) put(i, chunks + codes.raw_place(i) * S);
  }

 private:
  struct Parts {
    Word leaves[kIbp2Block];
    uint8_t highs[kIbp2Block];
  };
  struct Shape {
    unsigned sign_bits, zero_bits;
    size_t count;
  };

  // Writes the `count` chunks of the block that begins at coded chunk `first` from their codes, which are
  // filled up to a multiple of eight.
  template <unsigned LowBytes>
  GNN_IBP_TARGET static void assemble(const Tables& tables, const Ibp2Row& row, size_t first, size_t count,
                                      const uint8_t* codes, uint8_t* chunks) {
    Parts parts;
    for (size_t j = 0; j < count; j += 8) {
      const uint64_t eight = load_le<uint64_t>(codes + j);
      for (unsigned i = 0; i < 8; ++i) parts.leaves[j + i] = tables.leaf[eight >> 8 * i & kIbp2Leaf];
    }
    const uint8_t* high = row.high_plane + first / 8 * tables.high_bits;
    for (size_t j = 0; j < count; j += 8, high += tables.high_bits)
      store_le(parts.highs + j, tables.high_plane.spread(load_le<uint64_t>(high)));
    const size_t entry = tables.entry(first);
    const Shape shape{tables.sign_bits, tables.zero_bits, count};
    add_up<LowBytes>(shape, parts, tables.base.data() + entry, tables.flip.data() + entry, codes,
                     row.low_plane + first * LowBytes, chunks);
  }

  // Heads of the codes, tails of the planes.
  template <unsigned LowBytes>
  GNN_IBP_TARGET static void add_up(const Shape& shape, const Parts& parts, const Word* __restrict base,
                                    const uint8_t* __restrict flip, const uint8_t* __restrict codes,
                                    const uint8_t* __restrict low, uint8_t* __restrict chunks) {
    const auto [sign_bits, zero_bits, count] = shape;
    for (size_t j = 0; j < count; ++j) {
      const Word exponent = static_cast<Word>(static_cast<Word>(base[j] + parts.leaves[j]) >> sign_bits);
      const Word sign = static_cast<Word>(static_cast<Word>((codes[j] ^ flip[j]) & kIbp2Flip) << (W - 7));
      const Word tail = static_cast<Word>(static_cast<Word>(parts.highs[j]) << (8 * LowBytes) |
                                          load_low<Word, LowBytes>(low + j * LowBytes));
      store_le(chunks + j * S, static_cast<Word>((exponent ^ sign) | static_cast<Word>(tail << zero_bits)));
    }
  }
};

}  // namespace
}  // namespace gnn_ibp
