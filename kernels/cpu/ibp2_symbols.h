// Which fields say the head of a chunk: those of the first symbol that fits, found by one look into a table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/ibp2_params.h"
#include "cpu/ibp2_tables.h"
#include "cpu/little_endian.h"
#include "random.h"

namespace gnn_ibp {

// The fields of a symbol or of RAW. level: how many of them there are; 4 = then the head as it is; 5 = the
// class has no RAW, and the row cannot be encoded.
struct Ibp2Code {
  static constexpr uint8_t kRaw = 4, kNone = 5;
  uint8_t level, first, second, third;
};

// The codes of all classes. A symbol's key is t, E bits of its leaf below it. Each class has a part of the
// table and, behind all parts, the code of heads that are none of its symbols.
template <typename Word>
class Ibp2Symbols {
  static constexpr unsigned W = 8 * sizeof(Word);

 public:
  // Bits behind the first level that no block of codes has, but one with a code that there is not.
  static constexpr uint16_t kImpossible = 1 << 15;

  Ibp2Symbols(const Ibp2Tables<Word>& tables, const Ibp2Params& params);

  // Finds the codes of `count` chunks, no more than a block; `entry` is the first one's in the tables.
  void find(const uint8_t* chunks, size_t entry, size_t count, uint16_t* found) const {
    Word keys[kIbp2Block];
    make_keys(chunks, base_.data() + entry, sign_.data() + entry, count, keys);
    const uint16_t* part = part_.data() + entry;
    if (is_direct_) {
      for (size_t i = 0; i < count; ++i) found[i] = static_cast<uint16_t>(part[i] + keys[i]);
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t slot = part[i] + slot_of(keys[i], multiplier_[part[i] >> kSlotBits]);
      const size_t other = kOthers + (part[i] >> kSlotBits);
      found[i] = static_cast<uint16_t>(keys_[slot] == keys[i] ? slot : other);
    }
  }

  const Ibp2Code& code(uint16_t found) const { return codes_[found]; }

  // Bits of the fields behind the first one.
  uint16_t later_bits(uint16_t found) const { return later_bits_[found]; }

  // Of every code: in the lower byte all fields, the first in three bits, then two, then three; in the upper
  // one ones in place of the fields behind the first that there are, and kIsRaw.
  static constexpr uint8_t kSecondBits = 0x18, kThirdBits = 0xE0, kIsRaw = 1;
  const uint16_t* fields() const { return fields_.data(); }

 private:
  // Two keys meet in a slot for no more than 2 of kSlots multipliers, 190 pairs of 20 symbols for no more
  // than 380 of 512: there is always one that keeps all apart.
  static constexpr unsigned kSlotBits = 9;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static constexpr size_t kOthers = kIbp2Classes * kSlots;

  struct Symbol {
    Word key;
    Ibp2Code code;
  };

  void make_keys(const uint8_t* __restrict chunks, const Word* __restrict base, const Word* __restrict sign,
                 size_t count, Word* __restrict keys) const {
    for (size_t i = 0; i < count; ++i) {
      const Word head = static_cast<Word>(load_le<Word>(chunks + i * sizeof(Word)) >> head_shift_);
      const Word d = static_cast<Word>(head - base[i]) & exponent_bits_;
      keys[i] = static_cast<Word>(d | ((head & sign_bit_) ^ sign[i]));
    }
  }

  static size_t slot_of(Word key, uint64_t multiplier) {
    return static_cast<size_t>(key * multiplier >> (64 - kSlotBits));
  }
  static Ibp2Code code_of(const Ibp2Class& made, unsigned symbol);
  static std::vector<Symbol> symbols_of(const Ibp2Params& params, const Ibp2Class& made);

  void add_class(size_t c, const std::vector<Symbol>& symbols, const Ibp2Code& other);
  void put(size_t slot, Word key, const Ibp2Code& code);
  uint64_t multiplier_for(const std::vector<Symbol>& symbols) const;

  unsigned head_shift_, top_bits_;
  Word exponent_bits_, sign_bit_;
  bool is_direct_;                 // keys are so short that they are slots themselves
  std::vector<Word> base_, sign_;  // of each position, at the low end
  std::vector<uint16_t> part_;     // where its class begins in the table
  uint64_t multiplier_[kIbp2Classes] = {};
  std::vector<Word> keys_;
  std::vector<Ibp2Code> codes_;
  std::vector<uint16_t> later_bits_, fields_;
};

template <typename Word>
Ibp2Symbols<Word>::Ibp2Symbols(const Ibp2Tables<Word>& tables, const Ibp2Params& params)
    : head_shift_(W - params.sign_bits - params.head_bits),
      top_bits_(params.sign_bits + params.head_bits),
      exponent_bits_(static_cast<Word>(static_cast<Word>(~Word{0}) >> (W - params.head_bits))),
      sign_bit_(params.sign_bits ? static_cast<Word>(Word{1} << params.head_bits) : Word{0}),
      is_direct_(top_bits_ <= kSlotBits),
      keys_(kOthers + kIbp2Classes),
      codes_(kOthers + kIbp2Classes),
      later_bits_(kOthers + kIbp2Classes),
      fields_(kOthers + kIbp2Classes) {
  for (size_t j = 0; j < tables.base.size(); ++j) {
    base_.push_back(static_cast<Word>(tables.base[j] >> (W - params.head_bits)));
    sign_.push_back(tables.flip[j] ? sign_bit_ : Word{0});
    part_.push_back(static_cast<uint16_t>(tables.class_of[j] * kSlots));
  }
  for (size_t c = 0; c < params.classes.size(); ++c) {
    const Ibp2Class& made = params.classes[c];
    const Ibp2Code other = made.g ? code_of(made, made.num_symbols()) : Ibp2Code{Ibp2Code::kNone, 0, 0, 0};
    add_class(c, symbols_of(params, made), other);
  }
}

template <typename Word>
Ibp2Code Ibp2Symbols<Word>::code_of(const Ibp2Class& made, unsigned symbol) {
  const unsigned num_first = made.num_first(), num_second = made.num_second();
  if (symbol < num_first) return {1, static_cast<uint8_t>(symbol), 0, 0};
  const unsigned i = std::min(symbol - num_first, num_second);  // level 3 is behind the last of level 2
  const uint8_t first = static_cast<uint8_t>(num_first + i / 4), second = i % 4;
  if (symbol < num_first + num_second) return {2, first, second, 0};
  const unsigned third = symbol - num_first - num_second;
  return {static_cast<uint8_t>(third < 7 ? 3 : Ibp2Code::kRaw), first, second, static_cast<uint8_t>(third)};
}

// The different ones, each with the first code that there is for it.
template <typename Word>
auto Ibp2Symbols<Word>::symbols_of(const Ibp2Params& params, const Ibp2Class& made) -> std::vector<Symbol> {
  std::vector<Symbol> symbols;
  for (unsigned i = 0; i < made.num_symbols(); ++i) {
    uint64_t key = params.leaf[made.symbols[i] & kIbp2Leaf];
    if (made.symbols[i] & kIbp2Flip) key |= uint64_t{1} << params.head_bits;
    const auto same = [key](const Symbol& symbol) { return symbol.key == key; };
    if (std::none_of(symbols.begin(), symbols.end(), same))
      symbols.push_back({static_cast<Word>(key), code_of(made, i)});
  }
  return symbols;
}

template <typename Word>
void Ibp2Symbols<Word>::add_class(size_t c, const std::vector<Symbol>& symbols, const Ibp2Code& other) {
  // Empty slots have key 0, which is found as another where it is none of the symbols.
  for (size_t slot = 0; slot < kSlots; ++slot) put(c * kSlots + slot, 0, other);
  put(kOthers + c, 0, other);
  multiplier_[c] = multiplier_for(symbols);
  for (const auto& [key, code] : symbols) put(c * kSlots + slot_of(key, multiplier_[c]), key, code);
}

template <typename Word>
void Ibp2Symbols<Word>::put(size_t slot, Word key, const Ibp2Code& code) {
  constexpr uint16_t kBits[] = {0, 0, 2, 5, 5, kImpossible};
  keys_[slot] = key;
  codes_[slot] = code;
  later_bits_[slot] =
      static_cast<uint16_t>(kBits[code.level] + (code.level == Ibp2Code::kRaw ? top_bits_ : 0));
  const unsigned later = (code.level >= 2 ? kSecondBits : 0u) | (code.level >= 3 ? kThirdBits : 0u) |
                         (code.level == Ibp2Code::kRaw ? kIsRaw : 0u);
  fields_[slot] = static_cast<uint16_t>(code.first | code.second << 3 | code.third << 5 | later << 8);
}

template <typename Word>
uint64_t Ibp2Symbols<Word>::multiplier_for(const std::vector<Symbol>& symbols) const {
  if (is_direct_) return uint64_t{1} << (64 - kSlotBits);
  for (uint64_t seed = 0;; ++seed) {
    const uint64_t multiplier = mix(0, seed) | 1;
    std::vector<bool> taken(kSlots);
    bool apart = true;
    for (const Symbol& symbol : symbols) {
      const size_t slot = slot_of(symbol.key, multiplier);
      apart &= !taken[slot];
      taken[slot] = true;
    }
    if (apart) return multiplier;
  }
}

}  // namespace gnn_ibp
