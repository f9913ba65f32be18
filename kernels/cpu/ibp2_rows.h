// Rows of format version 2, block by block: what the levels of vector instructions have in common.
//
// A level's file defines GNN_IBP_TARGET, the attribute that allows its instructions (none for the portable
// one), and GNN_IBP_INLINE, the same for functions to be inlined, includes this file, and gives, for each
// Word, a Block with
//
//   check(tables, row, first, count)              whether the later fields of the block fit; moves row.later
//   decode<LowBytes>(tables, row, first, count, chunks)   the same, and writes the block's chunks, no byte
//   more
//   decode_two<LowBytes>(tables, rows, first, count, chunks)   the same of two rows
//
// of the `count` coded chunks from `first` on. Everything has internal linkage: no other file may end up with
// functions compiled for these instructions.
#pragma once

#include <algorithm>

#include "cpu/ibp2_level.h"
#include "cpu/ibp2_planes.h"
#include "cpu/ibp2_row.h"
#include "cpu/ibp2_sparse.h"

namespace gnn_ibp {
namespace {

template <typename Word, template <typename> class BlockOf>
struct Ibp2Rows {
  using Tables = Ibp2Tables<Word>;
  using Block = BlockOf<Word>;
  static constexpr size_t S = sizeof(Word);

  GNN_IBP_TARGET static bool check(const Tables& tables, const uint8_t* stored, size_t size) {
    Ibp2Row row;
    if (!row.find(tables, stored, size)) return false;
    for (size_t first = 0; first < row.num_coded; first += kIbp2Block)
      if (!Block::check(tables, row, first, block_size(row, first))) return false;
    return true;
  }

  GNN_IBP_TARGET static bool decode(const Tables& tables, const uint8_t* stored, size_t size,
                                    uint8_t* chunks) {
    Ibp2Row row;
    if (!row.find(tables, stored, size)) return false;
    if (tables.is_alike) {
      Ibp2Sparse<Word>::write_alike(tables, row, chunks);
      return true;
    }
    return with_low_bytes<Word>(tables.low_bytes, [&](auto low_bytes) {
      return tables.sparse ? decode_sparse<low_bytes()>(tables, row, chunks)
                           : decode_dense<low_bytes()>(tables, row, chunks);
    });
  }

  GNN_IBP_TARGET static bool decode_two(const Tables& tables, const DecodeJob (&jobs)[2]) {
    const auto& [a, b] = jobs;
    if (tables.sparse)
      return decode(tables, a.stored, a.size, a.row) && decode(tables, b.stored, b.size, b.row);
    Ibp2Row rows[2];
    for (size_t r = 0; r < 2; ++r)
      if (!rows[r].find(tables, jobs[r].stored, jobs[r].size)) return false;
    return with_low_bytes<Word>(tables.low_bytes, [&](auto low_bytes) {
      return decode_dense_two<low_bytes()>(tables, rows, {a.row, b.row});
    });
  }

  static Ibp2Level<Word> level(size_t lanes) { return {lanes, check, decode, decode_two}; }

 private:
  static size_t block_size(const Ibp2Row& row, size_t first) {
    return std::min<uint64_t>(kIbp2Block, row.num_coded - first);
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode_dense(const Tables& tables, Ibp2Row& row, uint8_t* chunks) {
    for (size_t first = 0; first < row.num_coded; first += kIbp2Block)
      if (!Block::template decode<LowBytes>(tables, row, first, block_size(row, first), chunks + first * S))
        return false;
    return true;
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode_dense_two(const Tables& tables, Ibp2Row (&rows)[2],
                                              uint8_t* const (&chunks)[2]) {
    for (size_t first = 0; first < tables.num_chunks; first += kIbp2Block)
      if (!Block::template decode_two<LowBytes>(tables, rows, first, block_size(rows[0], first),
                                                {chunks[0] + first * S, chunks[1] + first * S}))
        return false;
    return true;
  }

  template <unsigned LowBytes>
  GNN_IBP_TARGET static bool decode_sparse(const Tables& tables, Ibp2Row& row, uint8_t* chunks) {
    return Ibp2Sparse<Word>::write(tables, row, chunks, [&](size_t first, size_t count, uint8_t* coded) {
      return Block::template decode<LowBytes>(tables, row, first, count, coded);
    });
  }
};

}  // namespace
}  // namespace gnn_ibp
