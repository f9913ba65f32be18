// Encodes and decodes the rows of a flat file and compares with what it says they are; no Python, so that it
// runs for other processors under an emulator. row_cases.py writes the file and draws its layout.
//
// check_rows FILE: does so at every level of vector instructions that the processor has; prints
// "CASES cases, ROWS rows: LEVELS" where all are right, names the first wrong row otherwise.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cpu/encode_rows.h"
#include "cpu/gather_decode.h"
#include "cpu/ibp2_codec.h"
#include "cpu/ibp_codec.h"
#include "cpu/thread_pool.h"
#include "indexed_slab.h"

using namespace gnn_ibp;

namespace {

struct Case {
  int64_t version, chunk_bits, row_bytes, num_rows, num_damaged;
  std::vector<uint8_t> params, rows;
  std::vector<int64_t> sizes, damaged_sizes;  // of the stored rows, of the damaged ones
  std::vector<uint8_t> stored, damaged;       // back to back
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

class CaseFile {
 public:
  explicit CaseFile(const char* path) : file_(std::fopen(path, "rb")) {
    if (!file_) fail(std::string("no file ") + path);
  }
  ~CaseFile() { std::fclose(file_); }

  bool next(Case& made) {
    int64_t head[6];
    if (std::fread(head, sizeof head, 1, file_) != 1) return false;
    made.version = head[0], made.chunk_bits = head[1], made.row_bytes = head[2];
    made.num_rows = head[3], made.num_damaged = head[4];
    made.params = values<uint8_t>(head[5]);
    made.rows = values<uint8_t>(made.num_rows * made.row_bytes);
    made.sizes = values<int64_t>(made.num_rows);
    made.damaged_sizes = values<int64_t>(made.num_damaged);
    made.stored = values<uint8_t>(sum(made.sizes));
    made.damaged = values<uint8_t>(sum(made.damaged_sizes));
    return true;
  }

 private:
  static int64_t sum(const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }

  template <class T>
  std::vector<T> values(int64_t count) {
    std::vector<T> read(static_cast<size_t>(count));
    if (std::fread(read.data(), sizeof(T), read.size(), file_) != read.size()) fail("the file is cut off");
    return read;
  }

  std::FILE* file_;
};

void compare(const uint8_t* got, const uint8_t* wanted, int64_t size, const char* what, int64_t row) {
  if (size && std::memcmp(got, wanted, static_cast<size_t>(size)) != 0)
    fail(std::string(what) + " row " + std::to_string(row) + " is wrong");
}

void check_stored(const RowCodec& codec, const Case& made, const IndexedSlab& slab) {
  const uint8_t* wanted = made.stored.data();
  for (int64_t i = 0; i < made.num_rows; wanted += made.sizes[i], ++i) {
    const Extent extent = slab.layout().extent(i);
    compare(slab.first() + extent.at, wanted, made.sizes[i], "encoded", i);
    if (!slab.layout().encoded(i)) continue;
    if (!codec.check(slab.first() + extent.at, made.sizes[i]))
      fail("row " + std::to_string(i) + " is called damaged");
    std::vector<uint8_t> row(made.row_bytes);
    codec.decode(slab.first() + extent.at, made.sizes[i], row.data());
    compare(row.data(), &made.rows[i * made.row_bytes], made.row_bytes, "decoded", i);
  }
}

// All rows, from the last to the first.
void check_gather(const RowCodec& codec, const Case& made, const IndexedSlab& slab) {
  const int64_t n = made.num_rows;
  std::vector<int64_t> ids(n), missing_ids(n), missing_at(n);
  for (int64_t i = 0; i < n; ++i) ids[i] = n - 1 - i;
  std::vector<uint8_t> out(made.rows.size());
  const RowSource source{&codec, slab.layout(), slab.first(), slab.num_bytes(), nullptr};
  const GatherCounts counts = gather_decode(ids.data(), nullptr, n, &source, 1, made.row_bytes, out.data(),
                                            missing_ids.data(), missing_at.data());
  if (counts.damaged >= 0 || counts.hits[0] != n) fail("rows are missing or called damaged");
  for (int64_t i = 0; i < n; ++i)
    compare(&out[i * made.row_bytes], &made.rows[ids[i] * made.row_bytes], made.row_bytes, "gathered",
            ids[i]);
}

void check_damaged(const RowCodec& codec, const Case& made) {
  const uint8_t* damaged = made.damaged.data();
  for (size_t i = 0; i < made.damaged_sizes.size(); ++i) {
    const int64_t size = made.damaged_sizes[i];
    std::vector<uint8_t> padded(size + 2 * kPadBytes), row(made.row_bytes);
    std::copy_n(damaged, size, padded.data() + kPadBytes);
    if (codec.try_decode(padded.data() + kPadBytes, size, row.data()) ||
        codec.check(padded.data() + kPadBytes, size))
      fail("damaged row " + std::to_string(i) + " is taken for a good one");
    damaged += size;
  }
}

std::unique_ptr<RowCodec> make_codec(const Case& made, SimdLevel level) {
  const uint8_t* params = made.params.data();
  if (made.version == 2) return make_ibp2_codec(params, made.params.size(), made.row_bytes, level);
  return make_ibp_codec(params, params + made.row_bytes, made.row_bytes, static_cast<int>(made.chunk_bits),
                        level);
}

void check(const Case& made, SimdLevel level) {
  const auto codec = make_codec(made, level);
  std::vector<int64_t> sizes(made.num_rows);
  stored_sizes(*codec, made.rows.data(), made.num_rows, sizes.data());
  for (int64_t i = 0; i < made.num_rows; ++i)
    if (sizes[i] != made.sizes[i]) fail("row " + std::to_string(i) + " has another size");
  check_damaged(*codec, made);
  for (const bool in_place : {false, true}) {
    if (in_place && !codec->announces_size()) continue;
    IndexedSlab slab(sizes, made.row_bytes, codec->unit(), in_place);
    encode_rows(*codec, made.rows.data(), slab.layout(), slab.first());
    check_stored(*codec, made, slab);
    check_gather(*codec, made, slab);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: check_rows FILE");
  set_num_threads(2);
  CaseFile file(argv[1]);
  Case made;
  int64_t num_cases = 0, num_rows = 0;
  for (; file.next(made); ++num_cases, num_rows += made.num_rows)
    for (const SimdLevel level : supported_simd_levels()) check(made, level);
  std::printf("%lld cases, %lld rows:", static_cast<long long>(num_cases), static_cast<long long>(num_rows));
  for (const SimdLevel level : supported_simd_levels()) std::printf(" %s", name_of(level));
  std::printf("\n");
  return 0;
}
