// Runs format version 2 over random tables, rows and damage; built by test_fuzz.py with AddressSanitizer and
// UBSan, which end the program at the first access outside of a row and its padding.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "cpu/ibp2_codec.h"
#include "fuzz_bytes.h"

using namespace gnn_ibp;

namespace {

struct Case {
  std::vector<uint8_t> block;
  size_t row_bytes;
  std::vector<std::unique_ptr<RowCodec>> codecs;  // one for each level of vector instructions
};

void make_codecs(Case& made) {
  made.codecs.clear();
  for (const SimdLevel level : supported_simd_levels())
    made.codecs.push_back(make_ibp2_codec(made.block.data(), made.block.size(), made.row_bytes, level));
}

void add_words(std::vector<uint8_t>& block, size_t count, size_t S, unsigned bits) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = (below(2) ? rng() : below(16) - 8) & (bits ? ~uint64_t{0} >> (64 - bits) : 0);
    for (size_t k = 0; k < S; ++k) block.push_back(static_cast<uint8_t>(word >> 8 * k));
  }
}

void add_classes(std::vector<uint8_t>& block, size_t num_classes, bool has_sign) {
  for (size_t c = 0; c < num_classes; ++c) {
    const unsigned k1 = static_cast<unsigned>(below(4)), g = k1 ? static_cast<unsigned>(below(3)) : 0;
    const size_t num_symbols = (1u << k1) - g + (g ? 4 * g + 6 : 0);
    block.push_back(static_cast<uint8_t>(k1));
    block.push_back(static_cast<uint8_t>(g));
    for (size_t i = 0; i < 20; ++i) {
      const uint64_t symbol = below(32) | (has_sign ? below(2) << 6 : 0);
      block.push_back(static_cast<uint8_t>(i < num_symbols ? symbol : 0));
    }
  }
  block.resize(block.size() + (4 - num_classes) * 22);
}

Case random_codec() {
  Case made;
  const bool sparse = below(2);
  const unsigned W = 8u << below(4), sf = static_cast<unsigned>(below(2));
  const unsigned E = 1 + static_cast<unsigned>(below(W - sf));
  const unsigned z = below(2) ? 0 : static_cast<unsigned>(below(W - sf - E + 1));
  const size_t S = W / 8, V = below(below(2) ? 12 : 600), n = sparse ? 1 : V;
  const size_t num_classes = sparse ? 1 : 1 + below(4), levels = sparse ? 1 + below(3) : 0;
  const size_t head[8] = {static_cast<size_t>(sparse ? 'S' : 'D'), W, sf, E, z, levels, num_classes, 0};
  for (const size_t value : head) made.block.push_back(static_cast<uint8_t>(value));
  add_classes(made.block, num_classes, sf);
  add_words(made.block, 32, S, E);
  add_words(made.block, 1, S, sparse && below(2) ? W : 0);
  for (size_t j = 0; j < n; ++j)
    made.block.push_back(static_cast<uint8_t>(below(num_classes) | (sf ? below(2) << 7 : 0)));
  add_words(made.block, n, S, E);
  made.row_bytes = V * S;
  make_codecs(made);
  return made;
}

// Any chunks, and among them words of the block: few different ones, `zero` the most frequent.
std::vector<uint8_t> random_row(const Case& made) {
  const size_t S = made.block[1] / 8u;
  std::vector<uint8_t> row(made.row_bytes);
  const uint64_t strange = below(4) * 20;
  for (size_t at = 0; at < row.size(); at += S) {
    if (below(100) < strange) {
      for (size_t k = 0; k < S; ++k) row[at + k] = static_cast<uint8_t>(rng());
    } else {
      std::copy_n(&made.block[96 + (below(4) ? 32 : below(32)) * S], S, &row[at]);
    }
  }
  return row;
}

// Decodes two rows side by side: both are as one by one, and if one is damaged, two are.
void try_two(const Case& made, const uint8_t* a, const uint8_t* b, size_t size) {
  for (const auto& codec : made.codecs) {
    std::vector<uint8_t> alone[2] = {std::vector<uint8_t>(made.row_bytes),
                                     std::vector<uint8_t>(made.row_bytes)};
    std::vector<uint8_t> rows[2] = {alone[0], alone[1]};
    const bool good =
        codec->try_decode(a, size, alone[0].data()) && codec->try_decode(b, size, alone[1].data());
    const bool two = codec->try_decode_two({{a, size, rows[0].data()}, {b, size, rows[1].data()}});
    require(two == good, "two rows are not taken for what they are alone");
    require(!good || (rows[0] == alone[0] && rows[1] == alone[1]), "two rows are decoded to others");
  }
}

// Decodes what is taken for a row: check() and try_decode() of all levels say the same, and so do the bytes.
bool try_row(const Case& made, const uint8_t* stored, size_t size, std::vector<uint8_t>& row) {
  const bool good = made.codecs[0]->check(stored, size);
  std::vector<uint8_t> first(made.row_bytes), again(made.row_bytes);
  for (const auto& codec : made.codecs) {
    row.assign(made.row_bytes, 0);
    row.shrink_to_fit();
    require(codec->check(stored, size) == good, "levels disagree whether a row is damaged");
    require(codec->try_decode(stored, size, row.data()) == good, "check and try_decode disagree");
    if (!good) continue;
    codec->decode(stored, size, again.data());
    require(row == again, "decode and try_decode disagree");
    if (codec == made.codecs[0]) first = row;
    require(row == first, "levels disagree about a row");
  }
  return good;
}

// Any bytes, or ones, of which all fields lead on; often too few for the parts of a row.
void try_noise(const Case& made) {
  const size_t size = below(below(2) ? 16 : made.row_bytes + 9);
  Padded noise(size);
  if (below(2)) std::fill_n(noise.first(), size, uint8_t{0xFF});
  std::vector<uint8_t> row;
  try_row(made, noise.first(), size, row);
}

void fuzz_row() {
  const Case made = random_codec();
  const RowCodec& codec = *made.codecs[0];
  const std::vector<uint8_t> row = random_row(made);
  const size_t size = codec.stored_size(row.data());
  require(size <= made.row_bytes, "a row grows");
  std::vector<uint8_t> decoded;
  Padded stored(size);
  if (size < made.row_bytes) {
    codec.encode(row.data(), stored.first());
    for (const auto& other : made.codecs) {
      std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);  // encoding writes the row and nothing else
      other->encode(row.data(), exact.get());
      require(std::equal(exact.get(), exact.get() + size, stored.first()), "levels encode a row to others");
    }
    require(try_row(made, stored.first(), size, decoded), "an encoded row is refused");
    require(decoded == row, "a row comes back changed");
  }
  Padded intact(size);
  std::copy_n(stored.first(), size, intact.first());
  for (int i = 0; i < 8 && size; ++i) {
    stored.first()[below(size)] ^= static_cast<uint8_t>(1u << below(8));
    try_row(made, stored.first(), size, decoded);
    try_two(made, intact.first(), stored.first(), size);
    try_two(made, stored.first(), intact.first(), size);
  }
  try_noise(made);
}

// A block with a bit flipped, or cut: an exception, or a codec for rows of any bytes.
void fuzz_block() {
  Case made = random_codec();
  const size_t at = below(below(2) ? std::min<size_t>(made.block.size(), 200) : made.block.size());
  made.block[at] ^= static_cast<uint8_t>(1u << below(8));
  if (below(8) == 0) made.block.resize(below(made.block.size()));
  made.block.shrink_to_fit();
  try {
    make_codecs(made);
  } catch (const std::invalid_argument&) {
    return;
  }
  try_noise(made);
}

}  // namespace

int main(int argc, char** argv) {
  return run_rounds(argc, argv, [] {
    fuzz_row();
    fuzz_block();
  });
}
