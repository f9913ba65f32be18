// Invariant Bit Packing in plain C++: blocks of 64 chunks, in loops that a compiler may turn into vectors.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/bit_stream.h"
#include "cpu/ibp_level.h"
#include "cpu/little_endian.h"

namespace gnn_ibp {
namespace {

constexpr size_t kBlock = kIbpBlock;

// Calls run with tables.num_steps as a constant, for loops over steps that the compiler unrolls.
template <typename Word, typename Run>
void with_steps(const IbpTables<Word>& tables, const Run& run) {
  switch (tables.num_steps) {
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

template <typename Word>
struct Portable {
  using Tables = IbpTables<Word>;
  static constexpr unsigned W = 8 * sizeof(Word);
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kPerWrite = 64 / W;               // chunks appended at once
  static constexpr size_t kPerRead = W == 64 ? 1 : 32 / W;  // chunks out of one look at the stream

  static uint64_t saved_by_stored(const Tables& tables, const uint8_t* stored) {
    uint64_t bits = 0;
    for (size_t first = 0; first < tables.num_chunks; first += kBlock)
      bits += tables.saved_in_block(tables.takes_part(stored, first), first);
    return bits;
  }

  static uint64_t saved_by_row(const Tables& tables, const uint8_t* row) {
    uint64_t bits = 0;
    uint8_t buffer[kBlock * S];
    for (size_t first = 0; first < tables.num_chunks; first += kBlock)
      bits +=
          tables.saved_in_block(participation(tables, whole_block(tables, row, first, buffer), first), first);
    return bits;
  }

  static void encode(const Tables& tables, const uint8_t* row, uint8_t* stored) {
    with_steps(tables, [&](auto steps) { encode_in<steps()>(tables, row, stored); });
  }

  static void decode(const Tables& tables, const uint8_t* stored, uint8_t* row) {
    with_steps(tables, [&](auto steps) { decode_in<steps()>(tables, stored, row); });
  }

 private:
  static size_t block_size(const Tables& tables, size_t first) {
    return std::min(kBlock, tables.num_chunks - first);
  }

  // The chunks of the block that begins at `first`, filled up with zeros in `buffer` where it is not whole.
  static const uint8_t* whole_block(const Tables& tables, const uint8_t* row, size_t first, uint8_t* buffer) {
    const size_t count = block_size(tables, first);
    if (count == kBlock) return row + first * S;
    std::fill(std::copy_n(row + first * S, count * S, buffer), buffer + kBlock * S, uint8_t{0});
    return buffer;
  }

  // Participation bits of a whole block.
  static uint64_t participation(const Tables& tables, const uint8_t* __restrict chunks, size_t first) {
    const Word* __restrict mask = tables.mask.data() + first;
    const Word* __restrict bitval = tables.bitval.data() + first;
    uint8_t hit[kBlock];
    for (size_t j = 0; j < kBlock; ++j) hit[j] = (load_le<Word>(chunks + j * S) & mask[j]) == bitval[j];
    uint64_t bits = 0;
    for (size_t k = 0; k < kBlock; k += 8)  // eight bytes of 0 or 1 to eight bits
      bits |= (load_le<uint64_t>(hit + k) * 0x0102040810204080u >> 56) << k;
    return bits;
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

  // widths[j]: the number of bits that chunk j adds to the payload.
  static void widths_of(const Tables& tables, const uint8_t* __restrict takes_part, size_t first,
                        uint8_t* __restrict widths) {
    const uint8_t* saved = tables.saved.data() + first;
    for (size_t j = 0; j < kBlock; ++j) widths[j] = static_cast<uint8_t>(W - (saved[j] & takes_part[j]));
  }

  template <unsigned Steps>
  static void encode_in(const Tables& tables, const uint8_t* row, uint8_t* stored) {
    uint8_t* out = stored + tables.participation_bytes;
    std::fill(stored + (tables.num_chunks + 7) / 8, out, uint8_t{0});
    BitWriter<Word, kBlock> writer;
    uint8_t buffer[kBlock * S];
    for (size_t first = 0; first < tables.num_chunks; first += kBlock) {
      const size_t count = block_size(tables, first);
      const uint8_t* chunks = whole_block(tables, row, first, buffer);
      const uint64_t part = participation(tables, chunks, first);
      const uint64_t part_le = to_little_endian(part & ~tables.beyond(first));
      std::memcpy(stored + first / 8, &part_le, (count + 7) / 8);

      uint8_t takes_part[kBlock], widths[kBlock];
      spread_bits(part, takes_part);
      widths_of(tables, takes_part, first, widths);
      Word values[kBlock];
      compress<Steps>(tables, chunks, takes_part, first, values);
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

  // values[j]: the bits that chunk j adds to the payload, at the low end.
  template <unsigned Steps>
  static void compress(const Tables& tables, const uint8_t* __restrict chunks,
                       const uint8_t* __restrict takes_part, size_t first, Word* __restrict values) {
    const Word* keep = tables.keep.data() + first;
    const Word* moves[Steps + 1];
    for (unsigned i = 0; i < Steps; ++i) moves[i] = tables.moves[i].data() + first;
    for (size_t j = 0; j < kBlock; ++j) {
      const Word chunk = load_le<Word>(chunks + j * S);
      Word kept = chunk & keep[j];
      for (unsigned i = 0; i < Steps; ++i) kept = move_down(kept, moves[i][j], i);
      const Word takes = static_cast<Word>(static_cast<int8_t>(takes_part[j]));
      values[j] = static_cast<Word>((kept & takes) | (chunk & ~takes));
    }
  }

  template <unsigned Steps>
  static void decode_in(const Tables& tables, const uint8_t* stored, uint8_t* row) {
    const uint8_t* payload = stored + tables.participation_bytes;
    uint64_t at = 0;  // bits of the payload
    for (size_t first = 0; first < tables.num_chunks; first += kBlock) {
      const size_t count = block_size(tables, first);
      uint8_t takes_part[kBlock], widths[kBlock];
      spread_bits(tables.takes_part(stored, first), takes_part);
      widths_of(tables, takes_part, first, widths);
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
        expand<Steps>(tables, values, takes_part, first, row + first * S);
      } else {
        uint8_t buffer[kBlock * S];
        std::fill(values + count, values + kBlock, Word{0});
        expand<Steps>(tables, values, takes_part, first, buffer);
        std::copy_n(buffer, count * S, row + first * S);
      }
    }
  }

  // The inverse of compress.
  template <unsigned Steps>
  static void expand(const Tables& tables, const Word* __restrict values,
                     const uint8_t* __restrict takes_part, size_t first, uint8_t* __restrict chunks) {
    const Word* keep = tables.keep.data() + first;
    const Word* bitval = tables.bitval.data() + first;
    const Word* moves[Steps + 1];
    for (unsigned i = 0; i < Steps; ++i) moves[i] = tables.moves[i].data() + first;
    for (size_t j = 0; j < kBlock; ++j) {
      Word spread = values[j];
      for (unsigned i = Steps; i-- > 0;) spread = move_up(spread, moves[i][j], i);
      spread = static_cast<Word>((spread & keep[j]) | bitval[j]);
      const Word takes = static_cast<Word>(static_cast<int8_t>(takes_part[j]));
      store_le(chunks + j * S, static_cast<Word>((spread & takes) | (values[j] & ~takes)));
    }
  }
};

}  // namespace

template <typename Word>
IbpLevel<Word> ibp_portable() {
  using Level = Portable<Word>;
  return {Level::saved_by_stored, Level::saved_by_row, Level::encode, Level::decode};
}

template IbpLevel<uint8_t> ibp_portable();
template IbpLevel<uint16_t> ibp_portable();
template IbpLevel<uint32_t> ibp_portable();
template IbpLevel<uint64_t> ibp_portable();

}  // namespace gnn_ibp
