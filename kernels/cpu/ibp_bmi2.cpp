// Invariant Bit Packing by pdep and pext: eight bytes of chunks at a time.
#include "cpu/simd_level.h"

#ifdef GNN_IBP_X86
#include <immintrin.h>

#define GNN_IBP_TARGET __attribute__((target("bmi,bmi2,popcnt")))
#include "cpu/ibp_groups.h"

namespace gnn_ibp {
namespace {

// Groups of eight chunks: sizeof(Word) pieces of eight bytes.
template <typename Word>
struct PdepGroup {
  using Tables = IbpTables<Word>;
  using Block = IbpBlock<Word>;
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t kChunks = 8;
  static constexpr size_t kPerPiece = 64 / W;
  static constexpr uint64_t kOneEach = ~uint64_t{0} / static_cast<Word>(~Word{0});  // a one a chunk
  static constexpr uint64_t kPieceBits = ~uint64_t{0} >> (64 - kPerPiece);

  GNN_IBP_TARGET static uint64_t participation(const Block& block, size_t first, const uint8_t* chunks) {
    uint64_t bits = 0;
    for (size_t k = 0; k < kChunks; ++k) {
      const Word chunk = load_le<Word>(chunks + k * sizeof(Word));
      bits |= uint64_t{(chunk & block.mask[first + k]) == block.bitval[first + k]} << k;
    }
    return bits;
  }

  GNN_IBP_TARGET static uint64_t saved(const Tables& tables, size_t first, uint64_t takes_part) {
    return tables.saved_in_block(takes_part, first);
  }

  template <typename Writer>
  GNN_IBP_TARGET static void append(const Block& block, size_t first, const uint8_t* chunks,
                                    uint64_t takes_part, Writer& writer) {
    for (size_t k = 0; k < kChunks; k += kPerPiece, takes_part >>= kPerPiece) {
      const uint64_t keep = kept_bits(block, first + k, chunk_mask(takes_part));
      const uint64_t piece = swap_words<Word>(load_le<uint64_t>(chunks + k * sizeof(Word)));
      writer.append(_pext_u64(piece, swap_words<Word>(keep)), popcount(keep));
    }
  }

  GNN_IBP_TARGET static uint64_t decode(const Block& block, size_t first, uint64_t takes_part,
                                        const uint8_t* payload, uint64_t at, uint8_t* chunks) {
    const uint64_t begin = at;
    for (size_t k = 0; k < kChunks; k += kPerPiece, takes_part >>= kPerPiece) {
      const uint64_t takes = chunk_mask(takes_part);
      const uint64_t keep = kept_bits(block, first + k, takes);
      const unsigned width = popcount(keep);
      const uint64_t bits = stream(payload, at) >> ((64 - width) & 63);  // keep = 0: pdep ignores them
      const uint64_t kept = swap_words<Word>(_pdep_u64(bits, swap_words<Word>(keep)));
      store_le(chunks + k * sizeof(Word), kept | (piece_of(block.bitval + first + k) & takes));
      at += width;
    }
    return at - begin;
  }

 private:
  GNN_IBP_TARGET static unsigned popcount(uint64_t bits) {
    return static_cast<unsigned>(_mm_popcnt_u64(bits));
  }

  GNN_IBP_TARGET static uint64_t piece_of(const Word* words) {
    uint64_t piece;
    std::memcpy(&piece, words, sizeof(piece));
    return piece;
  }

  // All bits of the piece's participating chunks.
  GNN_IBP_TARGET static uint64_t chunk_mask(uint64_t takes_part) {
    const uint64_t ones = W == 64 ? takes_part & 1 : _pdep_u64(takes_part & kPieceBits, kOneEach);
    return ones * static_cast<Word>(~Word{0});
  }

  // The bits of the piece that stand in the payload.
  GNN_IBP_TARGET static uint64_t kept_bits(const Block& block, size_t first, uint64_t takes) {
    return piece_of(block.keep + first) | ~takes;
  }

  // 64 bits of the payload from bit `at` on.
  GNN_IBP_TARGET static uint64_t stream(const uint8_t* payload, uint64_t at) {
    const uint8_t* word = payload + at / W * sizeof(Word);
    const uint64_t high = swap_words<Word>(load_le<uint64_t>(word));
    const uint64_t low = swap_words<Word>(load_le<uint64_t>(word + 8));
    return high << at % W | low >> 1 >> (63 - at % W);
  }
};

}  // namespace

template <typename Word>
IbpLevel<Word> ibp_bmi2() {
  return Grouped<Word, PdepGroup>::level();
}

template IbpLevel<uint8_t> ibp_bmi2();
template IbpLevel<uint16_t> ibp_bmi2();
template IbpLevel<uint32_t> ibp_bmi2();
template IbpLevel<uint64_t> ibp_bmi2();

}  // namespace gnn_ibp
#endif
