#include "cpu/ibp2_codec.h"

#include "cpu/ibp2_encoder.h"
#include "cpu/ibp2_fields.h"
#include "cpu/ibp2_level.h"
#include "cpu/ibp2_tables.h"

namespace gnn_ibp {
namespace {

// The level whose functions serve for `level`.
SimdLevel served_by(SimdLevel level) { return level == SimdLevel::kBmi2 ? SimdLevel::kPortable : level; }

template <typename Word>
Ibp2Level<Word> functions_of(SimdLevel level) {
  switch (level) {
#ifdef GNN_IBP_X86
    case SimdLevel::kAvx2:
      return ibp2_avx2<Word>();
    case SimdLevel::kAvx512:
      return ibp2_avx512<Word>();
#endif
#ifdef GNN_IBP_NEON
    case SimdLevel::kNeon:
      return ibp2_neon<Word>();
#endif
    default:
      return ibp2_portable<Word>();
  }
}

template <typename Word>
Ibp2WriteFields<Word> write_fields_of([[maybe_unused]] SimdLevel level) {
#ifdef GNN_IBP_X86
  if (level == SimdLevel::kAvx2 || level == SimdLevel::kAvx512) return ibp2_write_fields_bmi2<Word>();
#endif
  return ibp2_write_fields_portable<Word>();
}

template <typename Word>
class Ibp2Codec final : public RowCodec {
 public:
  Ibp2Codec(const Ibp2Params& params, size_t row_bytes, SimdLevel level)
      : RowCodec(row_bytes, sizeof(Word), level),
        level_(functions_of<Word>(level)),
        tables_(params, level_.lanes),
        encoder_(tables_, params, write_fields_of<Word>(level)) {}

  size_t stored_size(const uint8_t* row) const override { return encoder_.stored_size(row); }

  void encode(const uint8_t* row, uint8_t* stored) const override { encoder_.encode(row, stored); }

  bool check(const uint8_t* stored, size_t size) const override {
    return is_size(size) && level_.check(tables_, stored, size);
  }

  // Planes end where the row does, which only an index knows.
  size_t announced_size(const uint8_t*, size_t) const override { return 0; }
  bool announces_size() const override { return false; }

  void decode(const uint8_t* stored, size_t size, uint8_t* row) const override {
    level_.decode(tables_, stored, size, row);
  }

  bool try_decode(const uint8_t* stored, size_t size, uint8_t* row) const override {
    return is_size(size) && level_.decode(tables_, stored, size, row);
  }

  bool try_decode_two(const DecodeJob (&jobs)[2]) const override {
    return is_size(jobs[0].size) && is_size(jobs[1].size) && level_.decode_two(tables_, jobs);
  }

 private:
  bool is_size(size_t size) const { return size < row_bytes() && (size & (tables_.unit - 1)) == 0; }

  const Ibp2Level<Word> level_;
  const Ibp2Tables<Word> tables_;
  const Ibp2Encoder<Word> encoder_;
};

}  // namespace

std::unique_ptr<RowCodec> make_ibp2_codec(const uint8_t* block, size_t block_bytes, size_t row_bytes,
                                          SimdLevel level) {
  const Ibp2Params params = parse_ibp2_params(block, block_bytes, row_bytes);
  level = served_by(level);
  switch (params.chunk_bits) {
    case 8:
      return std::make_unique<Ibp2Codec<uint8_t>>(params, row_bytes, level);
    case 16:
      return std::make_unique<Ibp2Codec<uint16_t>>(params, row_bytes, level);
    case 32:
      return std::make_unique<Ibp2Codec<uint32_t>>(params, row_bytes, level);
    default:
      return std::make_unique<Ibp2Codec<uint64_t>>(params, row_bytes, level);
  }
}

}  // namespace gnn_ibp
