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
#include <thread>
#include <vector>

#include "cpu/gather_decode.h"
#include "cpu/ibp_codec.h"
#include "cpu/read_rows.h"
#include "cpu/sample.h"
#include "cpu/thread_pool.h"

using namespace gnn_ibp;

namespace {

constexpr int64_t kRows = 3000, kRowBytes = 64, kIds = 2000, kDegree = 8;
constexpr uint64_t kRowsAt = 4096;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// Rows of which some are stored encoded, in place, in memory and in a file that has no name any more; and a
// graph over them.
struct World {
  World() {
    std::mt19937_64 rng(0);
    const std::vector<uint8_t> mask(kRowBytes, 0xF0), bitval(kRowBytes, 0x50);
    codec = make_ibp_codec(mask.data(), bitval.data(), kRowBytes, 32, simd_level(SimdLevel::kAvx2));
    for (auto& byte : rows) byte = static_cast<uint8_t>(rng() % 16 + 0x50);
    for (int64_t i = 0; i < kRows; ++i) {
      if (i % 3 == 0) rows[i * kRowBytes] = static_cast<uint8_t>(i);
      uint8_t* stored = slab.data() + kPadBytes + i * kRowBytes;
      if (codec->stored_size(row(i)) < static_cast<size_t>(kRowBytes)) {
        codec->encode(row(i), stored);
        bitmask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      } else {
        std::memcpy(stored, row(i), kRowBytes);
      }
      for (int64_t k = 0; k < kDegree; ++k) indices.push_back(static_cast<int32_t>(rng() % kRows));
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
    layout.num_rows = kRows;
    layout.row_bytes = kRowBytes;
    layout.bitmask = bitmask.data();
    std::FILE* temporary = std::tmpfile();
    require(temporary, "no temporary file");
    fd = fileno(temporary);
    const auto size = static_cast<ssize_t>(kRows * kRowBytes);
    require(pwrite(fd, slab.data() + kPadBytes, size, kRowsAt) == size, "a temporary file cannot be written");
  }

  const uint8_t* row(int64_t i) const { return rows.data() + i * kRowBytes; }
  Csc<int32_t> graph() const {
    return {indptr.data(), indices.data(), kRows, static_cast<int64_t>(indices.size())};
  }

  std::unique_ptr<RowCodec> codec;
  std::vector<uint8_t> rows = std::vector<uint8_t>(kRows * kRowBytes);
  std::vector<uint8_t> slab = std::vector<uint8_t>(kRows * kRowBytes + 2 * kPadBytes);
  std::vector<uint8_t> bitmask = std::vector<uint8_t>((kRows + 7) / 8);
  std::vector<int64_t> indptr = {0};
  std::vector<int32_t> indices;
  RowLayout layout;
  int fd = -1;
};

// What one thread does over and over; `number` makes its ids others than those of the other threads.
class User {
 public:
  User(const World& world, int number) : world_(world), rng_(number) {}

  void work() {
    for (auto& id : ids_) id = static_cast<int64_t>(rng_() % kRows);
    gather();
    read();
    sample();
    nest();
    fail();
  }

 private:
  void gather() {
    RowSource source;
    source.codec = world_.codec.get();
    source.layout = world_.layout;
    source.first = world_.slab.data() + kPadBytes;
    source.num_bytes = kRows * kRowBytes;
    std::vector<int64_t> missing_ids(kIds), missing_at(kIds);
    const GatherCounts counts = gather_decode(ids_.data(), nullptr, kIds, &source, 1, kRowBytes, out_.data(),
                                              missing_ids.data(), missing_at.data());
    require(counts.hits[0] == kIds && counts.damaged < 0, "a row is not found");
    compare("gather_decode");
  }

  void read() {
    const RowsOnDisk file{world_.fd, kRowsAt, kRowsAt + kRows * kRowBytes, world_.layout};
    const ReadResult result = read_rows(file, *world_.codec, ids_.data(), nullptr, kIds, out_.data());
    require(result.failure == ReadFailure::kNone, "rows cannot be read");
    compare("read_rows");
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

  void compare(const char* what) {
    for (int64_t i = 0; i < kIds; ++i)
      require(std::memcmp(out_.data() + i * kRowBytes, world_.row(ids_[i]), kRowBytes) == 0, what);
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
