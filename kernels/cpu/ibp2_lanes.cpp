#include "cpu/ibp2_lanes.h"

#include <algorithm>

namespace gnn_ibp {
namespace {

// Where a field lies in a window that begins a byte before its stream.
struct Field {
  explicit Field(uint64_t bit) : byte((bit + 7) / 8), shift(static_cast<unsigned>((bit + 7) % 8) + 1) {}
  uint64_t byte;
  unsigned shift;  // 1 to 8
};

void put_pair(uint8_t* at, uint64_t a, uint64_t b) {
  at[0] = static_cast<uint8_t>(a);
  at[1] = static_cast<uint8_t>(b);
}

void put_word(uint8_t* at, unsigned word) { put_pair(at, word, word >> 8); }

}  // namespace

Ibp2LaneTables::Ibp2LaneTables(const Ibp2Params& params, size_t lanes) {
  const unsigned tail_bits = params.tail_bits();
  has_tops = params.chunk_bits > 8 && params.sign_bits + params.head_bits + tail_bits % 8 <= 16 &&
             (params.zero_bits == 0 || tail_bits < 8);
  has_byte_heads = params.head_bits <= 8;
  if (lanes == 0) return;
  const size_t count = params.sparse ? kIbp2Block : params.num_chunks;
  const size_t num_parts = (count + lanes - 1) / lanes;
  add_first(params, lanes, num_parts);
  if (has_tops) add_tops(params, lanes, num_parts);
}

void Ibp2LaneTables::add_first(const Ibp2Params& params, size_t lanes, size_t num_parts) {
  first.resize(7 * num_parts * lanes);
  uint64_t bit = 0;
  for (size_t j = 0; j < num_parts * lanes; ++j) {
    if (j % lanes == 0) window_at.push_back(bit / 8);
    const bool is_there = params.sparse || j < params.num_chunks;
    const unsigned c = is_there && !params.sparse ? params.class_of[j] : 0;
    const unsigned k1 = is_there ? params.classes[c].k1 : 0;
    uint8_t* part = first.data() + 7 * (j / lanes * lanes);
    const size_t odd = j % 2, pair = odd * lanes + j % lanes / 2 * 2;
    const Field field(bit - 8 * window_at.back());
    put_pair(part + pair, field.byte, field.byte + 1);
    put_word(part + 2 * lanes + pair, 1u << ((odd ? 8 : 16) - field.shift));
    part[4 * lanes + pair + odd] = static_cast<uint8_t>((1u << k1) - 1);
    part[6 * lanes + j % lanes] = static_cast<uint8_t>(8 * c);
    bit += k1;
  }
}

void Ibp2LaneTables::add_tops(const Ibp2Params& params, size_t lanes, size_t num_parts) {
  const size_t S = params.chunk_bits / 8;
  const auto top = [&](uint64_t head) { return static_cast<uint16_t>(head << (16 - params.head_bits)); };
  const size_t num_vectors = has_byte_heads ? 2 : 3;
  tops.resize(num_vectors * num_parts * lanes);
  for (size_t i = 0; i < num_parts * lanes; ++i) {
    const size_t j = i / lanes * lanes + ibp2_chunk_at(i % lanes, lanes, S);
    if (!params.sparse && j >= params.num_chunks) continue;
    const size_t from = params.sparse ? 0 : j;
    uint8_t* part = tops.data() + num_vectors * (i / lanes * lanes);
    part[i % lanes] = params.sign[from] ? kIbp2Flip : 0;
    if (has_byte_heads) {
      part[lanes + i % lanes] = static_cast<uint8_t>(top(params.base[from]) >> 8);
      continue;
    }
    // The lower halves of each 16 bytes are unpacked to a first vector of words, the upper ones to a second.
    const size_t word = i % 16 / 8 * (lanes / 2) + i % lanes / 16 * 8 + i % 8;
    put_word(part + lanes + 2 * word, top(params.base[from]));
  }
  for (unsigned l = 0; l < kIbp2Leaves; ++l) {
    leaf[0][l] = static_cast<uint8_t>(top(params.leaf[l]));
    leaf[1][l] = static_cast<uint8_t>(top(params.leaf[l]) >> 8);
  }
  high.resize(2 * lanes);
  for (size_t k = 0; k < lanes / 2; ++k) {
    const Field field(ibp2_chunk_at(k / 8 * 16 + k % 8, lanes, S) * (params.tail_bits() % 8));
    put_pair(high.data() + 2 * k, field.byte, field.byte + 1);
    put_word(high.data() + lanes + 2 * k, 1u << (16 - field.shift));
  }
}

}  // namespace gnn_ibp
