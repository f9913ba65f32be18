#include "cpu/ibp_codec.h"

#include <algorithm>
#include <stdexcept>

#include "cpu/ibp_level.h"
#include "cpu/ibp_tables.h"
#include "cpu/little_endian.h"
#include "ibp_row.h"

namespace gnn_ibp {
namespace {

template <typename Word>
IbpLevel<Word> functions_of(SimdLevel level) {
  switch (level) {
#ifdef GNN_IBP_X86
    case SimdLevel::kBmi2:
      return ibp_bmi2<Word>();
    case SimdLevel::kAvx2:
      return ibp_avx2<Word>();
    case SimdLevel::kAvx512:
      return ibp_avx512<Word>();
#endif
    default:
      return ibp_portable<Word>();
  }
}

template <typename Word>
class IbpCodec final : public RowCodec {
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);

 public:
  IbpCodec(const uint8_t* mask, const uint8_t* bitval, size_t row_bytes, SimdLevel level)
      : RowCodec(row_bytes, S, level), tables_(mask, bitval, row_bytes), level_(functions_of<Word>(level)) {}

  size_t stored_size(const uint8_t* row) const override {
    const uint64_t payload_bits = tables_.payload_bits(level_.saved_by_row(tables_, row));
    return std::min(encoded_size(tables_.num_chunks, S, payload_bits), row_bytes());
  }

  void encode(const uint8_t* row, uint8_t* stored) const override { level_.encode(tables_, row, stored); }

  bool check(const uint8_t* stored, size_t size) const override {
    return size != 0 && announced_size(stored, size) == size;
  }

  size_t announced_size(const uint8_t* stored, size_t limit) const override {
    if (limit < tables_.participation_bytes || tables_.num_chunks == 0) return 0;
    const uint64_t payload_bits = tables_.payload_bits(level_.saved_by_stored(tables_, stored));
    const size_t size = encoded_size(tables_.num_chunks, S, payload_bits);
    if (size > limit || size >= row_bytes()) return 0;
    return padding_is_zero(stored, size, payload_bits) ? size : 0;
  }

  bool announces_size() const override { return true; }

  void decode(const uint8_t* stored, size_t, uint8_t* row) const override {
    level_.decode(tables_, stored, row);
  }

 private:
  bool padding_is_zero(const uint8_t* stored, size_t size, uint64_t payload_bits) const {
    const size_t num_chunks = tables_.num_chunks;
    unsigned ones = 0;
    if (num_chunks % 8) ones |= stored[num_chunks / 8] >> (num_chunks % 8);
    for (size_t b = (num_chunks + 7) / 8; b < tables_.participation_bytes; ++b) ones |= stored[b];
    const unsigned tail = payload_bits % W;
    if (tail) ones |= static_cast<Word>(load_le<Word>(stored + size - S) << tail) != 0;
    return ones == 0;
  }

  const IbpTables<Word> tables_;
  const IbpLevel<Word> level_;
};

}  // namespace

std::unique_ptr<RowCodec> make_ibp_codec(const uint8_t* mask, const uint8_t* bitval, size_t row_bytes,
                                         int chunk_bits, SimdLevel level) {
  if (chunk_bits != 8 && chunk_bits != 16 && chunk_bits != 32 && chunk_bits != 64)
    throw std::invalid_argument("chunk_bits is not 8, 16, 32 or 64");
  if (row_bytes % (chunk_bits / 8)) throw std::invalid_argument("chunk_bits does not divide the row");
  if (level == SimdLevel::kNeon) level = SimdLevel::kPortable;
  switch (chunk_bits) {
    case 8:
      return std::make_unique<IbpCodec<uint8_t>>(mask, bitval, row_bytes, level);
    case 16:
      return std::make_unique<IbpCodec<uint16_t>>(mask, bitval, row_bytes, level);
    case 32:
      return std::make_unique<IbpCodec<uint32_t>>(mask, bitval, row_bytes, level);
    default:
      return std::make_unique<IbpCodec<uint64_t>>(mask, bitval, row_bytes, level);
  }
}

}  // namespace gnn_ibp
