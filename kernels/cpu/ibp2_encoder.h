// Rows of format version 2 encoded: sizes first, then bitmap, streams and planes.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/ibp2_coded.h"
#include "cpu/ibp2_fields.h"
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

  Ibp2Encoder(const Tables& tables, const Ibp2Params& params, Ibp2WriteFields<Word> write_block_fields)
      : tables_(tables),
        coded_(tables),
        symbols_(tables, params),
        write_block_fields_(write_block_fields),
        top_bits_(params.sign_bits + params.head_bits),
        head_shift_(W - top_bits_),
        zero_mask_(static_cast<Word>((Word{1} << params.zero_bits) - 1)) {
    for (size_t entry = 0; entry < tables.class_of.size(); ++entry) {
      const unsigned k1 = params.classes[tables.class_of[entry]].k1;
      if (entry % 8 == 0) first_masks_.push_back(0);
      first_masks_.back() |= ((uint64_t{1} << k1) - 1) << 8 * (entry % 8);
      if (entry % kIbp2Group == 0) first_at_.push_back(0);
      first_at_.push_back(static_cast<uint8_t>(first_at_.back() + k1));
    }
  }

  // Bytes of the encoded row, or the raw row's where encoding does not pay or is not possible.
  size_t stored_size(const uint8_t* row) const {
    uint64_t bits = 0, num_coded = 0, bitmap_bytes = 0;
    bool possible = true;
    coded_.for_each(
        row,
        [&](const uint8_t* chunks, size_t first, size_t count) {
          const uint64_t block_bits = later_bits(chunks, first, count);
          possible &= block_bits < Ibp2Symbols<Word>::kImpossible && !has_low_bits(chunks, count);
          bits += block_bits;
          num_coded += count;
        },
        [&](const Ibp2BitmapBytes& bitmap) {
          for (unsigned level = 0; level < kIbp2Levels; ++level) bitmap_bytes += bitmap.count(level);
        });
    const size_t row_bytes = tables_.num_chunks * S;
    if (!possible) return row_bytes;
    const uint64_t fields = (tables_.first_bits(num_coded) + 7) / 8 + (bits + 7) / 8;
    return std::min<uint64_t>(size_of(bitmap_bytes + fields, num_coded), row_bytes);
  }

  // Writes a row whose stored_size() is less than a raw one's.
  void encode(const uint8_t* row, uint8_t* stored) const {
    Parts parts = find_parts(row, stored);
    uint8_t* end = write_fields(row, parts);
    uint8_t* row_end = stored + size_of(static_cast<uint64_t>(end - stored), parts.num_coded);
    uint8_t* low = row_end - tables_.low_plane_bytes(parts.num_coded);
    uint8_t* high = low - tables_.high_plane_bytes(parts.num_coded);
    std::fill(end, high, uint8_t{0});
    if (tables_.low_bytes + tables_.high_bits)
      with_low_bytes<Word>(tables_.low_bytes, [&](auto bytes) { write_planes<bytes()>(row, high, low); });
  }

 private:
  // Where the bitmap and the first fields are to be written.
  struct Parts {
    uint64_t num_coded;
    uint8_t* bitmap[kIbp2Levels];
    uint8_t* first_fields;
  };

  // Bytes of a row whose bitmap and fields take so many.
  uint64_t size_of(uint64_t bytes, uint64_t num_coded) const {
    bytes += tables_.low_plane_bytes(num_coded) + tables_.high_plane_bytes(num_coded);
    return (bytes + tables_.unit - 1) / tables_.unit * tables_.unit;
  }

  uint64_t later_bits(const uint8_t* chunks, size_t first, size_t count) const {
    uint16_t found[kIbp2Block];
    symbols_.find(chunks, tables_.entry(first), count, found);
    uint64_t bits = 0;
    for (size_t i = 0; i < count; ++i) bits += symbols_.later_bits(found[i]);
    return bits;
  }

  bool has_low_bits(const uint8_t* chunks, size_t count) const {
    if (zero_mask_ == 0) return false;
    Word bits = 0;
    for (size_t i = 0; i < count; ++i) bits |= load_le<Word>(chunks + i * S);
    return (bits & zero_mask_) != 0;
  }

  Parts find_parts(const uint8_t* row, uint8_t* stored) const {
    if (!tables_.sparse) return {tables_.num_chunks, {}, stored};
    Parts parts{};
    size_t num_bytes[kIbp2Levels] = {};
    coded_.for_each(
        row, [&](const uint8_t*, size_t, size_t count) { parts.num_coded += count; },
        [&](const Ibp2BitmapBytes& bitmap) {
          for (unsigned level = 0; level < kIbp2Levels; ++level) num_bytes[level] += bitmap.count(level);
        });
    for (unsigned level = kIbp2Levels; level-- > 0; stored += num_bytes[level]) parts.bitmap[level] = stored;
    parts.first_fields = stored;
    return parts;
  }

  // Writes bitmap and fields. Returns the end of the later ones.
  uint8_t* write_fields(const uint8_t* row, Parts& parts) const {
    LowBitWriter firsts(parts.first_fields);
    LowBitWriter later(parts.first_fields + (tables_.first_bits(parts.num_coded) + 7) / 8);
    coded_.for_each(
        row,
        [&](const uint8_t* chunks, size_t first, size_t count) {
          write_block(chunks, first, count, firsts, later);
        },
        [&](const Ibp2BitmapBytes& bitmap) {
          for (unsigned level = 0; level < kIbp2Levels; ++level)
            parts.bitmap[level] = std::copy_n(bitmap.bytes(level), bitmap.count(level), parts.bitmap[level]);
        });
    firsts.finish();
    return later.finish();
  }

  void write_block(const uint8_t* chunks, size_t first, size_t count, LowBitWriter& firsts,
                   LowBitWriter& later) const {
    const size_t entry = tables_.entry(first);
    const uint64_t* first_masks = first_masks_.data() + entry / 8;
    write_block_fields_(
        {symbols_, chunks, entry, count, head_shift_, top_bits_, first_at(entry), first_masks}, firsts,
        later);
  }

  // How many bits of first fields stand in a group before this entry's; behind them, before the next one's.
  const uint8_t* first_at(size_t entry) const {
    return first_at_.data() + entry / kIbp2Group * (kIbp2Group + 1) + entry % kIbp2Group;
  }

  template <unsigned LowBytes>
  void write_planes(const uint8_t* row, uint8_t* high, uint8_t* low) const {
    const auto write = [&](const uint8_t* chunks, size_t, size_t count) {
      uint8_t highs[kIbp2Block] = {}, plane[kIbp2Block + 8];
      split_tails<LowBytes>(chunks, count, highs, low);
      low += count * LowBytes;
      if (tables_.high_bits == 0) return;
      uint8_t* at = plane;
      for (size_t i = 0; i < count; i += 8, at += tables_.high_bits)
        store_le(at, tables_.high_plane.gather(load_le<uint64_t>(highs + i)));
      high = std::copy_n(plane, tables_.high_plane_bytes(count), high);
    };
    coded_.for_each(row, write, [](const Ibp2BitmapBytes&) {});
  }

  // Two loops, each of which the compiler turns into vectors.
  template <unsigned LowBytes>
  void split_tails(const uint8_t* __restrict chunks, size_t count, uint8_t* __restrict highs,
                   uint8_t* __restrict low) const {
    const Word tail_bits = static_cast<Word>((uint64_t{1} << head_shift_) - 1);
    const unsigned tail_shift = tables_.zero_bits;
    const auto tail = [&](size_t i) {
      return static_cast<Word>((load_le<Word>(chunks + i * S) & tail_bits) >> tail_shift);
    };
    for (size_t i = 0; i < count; ++i) store_low<Word, LowBytes>(low + i * LowBytes, tail(i));
    for (size_t i = 0; i < count; ++i) highs[i] = static_cast<uint8_t>(tail(i) >> (8 * LowBytes));
  }

  const Tables& tables_;
  const Ibp2Coded<Word> coded_;
  const Ibp2Symbols<Word> symbols_;
  const Ibp2WriteFields<Word> write_block_fields_;
  std::vector<uint8_t> first_at_;
  std::vector<uint64_t> first_masks_;  // see Ibp2BlockFields
  unsigned top_bits_, head_shift_;
  Word zero_mask_;
};

}  // namespace gnn_ibp
