// Rows of Invariant Bit Packing, group by group: what the levels of vector instructions have in common.
//
// A level's file defines GNN_IBP_TARGET, the attribute that allows its instructions, includes this file, and
// gives, for each Word, a Group with
//
//   kChunks                                           chunks of a group: a power of two, 64 at most
//   saved(tables, first, takes_part)                  bits left out of the whole block
//   participation(block, j, chunks)                   participation bits of the group at chunk j of the block
//   append(block, j, chunks, takes_part, writer)      adds what the payload holds of the group
//   decode(block, j, takes_part, payload, at, chunks) writes the group that the payload holds from bit `at`
//                                                     on, and returns its bits of payload, more than 0
//
// Everything has internal linkage: no other file may end up with functions compiled for these instructions.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/bit_stream.h"
#include "cpu/ibp_level.h"

namespace gnn_ibp {
namespace {

template <typename Word, template <typename> class GroupOf>
struct Grouped {
  using Tables = IbpTables<Word>;
  using Block = IbpBlock<Word>;
  using Group = GroupOf<Word>;
  static constexpr size_t S = sizeof(Word);
  static constexpr size_t kChunks = Group::kChunks;
  static constexpr uint64_t kOnes = ~uint64_t{0} >> (64 - kChunks);

  GNN_IBP_TARGET static uint64_t saved_by_stored(const Tables& tables, const uint8_t* stored) {
    uint64_t bits = 0;
    for (size_t first = 0; first < tables.num_chunks; first += kIbpBlock)
      bits += Group::saved(tables, first, tables.takes_part(stored, first));
    return bits;
  }

  GNN_IBP_TARGET static uint64_t saved_by_row(const Tables& tables, const uint8_t* row) {
    uint64_t bits = 0;
    for (size_t first = 0; first < tables.num_chunks; first += kIbpBlock) {
      const Block block(tables, first);
      uint8_t buffer[kIbpBlock * S];
      const uint8_t* chunks = whole_block(tables, row, first, buffer);
      uint64_t takes_part = 0;
      for (size_t j = 0; j < kIbpBlock; j += kChunks)
        takes_part |= Group::participation(block, j, chunks + j * S) << j;
      bits += Group::saved(tables, first, takes_part);
    }
    return bits;
  }

  GNN_IBP_TARGET static void encode(const Tables& tables, const uint8_t* row, uint8_t* stored) {
    uint8_t* out = stored + tables.participation_bytes;
    std::memset(stored + (tables.num_chunks + 7) / 8, 0,
                tables.participation_bytes - (tables.num_chunks + 7) / 8);
    BitWriter<Word, kIbpBlock> writer;
    for (size_t first = 0; first < tables.num_chunks; first += kIbpBlock) {
      const Block block(tables, first);
      uint8_t buffer[kIbpBlock * S];
      const uint8_t* chunks = whole_block(tables, row, first, buffer);
      uint64_t takes_part = 0;
      for (size_t j = 0; j < kIbpBlock; j += kChunks) {
        const uint64_t group = Group::participation(block, j, chunks + j * S);
        takes_part |= group << j;
        if ((group & block.all_invariant >> j & kOnes) == kOnes) continue;
        Group::append(block, j, chunks + j * S, group, writer);
      }
      takes_part &= ~tables.beyond(first);
      std::memcpy(stored + first / 8, &takes_part, (block_size(tables, first) + 7) / 8);
      out = writer.flush(out);
    }
    writer.finish(out);
  }

  GNN_IBP_TARGET static void decode(const Tables& tables, const uint8_t* stored, uint8_t* row) {
    const uint8_t* payload = stored + tables.participation_bytes;
    uint64_t at = 0;  // bits of the payload
    const size_t num_whole = tables.num_chunks / kIbpBlock * kIbpBlock;
    for (size_t first = 0; first < num_whole; first += kIbpBlock)
      at = decode_block(tables, first, stored, payload, at, row + first * S);
    if (num_whole == tables.num_chunks) return;
    uint8_t buffer[kIbpBlock * S];
    decode_block(tables, num_whole, stored, payload, at, buffer);
    std::memcpy(row + num_whole * S, buffer, (tables.num_chunks - num_whole) * S);
  }

  static IbpLevel<Word> level() { return {saved_by_stored, saved_by_row, encode, decode}; }

 private:
  GNN_IBP_TARGET static size_t block_size(const Tables& tables, size_t first) {
    return std::min(kIbpBlock, tables.num_chunks - first);
  }

  // The chunks of a block, filled up with zeros in `buffer` where it is not whole.
  GNN_IBP_TARGET static const uint8_t* whole_block(const Tables& tables, const uint8_t* row, size_t first,
                                                   uint8_t* buffer) {
    const size_t count = block_size(tables, first);
    if (count == kIbpBlock) return row + first * S;
    std::memset(buffer, 0, kIbpBlock * S);
    std::memcpy(buffer, row + first * S, count * S);
    return buffer;
  }

  // Writes a whole block and returns where the next one begins in the payload.
  GNN_IBP_TARGET static inline uint64_t decode_block(const Tables& tables, size_t first,
                                                     const uint8_t* stored, const uint8_t* payload,
                                                     uint64_t at, uint8_t* chunks) {
    const Block block(tables, first);
    const uint64_t takes_part = tables.takes_part(stored, first);
    const uint64_t known = takes_part & block.all_invariant;  // the payload holds none of their bits
    for (size_t j = 0; j < kIbpBlock; j += kChunks) {
      if ((known >> j & kOnes) == kOnes) {
        std::memcpy(chunks + j * S, block.bitval + j, kChunks * S);
      } else {
        at += Group::decode(block, j, takes_part >> j, payload, at, chunks + j * S);
      }
    }
    return at;
  }
};

}  // namespace
}  // namespace gnn_ibp
