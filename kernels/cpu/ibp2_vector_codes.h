// The codes of a block of coded chunks (ibp2_codes.h) by vector instructions, a byte each. A part of a block
// is as many chunks as a vector has bytes. For Lanes see ibp2_vector_block.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu/ibp2_codes.h"
#include "cpu/ibp2_lanes.h"

namespace gnn_ibp {
namespace {

// The members of Ibp2Codes. What the loops change is kept in variables of their own, which stores of bytes do
// not make the compiler read again.
template <class Lanes>
class Ibp2VectorCodes {
  using Vector = typename Lanes::Vector;
  using Mask = typename Lanes::Mask;
  using Table = typename Lanes::Table;
  static constexpr size_t kLanes = Lanes::kLanes;

 public:
  template <typename Tables>
  GNN_IBP_TARGET bool read(const Tables& tables, Ibp2Row& row, size_t first, size_t count) {
    read_first(tables, row, first, count);
    return follow<2>(tables.second, count, row.later) && follow<3>(tables.third, count, row.later) &&
           find_raw(tables, count, row.later);
  }

  // The same of blocks of some rows. Each level waits for the one before it; with the levels of two rows in
  // turns the processor has something to do meanwhile.
  template <typename Tables, size_t Rows>
  GNN_IBP_TARGET static bool read(const Tables& tables, Ibp2Row (&rows)[Rows], size_t first, size_t count,
                                  Ibp2VectorCodes (&codes)[Rows]) {
    for (size_t r = 0; r < Rows; ++r) codes[r].read_first(tables, rows[r], first, count);
    for (size_t r = 0; r < Rows; ++r)
      if (!codes[r].template follow<2>(tables.second, count, rows[r].later)) return false;
    for (size_t r = 0; r < Rows; ++r)
      if (!codes[r].template follow<3>(tables.third, count, rows[r].later)) return false;
    for (size_t r = 0; r < Rows; ++r)
      if (!codes[r].find_raw(tables, count, rows[r].later)) return false;
    return true;
  }

  const uint8_t* data() const { return codes_; }

  size_t num_raw() const { return num_raw_; }
  size_t raw_place(size_t i) const { return raw_[i]; }
  uint64_t raw_at() const { return raw_at_; }

 private:
  // The codes that the first fields tell, and which of them lead on.
  template <typename Tables>
  GNN_IBP_INLINE void read_first(const Tables& tables, const Ibp2Row& row, size_t first, size_t count) {
    const uint8_t* stream = row.first_fields + tables.byte_offset(first);
    const size_t entry = tables.entry(first);
    const Table table = Lanes::table(tables.first);
    const uint64_t* window_at = tables.lanes.window_at.data() + entry / kLanes;
    const uint8_t* constants = tables.lanes.first.data() + 7 * entry;
    for (size_t j = 0, p = 0; j < count; j += kLanes, ++p, constants += 7 * kLanes) {
      const Vector window = Lanes::window(stream + window_at[p] - 1);
      const Vector codes = Lanes::look_up(table, first_index(window, constants));
      Mask links = Lanes::links(codes);
      if (count - j < kLanes) links &= static_cast<Mask>(~(~Mask{0} << (count - j)));
      Lanes::store(codes_ + j, codes);
      links_[p] = links;
    }
  }

  // Where the codes of first fields stand in their table.
  GNN_IBP_INLINE static Vector first_index(Vector window, const uint8_t* constants) {
    const Vector even_pairs = Lanes::pick(window, Lanes::load(constants));
    const Vector odd_pairs = Lanes::pick(window, Lanes::load(constants + kLanes));
    const Vector even = Lanes::high_product(even_pairs, Lanes::load(constants + 2 * kLanes));
    const Vector odd = Lanes::low_product(odd_pairs, Lanes::load(constants + 3 * kLanes));
    const Vector fields =
        (even & Lanes::load(constants + 4 * kLanes)) | (odd & Lanes::load(constants + 5 * kLanes));
    return fields | Lanes::load(constants + 6 * kLanes);
  }

  // Reads the next fields of the chunks that lead on, of `Bits` bits, part by part: their codes, and which
  // of them lead on further. False where the fields do not fit.
  template <unsigned Bits>
  GNN_IBP_INLINE bool follow(const uint8_t* codes_of_fields, size_t count, Ibp2Fields& later) {
    Ibp2Fields fields = later;
    const Table table = Lanes::table(codes_of_fields);
    for (size_t j = 0, p = 0; j < count; j += kLanes, ++p) {
      const Mask links = links_[p];
      const unsigned bits = Bits * static_cast<unsigned>(std::popcount(links));
      if (!fields.left(bits)) return false;
      const Vector codes = Lanes::load(codes_ + j);
      const Vector read = Lanes::template fields<Bits>(fields.stream, fields.at, links);
      const Vector told = Lanes::look_up(table, (codes & Lanes::bytes(kIbp2Leaf)) | read);
      const Vector next = Lanes::choose(codes, told, codes);
      Lanes::store(codes_ + j, next);
      links_[p] = static_cast<Mask>(Lanes::links(next) & links);
      fields.at += bits;
    }
    later = fields;
    return true;
  }

  // Finds the chunks whose heads are stored as they are. A third of all rows have some, few have more than
  // one in 64 chunks: no branch that would be guessed wrong so often. False where the heads do not fit.
  template <typename Tables>
  GNN_IBP_INLINE bool find_raw(const Tables& tables, size_t count, Ibp2Fields& later) {
    size_t num = 0;
    for (size_t first = 0; first < count; first += 64) {
      uint64_t links = 0;
      for (size_t i = 0; i < 64 && first + i < count; i += kLanes)
        links |= uint64_t{links_[(first + i) / kLanes]} << i;
      raw_[num] = static_cast<uint8_t>(first + static_cast<size_t>(std::countr_zero(links)));
      num += links != 0;
      while (links &= links - 1)
        raw_[num++] = static_cast<uint8_t>(first + static_cast<size_t>(std::countr_zero(links)));
    }
    num_raw_ = num;
    raw_at_ = later.at;
    const uint64_t bits = uint64_t{tables.sign_bits + tables.head_bits} * num;
    if (!later.left(bits)) return false;
    later.at += bits;
    return true;
  }

  alignas(64) uint8_t codes_[kIbp2Block];
  Mask links_[kIbp2Block / kLanes];  // of a part, the chunks that lead on
  uint8_t raw_[kIbp2Block + 1];
  size_t num_raw_;
  uint64_t raw_at_;
};

}  // namespace
}  // namespace gnn_ibp
