#include "cpu/ibp_codec.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cpu/bit_stream.h"
#include "cpu/little_endian.h"
#include "ibp_row.h"

namespace gnn_ibp {
namespace {

template <typename Word>
class IbpCodec final : public RowCodec {
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kBlock = 64;         // chunks handled together: a word of participation bits
  static constexpr size_t kPerWrite = 64 / W;  // chunks appended at once
  static constexpr size_t kPerRead = W == 64 ? 1 : 32 / W;  // chunks out of one look at the stream

 public:
  IbpCodec(const uint8_t* mask, const uint8_t* bitval, size_t row_bytes)
      : RowCodec(row_bytes, S),
        num_chunks_(row_bytes / S),
        participation_bytes_(participation_bytes(num_chunks_, S)),
        num_nibbles_((num_chunks_ + 7) / 8 * 2) {
    const size_t padded = (num_chunks_ + kBlock - 1) / kBlock * kBlock;
    mask_.resize(padded);
    bitval_.resize(padded);
    keep_.resize(padded);
    saved_.resize(padded);
    full_.resize(padded);
    for (auto& moves : moves_) moves.resize(padded);
    for (size_t j = 0; j < num_chunks_; ++j) {
      mask_[j] = load_le<Word>(mask + j * S);
      bitval_[j] = load_le<Word>(bitval + j * S);
      keep_[j] = static_cast<Word>(~mask_[j]);
      saved_[j] = static_cast<uint8_t>(std::popcount(mask_[j]));
      full_[j] = W;
      if (bitval_[j] & keep_[j]) throw std::invalid_argument("bitval has bits outside of mask");
      Word moves[6];
      num_steps_ = std::max(num_steps_, split_moves(keep_[j], moves));
      for (unsigned i = 0; (1u << i) < W; ++i) moves_[i][j] = moves[i];
    }
    saved_by_nibble_.resize(num_nibbles_);
    for (size_t k = 0; k < num_nibbles_; ++k)
      for (size_t bits = 0; bits < 16; ++bits)
        for (size_t i = 0; i < 4; ++i)
          if (bits >> i & 1) saved_by_nibble_[k].sum[bits] += saved_[4 * k + i];
  }

  size_t stored_size(const uint8_t* row) const override {
    uint64_t payload_bits = static_cast<uint64_t>(num_chunks_) * W;
    uint8_t buffer[kBlock * S];
    for (size_t first = 0; first < num_chunks_; first += kBlock)
      payload_bits -= saved_bits(participation(whole_block(row, first, buffer), first), first);
    return std::min(encoded_size(num_chunks_, S, payload_bits), row_bytes());
  }

  void encode(const uint8_t* row, uint8_t* stored) const override {
    with_steps([&](auto steps) { encode_in<steps()>(row, stored); });
  }

  bool check(const uint8_t* stored, size_t size) const override {
    return size != 0 && announced_size(stored, size) == size;
  }

  size_t announced_size(const uint8_t* stored, size_t limit) const override {
    if (limit < participation_bytes_ || num_chunks_ == 0) return 0;
    uint64_t payload_bits = static_cast<uint64_t>(num_chunks_) * W;
    for (size_t first = 0; first < num_chunks_; first += kBlock)
      payload_bits -= saved_bits(load_le<uint64_t>(stored + first / 8), first);
    const size_t size = encoded_size(num_chunks_, S, payload_bits);
    if (size > limit || size >= row_bytes()) return 0;
    return padding_is_zero(stored, size, payload_bits) ? size : 0;
  }

  void decode(const uint8_t* stored, uint8_t* row) const override {
    with_steps([&](auto steps) { decode_in<steps()>(stored, row); });
  }

 private:
  struct NibbleSums {
    uint16_t sum[16] = {};  // bits saved by 4 chunks, for every pattern of their participation bits
  };

  // Calls run with num_steps_ as a constant, for loops over steps that the compiler unrolls.
  template <typename Run>
  void with_steps(const Run& run) const {
    switch (num_steps_) {
      case 0:
        return run(std::integral_constant<unsigned, 0>{});
      case 1:
        return run(std::integral_constant<unsigned, 1>{});
      case 2:
        return run(std::integral_constant<unsigned, 2>{});
      case 3:
        return run(std::integral_constant<unsigned, 3>{});
      case 4:
        return run(std::integral_constant<unsigned, 4>{});
      case 5:
        return run(std::integral_constant<unsigned, 5>{});
      default:
        return run(std::integral_constant<unsigned, 6>{});
    }
  }

  size_t block_size(size_t first) const { return std::min(kBlock, num_chunks_ - first); }

  // The chunks of the block that begins at `first`, filled up with zeros in `buffer` where it is not whole.
  const uint8_t* whole_block(const uint8_t* row, size_t first, uint8_t* buffer) const {
    const size_t count = block_size(first);
    if (count == kBlock) return row + first * S;
    std::fill(std::copy_n(row + first * S, count * S, buffer), buffer + kBlock * S, uint8_t{0});
    return buffer;
  }

  // Participation bits of a whole block; 0 beyond the last chunk.
  uint64_t participation(const uint8_t* __restrict chunks, size_t first) const {
    const Word* __restrict mask = mask_.data() + first;
    const Word* __restrict bitval = bitval_.data() + first;
    uint8_t hit[kBlock];
    for (size_t j = 0; j < kBlock; ++j) hit[j] = (load_le<Word>(chunks + j * S) & mask[j]) == bitval[j];
    uint64_t bits = 0;
    for (size_t k = 0; k < kBlock; k += 8)  // eight bytes of 0 or 1 to eight bits
      bits |= (load_le<uint64_t>(hit + k) * 0x0102040810204080u >> 56) << k;
    return bits & ~uint64_t{0} >> (kBlock - block_size(first));
  }

  // Bits left out of a block; what `part` holds beyond the last chunk does not count.
  uint64_t saved_bits(uint64_t part, size_t first) const {
    const NibbleSums* sums = saved_by_nibble_.data() + first / 4;
    const size_t count = std::min(kBlock / 4, num_nibbles_ - first / 4);
    uint64_t saved = 0;
    for (size_t k = 0; k < count; ++k, part >>= 4) saved += sums[k].sum[part & 15];
    return saved;
  }

  bool padding_is_zero(const uint8_t* stored, size_t size, uint64_t payload_bits) const {
    unsigned ones = 0;
    if (num_chunks_ % 8) ones |= stored[num_chunks_ / 8] >> (num_chunks_ % 8);
    for (size_t b = (num_chunks_ + 7) / 8; b < participation_bytes_; ++b) ones |= stored[b];
    const unsigned tail = payload_bits % W;
    if (tail) ones |= static_cast<Word>(load_le<Word>(stored + size - S) << tail) != 0;
    return ones == 0;
  }

  // takes_part[j]: 0xFF where chunk j participates, else 0.
  static void spread_bits(uint64_t part, uint8_t takes_part[kBlock]) {
    for (size_t k = 0; k < kBlock; k += 8) {
      const uint64_t bits =
          (part >> k & 0xFF) * 0x0101010101010101u & 0x8040201008040201u;  // bit i in byte i
      const uint64_t ones = (bits + 0x7F7F7F7F7F7F7F7Fu) >> 7 & 0x0101010101010101u;
      store_le(takes_part + k, ones * 0xFF);
    }
  }

  // widths[j]: the number of bits that chunk j adds to the payload; 0 beyond the last chunk.
  void widths_of(const uint8_t* __restrict takes_part, size_t first, uint8_t* __restrict widths) const {
    const uint8_t* saved = saved_.data() + first;
    const uint8_t* full = full_.data() + first;
    for (size_t j = 0; j < kBlock; ++j)
      widths[j] = static_cast<uint8_t>(full[j] - (saved[j] & takes_part[j]));
  }

  template <unsigned Steps>
  void encode_in(const uint8_t* row, uint8_t* stored) const {
    uint8_t* out = stored + participation_bytes_;
    std::fill(stored + (num_chunks_ + 7) / 8, out, uint8_t{0});
    BitWriter<Word, kBlock> writer;
    uint8_t buffer[kBlock * S];
    for (size_t first = 0; first < num_chunks_; first += kBlock) {
      const size_t count = block_size(first);
      const uint8_t* chunks = whole_block(row, first, buffer);
      const uint64_t part = participation(chunks, first);
      const uint64_t part_le = to_little_endian(part);
      std::memcpy(stored + first / 8, &part_le, (count + 7) / 8);

      uint8_t takes_part[kBlock], widths[kBlock];
      spread_bits(part, takes_part);
      widths_of(takes_part, first, widths);
      Word values[kBlock];
      compress<Steps>(chunks, takes_part, first, values);
      for (size_t j = 0; j < count; j += kPerWrite) {
        uint64_t bits = values[j];
        unsigned width = widths[j];
        for (size_t k = j + 1; k < j + kPerWrite; ++k) {
          bits = bits << widths[k] | values[k];
          width += widths[k];
        }
        writer.append(bits, width);
      }
      out = writer.flush(out);
    }
    writer.finish(out);
  }

  // values[j]: the bits that chunk j adds to the payload, at the low end; 0 beyond the last chunk.
  template <unsigned Steps>
  void compress(const uint8_t* __restrict chunks, const uint8_t* __restrict takes_part, size_t first,
                Word* __restrict values) const {
    const Word* keep = keep_.data() + first;
    const Word* moves[Steps + 1];
    for (unsigned i = 0; i < Steps; ++i) moves[i] = moves_[i].data() + first;
    for (size_t j = 0; j < kBlock; ++j) {
      const Word chunk = load_le<Word>(chunks + j * S);
      Word kept = chunk & keep[j];
      for (unsigned i = 0; i < Steps; ++i) kept = move_down(kept, moves[i][j], i);
      const Word takes = static_cast<Word>(static_cast<int8_t>(takes_part[j]));
      values[j] = static_cast<Word>((kept & takes) | (chunk & ~takes));
    }
  }

  template <unsigned Steps>
  void decode_in(const uint8_t* stored, uint8_t* row) const {
    const uint8_t* payload = stored + participation_bytes_;
    uint64_t at = 0;  // bits of the payload
    for (size_t first = 0; first < num_chunks_; first += kBlock) {
      const size_t count = block_size(first);
      uint8_t takes_part[kBlock], widths[kBlock];
      spread_bits(load_le<uint64_t>(stored + first / 8), takes_part);
      widths_of(takes_part, first, widths);
      Word values[kBlock];
      for (size_t j = 0; j < count; j += kPerRead) {
        uint64_t stream = stream_at<Word>(payload, at);
        for (size_t k = j; k < j + kPerRead; ++k) {
          values[k] = top_bits<Word>(stream, widths[k]);
          if (kPerRead > 1) stream <<= widths[k];
          at += widths[k];
        }
      }
      if (count == kBlock) {
        expand<Steps>(values, takes_part, first, row + first * S);
      } else {
        uint8_t buffer[kBlock * S];
        std::fill(values + count, values + kBlock, Word{0});
        expand<Steps>(values, takes_part, first, buffer);
        std::copy_n(buffer, count * S, row + first * S);
      }
    }
  }

  // The inverse of compress.
  template <unsigned Steps>
  void expand(const Word* __restrict values, const uint8_t* __restrict takes_part, size_t first,
              uint8_t* __restrict chunks) const {
    const Word* keep = keep_.data() + first;
    const Word* bitval = bitval_.data() + first;
    const Word* moves[Steps + 1];
    for (unsigned i = 0; i < Steps; ++i) moves[i] = moves_[i].data() + first;
    for (size_t j = 0; j < kBlock; ++j) {
      Word spread = values[j];
      for (unsigned i = Steps; i-- > 0;) spread = move_up(spread, moves[i][j], i);
      spread = static_cast<Word>((spread & keep[j]) | bitval[j]);
      const Word takes = static_cast<Word>(static_cast<int8_t>(takes_part[j]));
      store_le(chunks + j * S, static_cast<Word>((spread & takes) | (values[j] & ~takes)));
    }
  }

  const size_t num_chunks_, participation_bytes_, num_nibbles_;
  unsigned num_steps_ = 0;
  // One entry a chunk, padded to whole blocks.
  std::vector<Word> mask_, bitval_, keep_, moves_[6];
  std::vector<uint8_t> saved_, full_;  // popcount of the mask; W
  std::vector<NibbleSums> saved_by_nibble_;
};

}  // namespace

std::unique_ptr<RowCodec> make_ibp_codec(const uint8_t* mask, const uint8_t* bitval, size_t row_bytes,
                                         int chunk_bits) {
  if (chunk_bits != 8 && chunk_bits != 16 && chunk_bits != 32 && chunk_bits != 64)
    throw std::invalid_argument("chunk_bits is not 8, 16, 32 or 64");
  if (row_bytes % (chunk_bits / 8)) throw std::invalid_argument("chunk_bits does not divide the row");
  switch (chunk_bits) {
    case 8:
      return std::make_unique<IbpCodec<uint8_t>>(mask, bitval, row_bytes);
    case 16:
      return std::make_unique<IbpCodec<uint16_t>>(mask, bitval, row_bytes);
    case 32:
      return std::make_unique<IbpCodec<uint32_t>>(mask, bitval, row_bytes);
    default:
      return std::make_unique<IbpCodec<uint64_t>>(mask, bitval, row_bytes);
  }
}

}  // namespace gnn_ibp
