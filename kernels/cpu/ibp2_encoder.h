// Rows of format version 2 encoded: sizes first, then streams, planes and bitmap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "cpu/ibp2_planes.h"
#include "cpu/ibp2_symbols.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"
#include "cpu/low_bits.h"

namespace gnn_ibp {

template <typename Word>
class Ibp2Encoder {
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);

 public:
  using Tables = Ibp2Tables<Word>;

  Ibp2Encoder(const Tables& tables, const Ibp2Params& params) : tables_(tables) {
    for (const Ibp2Class& made : params.classes) classes_.emplace_back(params, made);
    const Word ones = static_cast<Word>(~Word{0});
    exponent_bits_ = static_cast<Word>(ones >> (W - params.head_bits));
    sign_bit_ = params.sign_bits ? static_cast<Word>(Word{1} << params.head_bits) : Word{0};
    zero_mask_ = static_cast<Word>((Word{1} << params.zero_bits) - 1);
    tail_shift_ = params.zero_bits;
    head_shift_ = W - params.sign_bits - params.head_bits;
    base_.resize(tables.base.size());
    for (size_t j = 0; j < base_.size(); ++j)
      base_[j] = static_cast<Word>(tables.base[j] >> (W - params.head_bits));
  }

  // Bytes of the encoded row, or the raw row's where encoding does not pay or is not possible.
  size_t stored_size(const uint8_t* row) const {
    uint64_t bits = 0, num_coded = 0;
    bool possible = true;
    for_each_block(row, [&](const Word* chunks, size_t first, size_t count) {
      Word low = 0;
      for (size_t i = 0; i < count; ++i) {
        low |= chunks[i];
        const Ibp2Code& code = code_of(chunks[i], tables_.entry(first) + i);
        possible &= code.level != Ibp2Code::kNone;
        bits += later_bits(code);
      }
      possible &= (low & zero_mask_) == 0;
      num_coded += count;
    });
    const size_t row_bytes = tables_.num_chunks * S;
    if (!possible) return row_bytes;
    const uint64_t bitmap = tables_.sparse ? Bitmap(*this, row).num_bytes() : 0;
    const uint64_t fields = (tables_.first_bits(num_coded) + 7) / 8 + (bits + 7) / 8;
    return std::min<uint64_t>(size_of(bitmap + fields, num_coded), row_bytes);
  }

  // Writes a row whose stored_size() is less than a raw one's.
  void encode(const uint8_t* row, uint8_t* stored) const {
    uint8_t* first_fields = stored;
    uint64_t num_coded = tables_.num_chunks;
    if (tables_.sparse) {
      Bitmap bitmap(*this, row);
      num_coded = bitmap.num_ones();
      first_fields = bitmap.write(stored);
    }
    uint8_t* later_fields = first_fields + (tables_.first_bits(num_coded) + 7) / 8;
    uint8_t* end = write_fields(row, first_fields, later_fields);
    uint8_t* row_end = stored + size_of(static_cast<uint64_t>(end - stored), num_coded);
    uint8_t* low = row_end - tables_.low_plane_bytes(num_coded);
    uint8_t* high = low - tables_.high_plane_bytes(num_coded);
    std::fill(end, high, uint8_t{0});
    with_low_bytes<Word>(tables_.low_bytes, [&](auto bytes) { write_planes<bytes()>(row, high, low); });
  }

 private:
  // Bytes of a row whose bitmap and fields take so many.
  uint64_t size_of(uint64_t bytes, uint64_t num_coded) const {
    bytes += tables_.low_plane_bytes(num_coded) + tables_.high_plane_bytes(num_coded);
    return (bytes + tables_.unit - 1) / tables_.unit * tables_.unit;
  }

  // Calls use(chunks, first, count) for the blocks of coded chunks.
  template <typename Use>
  void for_each_block(const uint8_t* row, const Use& use) const {
    Word chunks[kIbp2Block];
    size_t first = 0, count = 0;
    for (size_t j = 0; j < tables_.num_chunks; ++j) {
      chunks[count] = load_le<Word>(row + j * S);
      count += !tables_.sparse || chunks[count] != tables_.zero;
      if (count < kIbp2Block) continue;
      use(chunks, first, count);
      first += count;
      count = 0;
    }
    if (count) use(chunks, first, count);
  }

  const Ibp2Code& code_of(Word chunk, size_t entry) const {
    const Word head = static_cast<Word>(chunk >> head_shift_);
    const Word sign = tables_.flip[entry] ? sign_bit_ : Word{0};
    const Word key = static_cast<Word>((static_cast<Word>(head - base_[entry]) & exponent_bits_) |
                                       ((head & sign_bit_) ^ sign));
    return classes_[tables_.class_of[entry]].find(key);
  }

  uint64_t later_bits(const Ibp2Code& code) const {
    const unsigned raw = code.level == Ibp2Code::kRaw ? tables_.sign_bits + tables_.head_bits : 0;
    return (code.level >= 2 ? 2 : 0) + (code.level >= 3 ? 3 : 0) + raw;
  }

  // Returns the end of the later fields.
  uint8_t* write_fields(const uint8_t* row, uint8_t* first_fields, uint8_t* later_fields) const {
    LowBitWriter firsts(first_fields), later(later_fields);
    for_each_block(row, [&](const Word* chunks, size_t first, size_t count) {
      Ibp2Code codes[kIbp2Block];
      for (size_t i = 0; i < count; ++i) {
        const size_t entry = tables_.entry(first) + i;
        codes[i] = code_of(chunks[i], entry);
        firsts.append(codes[i].first, classes_[tables_.class_of[entry]].k1());
      }
      for (size_t i = 0; i < count; ++i)
        if (codes[i].level >= 2) later.append(codes[i].second, 2);
      for (size_t i = 0; i < count; ++i)
        if (codes[i].level >= 3) later.append(codes[i].third, 3);
      for (size_t i = 0; i < count; ++i)
        if (codes[i].level == Ibp2Code::kRaw)
          later.append(static_cast<Word>(chunks[i] >> head_shift_), tables_.sign_bits + tables_.head_bits);
    });
    firsts.finish();
    return later.finish();
  }

  template <unsigned LowBytes>
  void write_planes(const uint8_t* row, uint8_t* high, uint8_t* low) const {
    LowBitWriter highs(high);
    const Word tail_bits = static_cast<Word>((uint64_t{1} << head_shift_) - 1);
    for_each_block(row, [&](const Word* chunks, size_t, size_t count) {
      for (size_t i = 0; i < count; ++i, low += LowBytes) {
        const Word tail = static_cast<Word>((chunks[i] & tail_bits) >> tail_shift_);
        const Word bytes = to_little_endian(tail);
        std::memcpy(low, &bytes, LowBytes);
        highs.append(static_cast<Word>(tail >> (8 * LowBytes)), tables_.high_bits);
      }
    });
    highs.finish();
  }

  // The bitmap of a row's coded chunks. The bytes of each level are visited in order, those of higher levels
  // after those they stand for.
  class Bitmap {
   public:
    Bitmap(const Ibp2Encoder& encoder, const uint8_t* row) : encoder_(encoder), row_(row) {
      visit_all([&](unsigned level, uint8_t byte) {
        ++num_listed_[level];
        if (level == 0) num_ones_ += static_cast<unsigned>(std::popcount(byte));
      });
    }

    uint64_t num_ones() const { return num_ones_; }
    uint64_t num_bytes() const { return num_listed_[0] + num_listed_[1] + num_listed_[2]; }

    // Returns the end.
    uint8_t* write(uint8_t* stored) const {
      uint8_t* next[kIbp2Levels];
      for (unsigned level = kIbp2Levels; level-- > 0; stored += num_listed_[level]) next[level] = stored;
      visit_all([&](unsigned level, uint8_t byte) { *next[level]++ = byte; });
      return stored;
    }

   private:
    // Calls list(level, byte) for the bytes that are stored.
    template <typename List>
    void visit_all(const List& list) const {
      const Ibp2Bitmap& bitmap = encoder_.tables_.bitmap;
      const unsigned top = bitmap.levels() - 1;
      for (size_t k = 0; k < bitmap.num_bytes(top); ++k) {
        const uint8_t byte = visit(top, k, list);
        if (byte == 0) list(top, byte);  // the highest level is whole
      }
    }

    // The k-th byte of a level.
    template <typename List>
    uint8_t visit(unsigned level, size_t k, const List& list) const {
      const size_t count = std::min<size_t>(8, encoder_.tables_.bitmap.num_bits(level) - 8 * k);
      unsigned byte = 0;
      for (size_t i = 0; i < count; ++i) {
        const bool one = level ? visit(level - 1, 8 * k + i, list) != 0 : is_coded(8 * k + i);
        byte |= unsigned{one} << i;
      }
      if (byte) list(level, static_cast<uint8_t>(byte));
      return static_cast<uint8_t>(byte);
    }

    bool is_coded(size_t j) const { return load_le<Word>(row_ + j * S) != encoder_.tables_.zero; }

    const Ibp2Encoder& encoder_;
    const uint8_t* row_;
    uint64_t num_ones_ = 0, num_listed_[kIbp2Levels] = {};
  };

  const Tables& tables_;
  std::vector<Ibp2Symbols<Word>> classes_;
  std::vector<Word> base_;  // at the low end
  Word exponent_bits_, sign_bit_, zero_mask_;
  unsigned head_shift_, tail_shift_;
};

}  // namespace gnn_ibp
