// Several threads use the pools at once, for everything that reads: built with ThreadSanitizer by
// test_races.py, which ends the program at the first race. Results are compared too.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cpu/encode_rows.h"
#include "cpu/gather_decode.h"
#include "cpu/ibp2_codec.h"
#include "cpu/ibp2_level.h"
#include "cpu/ibp_codec.h"
#include "cpu/read_rows.h"
#include "cpu/sample.h"
#include "cpu/thread_pool.h"
#include "machines/indexed_slab.h"

#if defined(PORTABLE_IBP2) && defined(GNN_IBP_X86)
// Version 2 without vectors, whose kernels take long to compile.
namespace gnn_ibp {

template <typename Word>
Ibp2Level<Word> ibp2_avx2() {
  return ibp2_portable<Word>();
}
template <typename Word>
Ibp2Level<Word> ibp2_avx512() {
  return ibp2_portable<Word>();
}

#define FOR_WORD(Word)                        \
  template Ibp2Level<Word> ibp2_avx2<Word>(); \
  template Ibp2Level<Word> ibp2_avx512<Word>();
FOR_WORD(uint8_t)
FOR_WORD(uint16_t)
FOR_WORD(uint32_t)
FOR_WORD(uint64_t)

}  // namespace gnn_ibp
#endif

using namespace gnn_ibp;

namespace {

constexpr int64_t kRows = 3000, kChunks = 37, kRowBytes = 4 * kChunks, kIds = 1000, kDegree = 8;
constexpr uint8_t kZero = 0x50;  // each byte of the most frequent chunk
constexpr uint64_t kRowsAt = 4096;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// One row in three is noise, which is stored raw; half the chunks of the others are equal.
std::vector<uint8_t> make_rows(std::mt19937_64& rng) {
  std::vector<uint8_t> rows(kRows * kRowBytes, kZero);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t at = i * kRowBytes; at < (i + 1) * kRowBytes; at += 4)
      for (int64_t k = 0; k < 4 && (i % 3 == 0 || at % 8 == 0); ++k)
        rows[at + k] = static_cast<uint8_t>(i % 3 == 0 ? rng() : kZero + rng() % (k == 3 ? 2 : 16));
  return rows;
}

std::unique_ptr<RowCodec> version1() {
  const std::vector<uint8_t> mask(kRowBytes, 0xF0), bitval(kRowBytes, kZero);
  return make_ibp_codec(mask.data(), bitval.data(), kRowBytes, 32, simd_level(SimdLevel::kAvx2));
}

// Four exponents: the first in one bit, the others in three.
std::unique_ptr<RowCodec> version2(char kind) {
  const bool sparse = kind == 'S';
  std::vector<uint8_t> block = {static_cast<uint8_t>(kind),       32, 1, 8, 0,
                                static_cast<uint8_t>(2 * sparse), 1,  0};
  const auto add_words = [&](size_t count, auto value_of) {
    for (size_t i = 0; i < count; ++i)
      for (unsigned shift = 0; shift < 32; shift += 8)
        block.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value_of(i)) >> shift));
  };
  block.insert(block.end(), {1, 1, 0, 1, 2, 3});  // k1, g, symbols
  block.resize(8 + 4 * 22);
  add_words(32, [](size_t leaf) { return leaf; });
  add_words(1, [&](size_t) { return sparse ? 0x01010101u * kZero : 0; });
  const size_t num_positions = sparse ? 1 : kChunks;
  block.resize(block.size() + num_positions);
  add_words(num_positions, [](size_t) { return 2 * kZero; });
  return make_ibp2_codec(block.data(), block.size(), kRowBytes, simd_level(SimdLevel::kAvx512));
}

std::vector<int64_t> sizes_of(const RowCodec& codec, const std::vector<uint8_t>& rows) {
  std::vector<int64_t> sizes(kRows);
  stored_sizes(codec, rows.data(), kRows, sizes.data());
  return sizes;
}

// Rows as a codec stores them, in memory and in a file that has no name any more.
struct Stored {
  Stored(std::string name, std::unique_ptr<RowCodec> made, const std::vector<uint8_t>& rows)
      : name(std::move(name)),
        codec(std::move(made)),
        slab(sizes_of(*codec, rows), kRowBytes, codec->unit(), codec->announces_size()) {
    for (int64_t i = 0; i < 6; ++i)
      require(slab.layout().encoded(i) == (i % 3 != 0), "rows are not stored as they should be");
    encode_rows(*codec, rows.data(), slab.layout(), slab.first());
    std::FILE* temporary = std::tmpfile();
    require(temporary, "no temporary file");
    fd = fileno(temporary);
    const auto size = static_cast<ssize_t>(slab.num_bytes());
    require(pwrite(fd, slab.first(), slab.num_bytes(), kRowsAt) == size,
            "a temporary file cannot be written");
  }

  std::string name;
  std::unique_ptr<RowCodec> codec;
  IndexedSlab slab;
  int fd;
};

// The same rows in each format, and a graph over them.
struct World {
  World() {
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t k = 0; k < kDegree; ++k) indices.push_back(static_cast<int32_t>(rng() % kRows));
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
  }

  const uint8_t* row(int64_t i) const { return rows.data() + i * kRowBytes; }
  Csc<int32_t> graph() const {
    return {indptr.data(), indices.data(), kRows, static_cast<int64_t>(indices.size())};
  }

  std::mt19937_64 rng{0};
  std::vector<uint8_t> rows = make_rows(rng);
  Stored formats[3] = {{"version 1", version1(), rows},
                       {"version 2, kind D", version2('D'), rows},
                       {"version 2, kind S", version2('S'), rows}};
  std::vector<int64_t> indptr = {0};
  std::vector<int32_t> indices;
};

// What one thread does over and over; `number` makes its ids others than those of the other threads.
class User {
 public:
  User(const World& world, int number) : world_(world), rng_(number) {}

  void work() {
    for (auto& id : ids_) id = static_cast<int64_t>(rng_() % kRows);
    for (const Stored& stored : world_.formats) {
      gather(stored);
      read(stored);
    }
    sample();
    nest();
    fail();
  }

 private:
  void gather(const Stored& stored) {
    const RowSource source{stored.codec.get(), stored.slab.layout(), stored.slab.first(),
                           stored.slab.num_bytes(), nullptr};
    std::vector<int64_t> missing_ids(kIds), missing_at(kIds);
    const GatherCounts counts = gather_decode(ids_.data(), nullptr, kIds, &source, 1, kRowBytes, out_.data(),
                                              missing_ids.data(), missing_at.data());
    require(counts.hits[0] == kIds && counts.damaged < 0, "a row is not found");
    compare("gather_decode, " + stored.name);
  }

  void read(const Stored& stored) {
    const RowLayout& layout = stored.slab.layout();
    const RowsOnDisk file{stored.fd, kRowsAt, kRowsAt + stored.slab.num_bytes(), layout};
    const ReadResult result = read_rows(file, *stored.codec, ids_.data(), nullptr, kIds, out_.data());
    require(result.failure == ReadFailure::kNone, "rows cannot be read");
    compare("read_rows, " + stored.name);
  }

  void sample() {
    sample_.draw(world_.graph(), ids_.data(), 10, {5, 3}, false, 7, rng_() % 2);
    const int64_t* nodes = sample_.node_ids();
    for (int64_t dst = 0; dst < sample_.num_dst(); ++dst)
      for (int64_t at = sample_.indptr()[dst]; at < sample_.indptr()[dst + 1]; ++at)
        require(world_.indices[sample_.edge_ids()[at]] == nodes[sample_.indices()[at]], "a wrong edge");
  }

  void nest() {
    std::atomic<int64_t> sum{0};
    parallel_for(20, 1, [&](int64_t begin, int64_t end) {
      parallel_for_io(10 * (end - begin), 3, [&](int64_t from, int64_t to) { sum += to - from; });
    });
    require(sum == 200, "iterations are lost");
  }

  void fail() {
    try {
      parallel_for(50, 1, [&](int64_t begin, int64_t) {
        if (begin == 17) throw std::runtime_error("17");
      });
    } catch (const std::runtime_error&) {
      return;
    }
    require(false, "an exception is lost");
  }

  void compare(const std::string& what) {
    for (int64_t i = 0; i < kIds; ++i)
      require(std::memcmp(out_.data() + i * kRowBytes, world_.row(ids_[i]), kRowBytes) == 0, what.c_str());
  }

  const World& world_;
  std::mt19937_64 rng_;
  NeighborSample<int32_t> sample_;
  std::vector<int64_t> ids_ = std::vector<int64_t>(kIds);
  std::vector<uint8_t> out_ = std::vector<uint8_t>(kIds * kRowBytes);
};

}  // namespace

int main(int argc, char** argv) {
  const int num_rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const World world;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      User user(world, number);
      for (int round = 0; round < num_rounds; ++round) {
        set_num_threads(1 + (round + number) % 5);
        user.work();
      }
    });
  for (auto& thread : threads) thread.join();
  return 0;
}
