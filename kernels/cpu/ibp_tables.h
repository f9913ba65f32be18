// What the decoders and encoders of Invariant Bit Packing look up for each chunk position, made from the
// masks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cpu/little_endian.h"
#include "ibp_row.h"

namespace gnn_ibp {

inline constexpr size_t kIbpBlock = 64;  // chunks that share a word of participation bits

// One entry a chunk unless said otherwise, padded to whole blocks. The padding chunks are invariant in all
// bits and always take part, so that they add nothing to the payload: kernels treat every block alike.
template <typename Word>
struct IbpTables {
  static constexpr unsigned W = WordBits<Word>::value;
  static constexpr size_t S = sizeof(Word);

  IbpTables(const uint8_t* mask_bytes, const uint8_t* bitval_bytes, size_t row_bytes);

  size_t num_chunks, participation_bytes;
  std::vector<Word> mask, bitval, keep;  // keep = ~mask
  std::vector<uint8_t> saved;            // bits left out where the chunk participates; 16 bytes more
  std::vector<uint64_t> all_invariant;   // a bit a chunk: participating, it adds nothing to the payload

  // Bits left out by four chunks, for every pattern of their participation bits.
  struct FourSaved {
    uint16_t sum[16] = {};
  };
  std::vector<FourSaved> four_saved;

  // Steps that move kept bits to the low end (ibp_row.h): moves[i] for the step by 2^i.
  std::vector<Word> moves[6];
  unsigned num_steps = 0;

  // Kept bits as runs of neighbours: those of a run lie in `bits`, and `up` places lower in the payload. All
  // chunks of a block have as many, some of them empty: run r of chunk j is at runs_at[j / 64] + r * 64 + j
  // % 64.
  std::vector<Word> run_bits, run_up;
  std::vector<size_t> runs_at;  // a block, and the end

  size_t num_padded() const { return mask.size(); }

  // The participation bits of the block that begins at chunk `first`; padding chunks take part.
  uint64_t takes_part(const uint8_t* stored, size_t first) const {
    return load_le<uint64_t>(stored + first / 8) | beyond(first);
  }

  // Ones for the padding chunks of the block.
  uint64_t beyond(size_t first) const {
    const size_t count = num_chunks - first;
    return count < kIbpBlock ? ~uint64_t{0} << count : 0;
  }

  // Bits left out of the block.
  uint64_t saved_in_block(uint64_t takes_part, size_t first) const {
    uint64_t bits = 0;
    for (size_t k = first / 4; k < (first + kIbpBlock) / 4; ++k, takes_part >>= 4)
      bits += four_saved[k].sum[takes_part & 15];
    return bits;
  }

  // Bits of the payload of a row whose participating chunks, padding among them, save `saved_bits`.
  uint64_t payload_bits(uint64_t saved_bits) const {
    return static_cast<uint64_t>(num_padded()) * W - saved_bits;
  }

 private:
  void add_runs();
};

// The arrays of some tables at a block, as plain pointers. A local copy of them stays in registers, where the
// tables' own would be read again after each byte that is stored.
template <typename Word>
struct IbpBlock {
  IbpBlock(const IbpTables<Word>& tables, size_t first)
      : mask(tables.mask.data() + first),
        bitval(tables.bitval.data() + first),
        keep(tables.keep.data() + first),
        saved(tables.saved.data() + first),
        run_bits(tables.run_bits.data() + tables.runs_at[first / kIbpBlock]),
        run_up(tables.run_up.data() + tables.runs_at[first / kIbpBlock]),
        num_runs((tables.runs_at[first / kIbpBlock + 1] - tables.runs_at[first / kIbpBlock]) / kIbpBlock),
        all_invariant(tables.all_invariant[first / kIbpBlock]) {}

  const Word *mask, *bitval, *keep;
  const uint8_t* saved;
  const Word *run_bits, *run_up;  // of run r of chunk j of the block: entry r * 64 + j
  size_t num_runs;
  uint64_t all_invariant;
};

// One run of the bits of `keep`: from its lowest one up.
template <typename Word>
Word lowest_run(Word keep) {
  const Word carried = static_cast<Word>(keep + (keep & -keep));  // the ones of the run become zeros
  return static_cast<Word>(keep & ~carried);
}

template <typename Word>
IbpTables<Word>::IbpTables(const uint8_t* mask_bytes, const uint8_t* bitval_bytes, size_t row_bytes)
    : num_chunks(row_bytes / S), participation_bytes(gnn_ibp::participation_bytes(num_chunks, S)) {
  const size_t padded = (num_chunks + kIbpBlock - 1) / kIbpBlock * kIbpBlock;
  mask.assign(padded, static_cast<Word>(~Word{0}));
  bitval.resize(padded);
  keep.resize(padded);
  saved.resize(padded + 16);  // for loads of 16 where fewer are wanted
  all_invariant.resize(padded / kIbpBlock);
  for (auto& step : moves) step.resize(padded);
  for (size_t j = 0; j < padded; ++j) {
    if (j < num_chunks) {
      mask[j] = load_le<Word>(mask_bytes + j * S);
      bitval[j] = load_le<Word>(bitval_bytes + j * S);
    }
    keep[j] = static_cast<Word>(~mask[j]);
    if (bitval[j] & keep[j]) throw std::invalid_argument("bitval has bits outside of mask");
    saved[j] = static_cast<uint8_t>(std::popcount(mask[j]));
    if (keep[j] == 0) all_invariant[j / kIbpBlock] |= uint64_t{1} << j % kIbpBlock;
    Word split[6];
    num_steps = std::max(num_steps, split_moves(keep[j], split));
    for (unsigned i = 0; (1u << i) < W; ++i) moves[i][j] = split[i];
  }
  add_runs();
  four_saved.resize(padded / 4);
  for (size_t k = 0; k < padded / 4; ++k)
    for (unsigned pattern = 0; pattern < 16; ++pattern)
      for (unsigned i = 0; i < 4; ++i)
        if (pattern >> i & 1) four_saved[k].sum[pattern] += saved[4 * k + i];
}

template <typename Word>
void IbpTables<Word>::add_runs() {
  for (size_t first = 0; first < num_padded(); first += kIbpBlock) {
    const size_t begin = run_bits.size();
    runs_at.push_back(begin);
    for (size_t j = 0; j < kIbpBlock; ++j) {
      unsigned num_lower = 0;  // kept bits below the run
      Word rest = keep[first + j];
      for (size_t at = begin + j; rest != 0; at += kIbpBlock) {
        if (at >= run_bits.size()) {
          run_bits.resize(run_bits.size() + kIbpBlock);
          run_up.resize(run_up.size() + kIbpBlock);
        }
        run_bits[at] = lowest_run(rest);
        run_up[at] = static_cast<Word>(static_cast<unsigned>(std::countr_zero(rest)) - num_lower);
        num_lower += static_cast<unsigned>(std::popcount(run_bits[at]));
        rest = static_cast<Word>(rest & ~run_bits[at]);
      }
    }
  }
  runs_at.push_back(run_bits.size());
}

}  // namespace gnn_ibp
