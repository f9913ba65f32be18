// The codes of a block of coded chunks: three levels of fields, then the heads that are stored as they are.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/ibp2_bitmap.h"
#include "cpu/ibp2_row.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"
#include "cpu/low_bits.h"

namespace gnn_ibp {

template <typename Word>
class Ibp2Codes {
 public:
  using Tables = Ibp2Tables<Word>;

  // Reads the block of `count` chunks that begins at coded chunk `first`. False where its fields do not fit
  // in what is left of the stream: they are compared before they are read.
  bool read(const Tables& tables, Ibp2Row& row, size_t first, size_t count) {
    read_first(tables, row.first_fields + tables.byte_offset(first), tables.entry(first), count);
    return read_second(tables, row.later) && read_third(tables, row.later) && skip_raw(tables, row.later);
  }

  const uint8_t* data() const { return codes_; }

  // Chunks whose heads are stored as they are: their places in the block, and where the heads begin.
  size_t num_raw() const { return num_raw_; }
  size_t raw_place(size_t i) const { return raw_[i]; }
  uint64_t raw_at() const { return raw_at_; }

 private:
  // Room for what is written eight or sixteen bytes at a time.
  static constexpr size_t kRoom = kIbp2Block + kIbp2Group;

  // The codes that the first fields tell, and the places of those that lead on.
  void read_first(const Tables& tables, const uint8_t* stream, size_t entry, size_t count) {
    const auto* group = tables.groups.data() + entry / kIbp2Group;
    size_t num = 0, j = 0;
    for (; j + kIbp2Group <= count; j += kIbp2Group, ++group)
      num = read_group(tables, *group, stream, j, kIbp2Group, num);
    if (j < count) num = read_group(tables, *group, stream, j, count - j, num);
    num_second_ = num;
  }

  // Reads the `count` chunks of a group from place j on; `num` chunks before them lead on.
  size_t read_group(const Tables& tables, const typename Tables::Group& group, const uint8_t* stream,
                    size_t j, size_t count, size_t num) {
    const uint64_t fields = load_le<uint64_t>(stream + group.byte_at);
    const auto codes_of = [&](size_t pair) {
      return uint64_t{tables.pairs[group.pairs_at[pair] + (fields >> group.shift[pair] & 63)]};
    };
    for (size_t half = 0; half < kIbp2Group; half += 8) {
      const size_t pair = half / 2;
      uint64_t codes =
          codes_of(pair) | codes_of(pair + 1) << 16 | codes_of(pair + 2) << 32 | codes_of(pair + 3) << 48;
      if (count < half + 8) codes &= count > half ? ~(~uint64_t{0} << 8 * (count - half)) : 0;
      store_le(codes_ + j + half, codes);
      const uint64_t links = codes >> 7 & 0x0101010101010101u;
      const size_t byte = links * 0x0102040810204080u >> 56;  // eight bytes of 0 or 1 to eight bits
      store_le(links_ + num, kOnesOfByte.places[byte] + (j + half) * 0x0101010101010101u);
      num += kOnesOfByte.count[byte];
    }
    return num;
  }

  bool read_second(const Tables& tables, Ibp2Fields& fields) {
    if (!fields.left(2 * num_second_)) return false;
    constexpr size_t kPerLoad = 28;
    size_t num = 0;
    for (size_t i = 0; i < num_second_; i += kPerLoad) {
      uint64_t bits = low_bits_at(fields.stream, fields.at + 2 * i);
      const size_t end = std::min(num_second_, i + kPerLoad);
      for (size_t k = i; k < end; ++k, bits >>= 2) {
        const uint8_t place = links_[k];
        const uint8_t code = tables.second[(codes_[place] & 31) + (bits & 3)];
        codes_[place] = code;
        third_[num] = place;
        num += code >> 7;
      }
    }
    fields.at += 2 * num_second_;
    num_third_ = num;
    return true;
  }

  bool read_third(const Tables& tables, Ibp2Fields& fields) {
    if (!fields.left(3 * num_third_)) return false;
    size_t num = 0;
    for (size_t i = 0; i < num_third_; ++i) {
      const uint8_t place = third_[i];
      const uint64_t field = low_bits_at(fields.stream, fields.at + 3 * i) & 7;
      const uint8_t code = tables.third[(codes_[place] & 31) + field];
      codes_[place] = code;
      raw_[num] = place;
      num += code >> 7;
    }
    fields.at += 3 * num_third_;
    num_raw_ = num;
    return true;
  }

  bool skip_raw(const Tables& tables, Ibp2Fields& fields) {
    const uint64_t bits = uint64_t{tables.sign_bits + tables.head_bits} * num_raw_;
    if (!fields.left(bits)) return false;
    raw_at_ = fields.at;
    fields.at += bits;
    return true;
  }

  uint8_t codes_[kRoom];
  uint8_t links_[kRoom], third_[kRoom], raw_[kRoom];  // places in the block, of chunks with fields of a level
  size_t num_second_, num_third_, num_raw_;
  uint64_t raw_at_;
};

}  // namespace gnn_ibp
