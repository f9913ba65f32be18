// Blocks of format version 2 by vector instructions: what the levels have in common.
//
// A level's file defines GNN_IBP_TARGET, the attribute that allows its instructions, and GNN_IBP_INLINE, the
// same for functions to be inlined; it includes this file, and gives Lanes, a type with
//
//   Vector, Mask                       kLanes bytes; a bit a byte
//   load(at), store(at, v)
//   bytes(x), words(x)                 x everywhere; a word is a lane of 16 bits
//   Count, count(n)                    how far words are shifted
//   shift_left(v, n), shift_right(v, n), add(v, w)       of words
//   low_product(v, w), high_product(v, w)                the halves of the words' products
//   add8(v, w)                         of bytes
//   links(v)                           the highest bit of each byte
//   choose(links, yes, no)             by the highest bit of each byte of `links`
//   Table, table(at)                   32 bytes
//   look_up(table, index)              by the lower five bits of each byte; anything where the highest is 1
//   window(at), pick(window, places)   bytes of a stream, as many as the fields of a part need; some of these
//   fields<Bits>(stream, at, mask)     the next fields of the stream from bit `at` on, one in each byte that
//                                      the mask names, else 0; loads no more than 32 bytes from there on
//   in_order_of_tops<S>(v)             the bytes of a part in the order of ibp2_lanes.h
//   words_in_order_of_tops(at)         words of half a part in that order
//   low_half8(v, w), high_half8(v, w)  of each 16 bytes, the bytes of the lower or upper halves in turns
//   low_half16(v, w), ...              the same for wider lanes
//   low_bytes<S, LowBytes>(at)         chunks of S bytes: LowBytes from the low plane, then zeros; loads no
//                                      more than 64 bytes beyond them
#pragma once

#include <cstring>

#include "cpu/ibp2_block.h"
#include "cpu/ibp2_rows.h"
#include "cpu/ibp2_vector_codes.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {
namespace {

template <typename Word, class Lanes>
class Ibp2VectorBlock {
  using Tables = Ibp2Tables<Word>;
  using Codes = Ibp2VectorCodes<Lanes>;
  using Any = Ibp2Block<Word, Codes>;
  using Vector = typename Lanes::Vector;
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kLanes = Lanes::kLanes;

 public:
  GNN_IBP_TARGET static bool check(const Tables& tables, Ibp2Row& row, size_t first, size_t count) {
    return Any::check(tables, row, first, count);
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode(const Tables& tables, Ibp2Row& row, size_t first, size_t count,
                                    uint8_t* chunks) {
    if constexpr (S > 1) {
      if (tables.lanes.has_tops) {
        Codes codes;
        if (!codes.read(tables, row, first, count)) return false;
        put_tops<LowBytes>(tables, row, first, count, codes, chunks);
        return true;
      }
    }
    return Any::template decode<LowBytes>(tables, row, first, count, chunks);
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode_two(const Tables& tables, Ibp2Row (&rows)[2], size_t first, size_t count,
                                        uint8_t* const (&chunks)[2]) {
    if constexpr (S > 1) {
      if (tables.lanes.has_tops) {
        Codes codes[2];
        if (!Codes::read(tables, rows, first, count, codes)) return false;
        for (size_t r = 0; r < 2; ++r) put_tops<LowBytes>(tables, rows[r], first, count, codes[r], chunks[r]);
        return true;
      }
    }
    return Any::template decode_two<LowBytes>(tables, rows, first, count, chunks);
  }

 private:
  // Writes the chunks of a block that has these codes, where their tops are put together in words.
  template <unsigned LowBytes>
  GNN_IBP_INLINE static void put_tops(const Tables& tables, const Ibp2Row& row, size_t first, size_t count,
                                      const Codes& codes, uint8_t* chunks) {
    if (tables.lanes.has_byte_heads) {
      put_parts<LowBytes, true>(tables, row, first, count, codes.data(), chunks);
    } else {
      put_parts<LowBytes, false>(tables, row, first, count, codes.data(), chunks);
    }
    Any::put_raw(tables, row.later.stream, codes, chunks);
  }

  template <unsigned LowBytes, bool HasByteHeads>
  GNN_IBP_TARGET static void put_parts(const Tables& tables, const Ibp2Row& row, size_t first, size_t count,
                                       const uint8_t* codes, uint8_t* chunks) {
    Tops<HasByteHeads> tops(tables, row, first);
    const uint8_t* low = row.low_plane + first * LowBytes;
    size_t j = 0;
    for (; j + kLanes <= count; j += kLanes)
      join<LowBytes>(tops.next(Lanes::load(codes + j)), low + j * LowBytes, chunks + j * S);
    if (j < count)
      put_rest<LowBytes, HasByteHeads>(tables, row, first + j, count - j, codes + j, chunks + j * S);
  }

  // The same for a part that is not whole; it writes no byte beyond its chunks. Apart from the whole ones,
  // whose loop needs all registers.
  template <unsigned LowBytes, bool HasByteHeads>
  [[gnu::noinline]] GNN_IBP_TARGET static void put_rest(const Tables& tables, const Ibp2Row& row,
                                                        size_t first, size_t count, const uint8_t* codes,
                                                        uint8_t* chunks) {
    Tops<HasByteHeads> tops(tables, row, first);
    uint8_t lows[kLanes * LowBytes + kPadBytes], whole[kLanes * S];
    std::memcpy(lows, row.low_plane + first * LowBytes, count * LowBytes);
    join<LowBytes>(tops.next(Lanes::load(codes)), lows, whole);
    std::memcpy(chunks, whole, count * S);
  }

  struct Words {
    Vector first, second;  // of the halves of a part
  };

  // The upper 16 bits of chunks, part by part; where bits of the low plane are among them, these are 0.
  template <bool HasByteHeads>
  class Tops {
    static constexpr size_t kConstants = HasByteHeads ? 2 : 3;  // vectors a part

   public:
    GNN_IBP_INLINE Tops(const Tables& tables, const Ibp2Row& row, size_t first)
        : constants_(tables.lanes.tops.data() + kConstants * tables.entry(first)),
          high_(row.high_plane + first / 8 * tables.high_bits - 1),
          half_bytes_(kLanes / 16 * tables.high_bits),
          lower_leaf_(Lanes::table(tables.lanes.leaf[0])),
          upper_leaf_(Lanes::table(tables.lanes.leaf[1])),
          high_places_(Lanes::load(tables.lanes.high.data())),
          high_factor_(Lanes::load(tables.lanes.high.data() + kLanes)),
          high_bits_(Lanes::words(static_cast<uint16_t>((1u << tables.high_bits) - 1))),
          head_at_(Lanes::count(HasByteHeads ? 8 - tables.sign_bits : tables.sign_bits)),
          high_at_(Lanes::count(16 - tables.sign_bits - tables.head_bits - tables.high_bits)) {}

    // Of the next part, which has these codes.
    GNN_IBP_INLINE Words next(Vector part) {
      const Vector codes = Lanes::template in_order_of_tops<S>(part);
      const Vector t = codes ^ Lanes::load(constants_);
      const Words heads = HasByteHeads ? byte_heads(codes, t) : word_heads(codes, t);
      const Words words{heads.first | high(high_), heads.second | high(high_ + half_bytes_)};
      constants_ += kConstants * kLanes;
      high_ += 2 * half_bytes_;
      return words;
    }

   private:
    GNN_IBP_INLINE Words byte_heads(Vector codes, Vector t) const {
      const Vector exponent =
          Lanes::add8(Lanes::look_up(upper_leaf_, codes), Lanes::load(constants_ + kLanes));
      const Vector sign = Lanes::shift_right(t, Lanes::count(6)) & Lanes::bytes(1);
      return {Lanes::shift_left(Lanes::low_half8(exponent, sign), head_at_),
              Lanes::shift_left(Lanes::high_half8(exponent, sign), head_at_)};
    }

    GNN_IBP_INLINE Words word_heads(Vector codes, Vector t) const {
      const Vector sign = Lanes::add8(t, t) & Lanes::bytes(0x80), none = Lanes::bytes(0);
      const Vector lower = Lanes::look_up(lower_leaf_, codes), upper = Lanes::look_up(upper_leaf_, codes);
      return {
          exponent(Lanes::low_half8(lower, upper), constants_ + kLanes) | Lanes::low_half8(none, sign),
          exponent(Lanes::high_half8(lower, upper), constants_ + 2 * kLanes) | Lanes::high_half8(none, sign)};
    }

    GNN_IBP_INLINE Vector exponent(Vector leaf, const uint8_t* base) const {
      return Lanes::shift_right(Lanes::add(Lanes::load(base), leaf), head_at_);
    }

    // The bits of half a part from the high plane.
    GNN_IBP_INLINE Vector high(const uint8_t* plane) const {
      const Vector fields =
          Lanes::high_product(Lanes::pick(Lanes::window(plane), high_places_), high_factor_);
      return Lanes::shift_left(fields & high_bits_, high_at_);
    }

    const uint8_t *constants_, *high_;
    const size_t half_bytes_;  // of the high plane
    const typename Lanes::Table lower_leaf_, upper_leaf_;
    const Vector high_places_, high_factor_, high_bits_;
    const typename Lanes::Count head_at_, high_at_;  // how far heads and high bits are shifted
  };

  // Puts tops on the low plane's bytes.
  template <unsigned LowBytes>
  GNN_IBP_INLINE static void join(const Words& tops, const uint8_t* low, uint8_t* chunks) {
    constexpr size_t kHalf = kLanes / 2;
    if constexpr (S == 2) {
      put<LowBytes>(tops.first, low, chunks);
      put<LowBytes>(tops.second, low + kHalf * LowBytes, chunks + kLanes);
    } else if constexpr (S == 4 && LowBytes == 2) {
      const Vector a = Lanes::words_in_order_of_tops(low), b = Lanes::words_in_order_of_tops(low + kLanes);
      Lanes::store(chunks, Lanes::low_half16(a, tops.first));
      Lanes::store(chunks + kLanes, Lanes::high_half16(a, tops.first));
      Lanes::store(chunks + 2 * kLanes, Lanes::low_half16(b, tops.second));
      Lanes::store(chunks + 3 * kLanes, Lanes::high_half16(b, tops.second));
    } else {
      join_wide<LowBytes>(tops.first, low, chunks);
      join_wide<LowBytes>(tops.second, low + kHalf * LowBytes, chunks + kHalf * S);
    }
  }

  template <unsigned LowBytes>
  GNN_IBP_INLINE static void join_wide(Vector tops, const uint8_t* low, uint8_t* chunks) {
    const Vector none = Lanes::bytes(0);
    const Vector halves[2] = {Lanes::low_half16(none, tops), Lanes::high_half16(none, tops)};
    for (const Vector half : halves) {
      if constexpr (S == 4) {
        put<LowBytes>(half, low, chunks);
      } else {
        put<LowBytes>(Lanes::low_half32(none, half), low, chunks);
        put<LowBytes>(Lanes::high_half32(none, half), low + kLanes / 8 * LowBytes, chunks + kLanes);
      }
      low += kLanes / 4 * LowBytes;
      chunks += kLanes / 4 * S;
    }
  }

  template <unsigned LowBytes>
  GNN_IBP_INLINE static void put(Vector tops, const uint8_t* low, uint8_t* chunks) {
    if constexpr (LowBytes != 0) tops = tops | Lanes::template low_bytes<S, LowBytes>(low);
    Lanes::store(chunks, tops);
  }
};

}  // namespace
}  // namespace gnn_ibp
