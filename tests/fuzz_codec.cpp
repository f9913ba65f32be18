// Runs the codec and the gather over random rows, masks and damage; built by test_fuzz.py with
// AddressSanitizer and UBSan, which end the program at the first access outside of a row and its padding.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cpu/gather_decode.h"
#include "cpu/ibp_codec.h"
#include "fuzz_bytes.h"

using namespace gnn_ibp;

namespace {

struct Case {
  std::unique_ptr<RowCodec> codec,
      portable;  // the same at some level of vector instructions, and the reference
  std::vector<uint8_t> mask, bitval;
};

Case random_codec() {
  const int chunk_bits = 8 << below(4);
  const size_t row_bytes = below(below(2) ? 12 : 200) * (chunk_bits / 8);
  Case made;
  const unsigned kind = static_cast<unsigned>(below(4));
  for (size_t i = 0; i < row_bytes; ++i) {
    const uint8_t random = static_cast<uint8_t>(rng());
    made.mask.push_back(kind == 0 ? 0xFF : kind == 1 ? 0 : kind == 2 ? random | 0xF0 : random);
    made.bitval.push_back(static_cast<uint8_t>(rng()) & made.mask.back());
  }
  const std::vector<SimdLevel> levels = supported_simd_levels();
  const auto codec_at = [&](SimdLevel level) {
    return make_ibp_codec(made.mask.data(), made.bitval.data(), row_bytes, chunk_bits, level);
  };
  made.codec = codec_at(levels[below(levels.size())]);
  made.portable = codec_at(SimdLevel::kPortable);
  return made;
}

std::unique_ptr<uint8_t[]> random_row(const Case& made) {
  std::unique_ptr<uint8_t[]> row(new uint8_t[made.mask.size()]);
  const uint64_t misses = below(4) * 20;  // of 100 bytes, those that do not match
  for (size_t i = 0; i < made.mask.size(); ++i) {
    row[i] = static_cast<uint8_t>(rng());
    if (below(100) >= misses) row[i] = static_cast<uint8_t>((row[i] & ~made.mask[i]) | made.bitval[i]);
  }
  return row;
}

// Decodes whatever is taken for a row, as the portable level does; returns its size or 0.
size_t try_decode(const Case& made, const uint8_t* stored, size_t size, std::vector<uint8_t>& row) {
  const RowCodec& codec = *made.codec;
  row.assign(codec.row_bytes(), 0);
  row.shrink_to_fit();
  const size_t announced = codec.announced_size(stored, size);
  require(announced <= size, "a row announces more than its limit");
  require(codec.check(stored, size) == (size && announced == size), "check and announced_size disagree");
  require(made.portable->announced_size(stored, size) == announced, "levels disagree on a row's size");
  if (announced == 0) return 0;
  codec.decode(stored, announced, row.data());
  std::vector<uint8_t> portable_row(codec.row_bytes());
  made.portable->decode(stored, announced, portable_row.data());
  require(row == portable_row, "levels decode a row to different bytes");
  return announced;
}

void fuzz_row() {
  const Case made = random_codec();
  const RowCodec& codec = *made.codec;
  const auto row = random_row(made);
  const size_t size = codec.stored_size(row.get());
  require(made.portable->stored_size(row.get()) == size, "levels give a row different sizes");
  std::vector<uint8_t> decoded;
  Padded stored(size);
  if (size < codec.row_bytes()) {
    std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);  // encoding writes the row and nothing else
    codec.encode(row.get(), exact.get());
    std::vector<uint8_t> portable_stored(size);
    made.portable->encode(row.get(), portable_stored.data());
    require(std::memcmp(exact.get(), portable_stored.data(), size) == 0, "levels encode a row differently");
    std::copy_n(exact.get(), size, stored.first());
    require(try_decode(made, stored.first(), size, decoded) == size, "an encoded row is refused");
    require(std::memcmp(decoded.data(), row.get(), codec.row_bytes()) == 0, "a row comes back changed");
  }
  for (int i = 0; i < 8 && size; ++i) {
    stored.first()[below(size)] ^= static_cast<uint8_t>(1u << below(8));
    try_decode(made, stored.first(), size, decoded);
  }
  const size_t any_size = below(codec.row_bytes() + 9);
  Padded noise(any_size);
  try_decode(made, noise.first(), any_size, decoded);
}

// A slab, bitmask, index and slot table of random bytes: every row is decoded, or the damage is told.
void fuzz_gather() {
  const Case made = random_codec();
  const int64_t num_rows = static_cast<int64_t>(below(100)), num_ids = 50;
  const size_t num_bytes = below(4000);
  Padded slab(num_bytes);
  std::vector<uint8_t> bitmask((num_rows + 7) / 8);
  std::vector<uint64_t> bases((num_rows + RowLayout::kGroup - 1) / RowLayout::kGroup);
  std::vector<uint16_t> sizes(num_rows);
  std::vector<int32_t> slot_of(num_ids);
  for (auto& byte : bitmask) byte = static_cast<uint8_t>(rng());
  for (auto& base : bases) base = below(8) ? below(num_bytes + 1) : rng();
  for (auto& size : sizes) size = static_cast<uint16_t>(below(8) ? below(9) : rng());
  for (auto& slot : slot_of) slot = static_cast<int32_t>(below(num_rows + 2)) - 1;

  RowSource source;
  source.codec = made.codec.get();
  source.layout = {
      num_rows,     made.mask.size(), bitmask.data(),     bases.data(),
      sizes.data(), nullptr,          made.codec->unit(), std::max<size_t>(4, made.codec->unit())};
  source.first = slab.first();
  source.num_bytes = num_bytes;
  source.slot_of = slot_of.data();
  std::vector<uint8_t> out(num_ids * made.mask.size());
  for (int64_t i = 0; i < num_ids; ++i) {
    int64_t missing_id, missing_at;
    const GatherCounts counts = gather_decode(&i, nullptr, 1, &source, 1, made.mask.size(),
                                              out.data() + i * made.mask.size(), &missing_id, &missing_at);
    require(counts.hits[0] + counts.num_missing + (counts.damaged >= 0) == 1, "an id is lost");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_rounds(argc, argv, [] {
    fuzz_row();
    fuzz_gather();
  });
}
