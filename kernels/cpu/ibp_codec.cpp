#include "cpu/ibp_codec.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cpu/little_endian.h"
#include "ibp_row.h"

namespace gnn_ibp {
namespace {

constexpr size_t kBlock = 64;  // chunks handled together: their participation bits fill one 64-bit word

// 64 bits of the payload from bit `at` on; at least 64 - (W - 1) of them, all 64 for W = 64.
template <typename Word>
uint64_t stream_at(const uint8_t* payload, uint64_t at) {
  constexpr unsigned W = 8 * sizeof(Word);
  const uint8_t* word = payload + at / W * sizeof(Word);
  const uint64_t stream = swap_words<Word>(load_le<uint64_t>(word)) << at % W;
  if constexpr (W < 64) return stream;
  return stream | load_le<uint64_t>(word + 8) >> 1 >> (63 - at % W);
}

// Collects the payload's stream, a block of chunks at a time.
template <typename Word>
class BitWriter {
 public:
  // Appends the low `width` bits, 0 to 64; the others are 0. Every call writes its word without a branch;
  // one that is not full yet is written again by the next call.
  void append(uint64_t bits, unsigned width) {
    const uint64_t left = bits << ((64 - width) & 63);
    pending_ |= left >> used_;
    full_[num_full_] = to_little_endian(swap_words<Word>(pending_));
    const uint64_t rest = left << 1 << (63 - used_);
    const unsigned end = used_ + width;
    const uint64_t filled = -static_cast<uint64_t>(end >> 6);
    pending_ = (rest & filled) | (pending_ & ~filled);
    used_ = end & 63;
    num_full_ += end >> 6;
  }

  // Copies the full words to `out` and returns the end; to be called after every block.
  uint8_t* flush(uint8_t* out) {
    const size_t bytes = num_full_ * sizeof(uint64_t);
    std::memcpy(out, full_, bytes);
    num_full_ = 0;
    return out + bytes;
  }

  // Copies the last words, filled up with zeros.
  void finish(uint8_t* out) const {
    const uint64_t word = to_little_endian(swap_words<Word>(pending_));
    std::memcpy(out, &word, (used_ + 8 * sizeof(Word) - 1) / (8 * sizeof(Word)) * sizeof(Word));
  }

 private:
  uint64_t pending_ = 0;  // bits of the word that is not yet full, at its high end
  unsigned used_ = 0;     // their number, less than 64
  size_t num_full_ = 0;
  uint64_t full_[kBlock + 1];
};

template <typename Word>
class IbpCodec final : public RowCodec {
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kPerWrite = 64 / W;               // chunks appended at once
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
    for (size_t first = 0; first < num_chunks_; first += kBlock)
      payload_bits -= saved_bits(participation(row, first), first);
    return std::min(encoded_size(num_chunks_, S, payload_bits), row_bytes());
  }

  void encode(const uint8_t* row, uint8_t* stored) const override {
    uint8_t* out = stored + participation_bytes_;
    std::fill(stored + (num_chunks_ + 7) / 8, out, uint8_t{0});
    BitWriter<Word> writer;
    for (size_t first = 0; first < num_chunks_; first += kBlock) {
      const size_t count = std::min(kBlock, num_chunks_ - first);
      const uint64_t part = participation(row, first);
      const uint64_t part_le = to_little_endian(part);
      std::memcpy(stored + first / 8, &part_le, (count + 7) / 8);

      Word values[kBlock];
      uint8_t widths[kBlock];
      compress(row + first * S, first, count, part, values);
      widths_of(part, first, widths);
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

  bool check(const uint8_t* stored, size_t size) const override {
    return size != 0 && announced_size(stored, size) == size;
  }

  size_t announced_size(const uint8_t* stored, size_t limit) const override {
    if (limit < participation_bytes_ || num_chunks_ == 0) return 0;
    uint64_t payload_bits = static_cast<uint64_t>(num_chunks_) * W;
    const size_t whole = num_chunks_ / kBlock * kBlock;
    for (size_t first = 0; first < whole; first += kBlock)
      payload_bits -= saved_bits(load_le<uint64_t>(stored + first / 8), first);
    if (whole < num_chunks_) payload_bits -= saved_bits(last_participation(stored, whole), whole);

    const size_t size = encoded_size(num_chunks_, S, payload_bits);
    if (size > limit || size >= row_bytes()) return 0;
    return padding_is_zero(stored, size, payload_bits) ? size : 0;
  }

  void decode(const uint8_t* stored, uint8_t* row) const override {
    switch (num_steps_) {
      case 0:
        return decode_in<0>(stored, row);
      case 1:
        return decode_in<1>(stored, row);
      case 2:
        return decode_in<2>(stored, row);
      case 3:
        return decode_in<3>(stored, row);
      case 4:
        return decode_in<4>(stored, row);
      case 5:
        return decode_in<5>(stored, row);
      default:
        return decode_in<6>(stored, row);
    }
  }

 private:
  struct NibbleSums {
    uint16_t sum[16] = {};  // bits saved by 4 chunks, for every pattern of their participation bits
  };

  // Participation bits of the chunks from `first` on, up to kBlock of them.
  uint64_t participation(const uint8_t* row, size_t first) const {
    const size_t count = std::min(kBlock, num_chunks_ - first);
    const uint8_t* chunks = row + first * S;
    const Word* mask = mask_.data() + first;
    const Word* bitval = bitval_.data() + first;
    uint8_t hit[kBlock] = {};
    for (size_t j = 0; j < count; ++j) hit[j] = (load_le<Word>(chunks + j * S) & mask[j]) == bitval[j];
    uint64_t bits = 0;
    for (size_t k = 0; k < kBlock; k += 8)  // eight bytes of 0 or 1 to eight bits
      bits |= (load_le<uint64_t>(hit + k) * 0x0102040810204080u >> 56) << k;
    return bits;
  }

  // The same as stored, for the last block, which may be a part of 64 chunks. Bits beyond the last chunk
  // are cleared.
  uint64_t last_participation(const uint8_t* stored, size_t first) const {
    const uint64_t bits = load_le<uint64_t>(stored + first / 8);
    return bits & ~uint64_t{0} >> (kBlock - (num_chunks_ - first));
  }

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
  void widths_of(uint64_t part, size_t first, uint8_t widths[kBlock]) const {
    uint8_t takes_part[kBlock];
    spread_bits(part, takes_part);
    const uint8_t* saved = saved_.data() + first;
    const uint8_t* full = full_.data() + first;
    for (size_t j = 0; j < kBlock; ++j)
      widths[j] = static_cast<uint8_t>(full[j] - (saved[j] & takes_part[j]));
  }

  // values[j]: the bits that chunk j adds to the payload, at the low end; 0 beyond the last chunk.
  void compress(const uint8_t* chunks, size_t first, size_t count, uint64_t part, Word values[kBlock]) const {
    const Word* keep = keep_.data() + first;
    Word block[kBlock] = {};
    load_chunks(chunks, count, block);
    for (size_t j = 0; j < kBlock; ++j) values[j] = block[j] & keep[j];
    for (unsigned step = 0; step < num_steps_; ++step) {
      const Word* moves = moves_[step].data() + first;
      for (size_t j = 0; j < kBlock; ++j) values[j] = move_down(values[j], moves[j], step);
    }
    const uint64_t all = ~uint64_t{0} >> (kBlock - count);
    for (uint64_t whole = ~part & all; whole; whole &= whole - 1) {
      const size_t j = std::countr_zero(whole);
      values[j] = block[j];
    }
  }

  static void load_chunks(const uint8_t* chunks, size_t count, Word* block) {
    for (size_t j = 0; j < count; ++j) block[j] = load_le<Word>(chunks + j * S);
  }

  template <unsigned Steps>
  void decode_in(const uint8_t* stored, uint8_t* row) const {
    const uint8_t* payload = stored + participation_bytes_;
    uint64_t at = 0;  // bits of the payload
    for (size_t first = 0; first < num_chunks_; first += kBlock) {
      const size_t count = std::min(kBlock, num_chunks_ - first);
      uint64_t part = load_le<uint64_t>(stored + first / 8);
      if (count < kBlock) part &= ~uint64_t{0} >> (kBlock - count);
      uint8_t widths[kBlock];
      widths_of(part, first, widths);
      Word values[kBlock];
      for (size_t j = 0; j < count; j += kPerRead) {  // beyond the last chunk widths are 0
        uint64_t stream = stream_at<Word>(payload, at);
        for (size_t k = 0; k < kPerRead; ++k) {
          values[j + k] = top_bits<Word>(stream, widths[j + k]);
          at += widths[j + k];
          if (kPerRead > 1) stream <<= widths[j + k];
        }
      }
      Word chunks[kBlock];
      expand<Steps>(values, part, first, chunks);
      store_chunks(chunks, count, row + first * S);
    }
  }

  template <unsigned Steps>
  void expand(const Word values[kBlock], uint64_t part, size_t first, Word chunks[kBlock]) const {
    uint8_t takes_part[kBlock];
    spread_bits(part, takes_part);
    const Word* keep = keep_.data() + first;
    const Word* bitval = bitval_.data() + first;
    const Word* moves[6];
    for (unsigned i = 0; i < 6; ++i) moves[i] = moves_[i].data() + first;
    for (size_t j = 0; j < kBlock; ++j) {
      Word spread = values[j];
      for (unsigned i = Steps; i-- > 0;) spread = move_up(spread, moves[i][j], i);
      spread = static_cast<Word>((spread & keep[j]) | bitval[j]);
      const Word takes = static_cast<Word>(static_cast<int8_t>(takes_part[j]));
      chunks[j] = static_cast<Word>((spread & takes) | (values[j] & ~takes));
    }
  }

  static void store_chunks(const Word* chunks, size_t count, uint8_t* row) {
    for (size_t j = 0; j < count; ++j) store_le(row + j * S, chunks[j]);
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
