// What decoders of row format version 2 look up for each chunk position and each field, made from the
// parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/ibp2_bitmap.h"
#include "cpu/ibp2_lanes.h"
#include "cpu/ibp2_params.h"
#include "cpu/ibp2_planes.h"

namespace gnn_ibp {

inline constexpr size_t kIbp2Group = 16;  // coded chunks whose first fields are read by one load of 8 bytes

// A code is what the fields read so far say of a chunk: a symbol, or kIbp2Link and where the next table
// begins.
inline constexpr uint8_t kIbp2Link = 0x80;

template <typename Word>
struct Ibp2Tables {
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kPairs = kIbp2Group / 2;

  // lanes: bytes of the level's vectors; 0 where it has none.
  Ibp2Tables(const Ibp2Params& params, size_t lanes);

  size_t num_chunks;
  size_t unit;  // sizes of encoded rows are multiples of this, a power of two
  unsigned sign_bits, head_bits, zero_bits;
  unsigned low_bytes, high_bits;  // of a chunk, in the two planes
  HighPlane high_plane;
  bool sparse;
  Word zero;
  Ibp2Bitmap bitmap;  // of sparse rows
  bool is_alike;      // all coded chunks of sparse rows are `alike`: rows are bitmaps and nothing else
  Word alike;

  // For kind D one entry a position, filled up to whole groups; for kind S the same for a whole block.
  std::vector<Word> base;     // at the top of the word, so that sums are mod 2^E
  std::vector<uint8_t> flip;  // kIbp2Flip where sgn is 1
  std::vector<uint8_t> class_of;

  // Where the first fields of a group begin in the stream, and of each of its pairs of chunks: how far the
  // load is to be shifted, and which part of `pairs` tells the codes.
  struct Group {
    uint64_t byte_at;
    uint8_t shift[kPairs];
    uint16_t pairs_at[kPairs];
  };
  std::vector<Group> groups;

  static constexpr unsigned kPairFields = 64;  // values of six bits: a pair's fields and what follows them
  uint16_t pairs[kIbp2Classes * kIbp2Classes * kPairFields];  // codes of both chunks, the first one low
  uint8_t first[32];                                          // codes, eight for each class
  uint8_t second[32], third[32];  // codes, four and eight for each value of a code that leads there
  Word leaf[kIbp2Leaves];         // at the top of the word
  Ibp2LaneTables lanes;

  // Bits of the first fields of n coded chunks: of all positions, or of n alike ones.
  uint64_t first_bits(uint64_t n) const { return sparse ? n * k1_[0] : all_first_bits_; }

  // A block of chunks begins at coded chunk `first`: its entry in the arrays above, and how far its first
  // fields lie beyond the place that `groups` tells.
  size_t entry(size_t first) const { return sparse ? 0 : first; }
  size_t byte_offset(size_t first) const { return sparse ? first / 8 * k1_[0] : 0; }

  // Bytes of the planes of n coded chunks.
  uint64_t low_plane_bytes(uint64_t n) const { return n * low_bytes; }
  uint64_t high_plane_bytes(uint64_t n) const { return (n * high_bits + 7) / 8; }

 private:
  void add_positions(const Ibp2Params& params);
  void add_groups();
  void add_codes(const Ibp2Params& params);
  Word chunk_of(uint8_t symbol) const;  // at position 0, its tail 0

  unsigned k1_[kIbp2Classes] = {};
  uint64_t all_first_bits_ = 0;
};

template <typename Word>
Ibp2Tables<Word>::Ibp2Tables(const Ibp2Params& params, size_t lanes)
    : num_chunks(params.num_chunks),
      unit(std::max<size_t>(4, S)),
      sign_bits(params.sign_bits),
      head_bits(params.head_bits),
      zero_bits(params.zero_bits),
      low_bytes(params.tail_bits() / 8),
      high_bits(params.tail_bits() % 8),
      high_plane(high_bits),
      sparse(params.sparse),
      zero(static_cast<Word>(params.zero)),
      bitmap(params.num_chunks, params.levels),
      is_alike(params.sparse && params.classes[0].k1 == 0 && params.tail_bits() == 0),
      lanes(params, lanes) {
  for (size_t c = 0; c < params.classes.size(); ++c) k1_[c] = params.classes[c].k1;
  for (unsigned l = 0; l < kIbp2Leaves; ++l) leaf[l] = static_cast<Word>(params.leaf[l] << (W - head_bits));
  add_positions(params);
  add_groups();
  add_codes(params);
  alike = is_alike ? chunk_of(params.classes[0].symbols[0]) : Word{0};
}

template <typename Word>
Word Ibp2Tables<Word>::chunk_of(uint8_t symbol) const {
  const Word exponent = static_cast<Word>(static_cast<Word>(base[0] + leaf[symbol & kIbp2Leaf]) >> sign_bits);
  const Word sign = static_cast<Word>(static_cast<Word>((symbol ^ flip[0]) & kIbp2Flip) << (W - 7));
  return exponent ^ sign;
}

template <typename Word>
void Ibp2Tables<Word>::add_positions(const Ibp2Params& params) {
  const size_t count = sparse ? kIbp2Block : num_chunks;
  const size_t padded = (count + kIbp2Group - 1) / kIbp2Group * kIbp2Group;
  base.resize(padded);
  flip.resize(padded);
  class_of.resize(padded);
  for (size_t j = 0; j < count; ++j) {
    const size_t from = sparse ? 0 : j;
    base[j] = static_cast<Word>(params.base[from] << (W - head_bits));
    flip[j] = params.sign[from] ? kIbp2Flip : 0;
    class_of[j] = params.class_of[from];
  }
}

template <typename Word>
void Ibp2Tables<Word>::add_groups() {
  uint64_t at = 0;
  for (size_t first = 0; first < class_of.size(); first += kIbp2Group) {
    Group group{at / 8, {}, {}};
    for (size_t p = 0; p < kPairs; ++p) {
      const unsigned a = class_of[first + 2 * p], b = class_of[first + 2 * p + 1];
      group.shift[p] = static_cast<uint8_t>(at - 8 * group.byte_at);
      group.pairs_at[p] = static_cast<uint16_t>((a * kIbp2Classes + b) * kPairFields);
      at += k1_[a] + k1_[b];
    }
    groups.push_back(group);
  }
  // Chunks that fill up the last group have no fields.
  for (size_t j = 0; j < num_chunks && !sparse; ++j) all_first_bits_ += k1_[class_of[j]];
}

template <typename Word>
void Ibp2Tables<Word>::add_codes(const Ibp2Params& params) {
  std::fill_n(first, sizeof(first), uint8_t{0});
  std::fill_n(second, sizeof(second), uint8_t{0});
  std::fill_n(third, sizeof(third), uint8_t{0});
  for (size_t c = 0; c < params.classes.size(); ++c) {
    const Ibp2Class& made = params.classes[c];
    const uint8_t* symbols = made.symbols;
    for (unsigned f = 0; f < made.num_first(); ++f) first[8 * c + f] = *symbols++;
    for (unsigned i = 0; i < made.g; ++i)
      first[8 * c + made.num_first() + i] = static_cast<uint8_t>(kIbp2Link | (8 * c + 4 * i));
    if (made.g == 0) continue;
    for (unsigned i = 0; i < made.num_second(); ++i) second[8 * c + i] = *symbols++;
    second[8 * c + made.num_second()] = static_cast<uint8_t>(kIbp2Link | 8 * c);
    for (unsigned i = 0; i < made.num_third(); ++i) third[8 * c + i] = *symbols++;
    third[8 * c + made.num_third()] = kIbp2Link;
  }
  for (unsigned a = 0; a < kIbp2Classes; ++a)
    for (unsigned b = 0; b < kIbp2Classes; ++b)
      for (unsigned fields = 0; fields < kPairFields; ++fields) {
        const unsigned low = first[8 * a + (fields & ((1u << k1_[a]) - 1))];
        const unsigned high = first[8 * b + (fields >> k1_[a] & ((1u << k1_[b]) - 1))];
        pairs[(a * kIbp2Classes + b) * kPairFields + fields] = static_cast<uint16_t>(low | high << 8);
      }
}

}  // namespace gnn_ibp
