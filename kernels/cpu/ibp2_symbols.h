// Which fields say the head of a chunk: the first symbol that fits, found by one look into a hash table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/ibp2_params.h"
#include "random.h"

namespace gnn_ibp {

// The fields of a symbol or of RAW. level: how many of them there are; 4 = then the head as it is; 5 = the
// class has no RAW, and the row cannot be encoded.
struct Ibp2Code {
  static constexpr uint8_t kRaw = 4, kNone = 5;
  uint8_t level, first, second, third;
};

// The codes of one class. A symbol's key is t, E bits of its leaf below it.
template <typename Word>
class Ibp2Symbols {
 public:
  Ibp2Symbols() = default;
  Ibp2Symbols(const Ibp2Params& params, const Ibp2Class& made);

  const Ibp2Code& find(Word key) const {
    const Slot& slot = slots_[slot_of(key, multiplier_)];
    return slot.key == key ? slot.code : other_;
  }

  unsigned k1() const { return k1_; }

 private:
  // Two keys meet in a slot for no more than 2 of kSlots multipliers, 190 pairs of 20 symbols for no more
  // than 380 of 512: there is always one that keeps all apart.
  static constexpr unsigned kSlotBits = 9;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;

  struct Slot {
    Word key;
    Ibp2Code code;
  };

  static size_t slot_of(Word key, uint64_t multiplier) {
    return static_cast<size_t>(key * multiplier >> (64 - kSlotBits));
  }
  static Ibp2Code code_of(const Ibp2Class& made, unsigned symbol);

  unsigned k1_ = 0;
  uint64_t multiplier_ = 1;
  Ibp2Code other_{};  // of heads that are no symbol
  std::vector<Slot> slots_;
};

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

template <typename Word>
Ibp2Symbols<Word>::Ibp2Symbols(const Ibp2Params& params, const Ibp2Class& made) : k1_(made.k1) {
  std::vector<Slot> symbols;
  for (unsigned i = 0; i < made.num_symbols(); ++i) {
    const uint8_t symbol = made.symbols[i];
    uint64_t key = params.leaf[symbol & kIbp2Leaf];
    if (symbol & kIbp2Flip) key |= uint64_t{1} << params.head_bits;
    const auto same = [key](const Slot& slot) { return slot.key == key; };
    if (std::none_of(symbols.begin(), symbols.end(), same))
      symbols.push_back({static_cast<Word>(key), code_of(made, i)});
  }
  other_ = made.g ? code_of(made, made.num_symbols()) : Ibp2Code{Ibp2Code::kNone, 0, 0, 0};
  for (uint64_t seed = 0; slots_.empty(); ++seed) {
    multiplier_ = mix(0, seed) | 1;
    std::vector<bool> taken(kSlots);
    bool apart = true;
    for (const Slot& symbol : symbols) {
      const size_t slot = slot_of(symbol.key, multiplier_);
      apart &= !taken[slot];
      taken[slot] = true;
    }
    if (apart) slots_.assign(kSlots, Slot{0, other_});  // key 0 is found as another, where it is none of them
  }
  for (const Slot& symbol : symbols) slots_[slot_of(symbol.key, multiplier_)] = symbol;
}

}  // namespace gnn_ibp
