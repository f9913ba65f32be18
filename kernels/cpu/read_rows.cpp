#include "cpu/read_rows.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxGap = 2 * kPage;        // read rather than skipped: costs less than one more request
constexpr uint64_t kMaxExtent = 256 * 1024;    // of several rows; a longer row is an extent by itself
constexpr uint64_t kKeptBuffer = 1024 * 1024;  // larger ones are given back after use
constexpr int64_t kPlanGrain = 16 * 1024;      // rows located by one thread at a time
constexpr int64_t kExtentsPerThread = 8;       // pieces of work a thread gets when there is plenty

// A row to be read: where it goes, and where it lies from the first row on.
struct Want {
  int64_t id, to;
  uint64_t at, size;
};

// Pages that are read at once, and the wants [first, last) whose rows lie in them.
struct PageRun {
  uint64_t begin, end;  // from the first row on
  int64_t first, last;
};

// Sorts by id, stably: least significant digits first.
void sort_by_id(std::vector<Want>& wants) {
  constexpr int kDigit = 11;
  constexpr uint64_t kMask = (1 << kDigit) - 1;
  uint64_t largest = 0;
  bool sorted = true;
  for (size_t i = 0; i < wants.size(); ++i) {
    largest = std::max(largest, static_cast<uint64_t>(wants[i].id));
    sorted &= i == 0 || wants[i - 1].id <= wants[i].id;
  }
  if (sorted) return;
  if (wants.size() < 1024) {
    std::stable_sort(wants.begin(), wants.end(), [](const Want& a, const Want& b) { return a.id < b.id; });
    return;
  }
  std::vector<Want> other(wants.size());
  for (int shift = 0; shift < static_cast<int>(std::bit_width(largest)); shift += kDigit) {
    std::array<size_t, kMask + 1> starts{};
    for (const Want& want : wants) ++starts[static_cast<uint64_t>(want.id) >> shift & kMask];
    size_t sum = 0;
    for (size_t& start : starts) sum += std::exchange(start, sum);
    for (const Want& want : wants) other[starts[static_cast<uint64_t>(want.id) >> shift & kMask]++] = want;
    wants.swap(other);
  }
}

std::vector<Want> sorted_wants(const RowLayout& layout, const int64_t* ids, const int64_t* at, int64_t n) {
  std::vector<Want> wants(n);
  for (int64_t i = 0; i < n; ++i) wants[i] = {ids[i], at ? at[i] : i, 0, 0};
  sort_by_id(wants);
  parallel_for(n, kPlanGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Extent extent = layout.extent(wants[i].id);
      wants[i].at = extent.at;
      wants[i].size = extent.size;
    }
  });
  return wants;
}

// The wants are sorted by id and therefore by place.
std::vector<PageRun> page_runs(const std::vector<Want>& wants) {
  std::vector<PageRun> runs;
  for (int64_t i = 0; i < static_cast<int64_t>(wants.size()); ++i) {
    const uint64_t begin = wants[i].at / kPage * kPage;
    const uint64_t end = (wants[i].at + wants[i].size + kPage - 1) / kPage * kPage;
    if (!runs.empty() && begin <= runs.back().end + kMaxGap &&
        (end <= runs.back().end || end - runs.back().begin <= kMaxExtent)) {
      runs.back().end = std::max(runs.back().end, end);
      runs.back().last = i + 1;
    } else {
      runs.push_back({begin, end, i, i + 1});
    }
  }
  return runs;
}

// Room for `bytes` and padding at both ends: the thread's own, or fresh where that would grow too large.
class Buffer {
 public:
  explicit Buffer(uint64_t bytes) {
    thread_local std::vector<uint8_t> kept;
    const uint64_t wanted = bytes + 2 * kPadBytes;
    if (wanted > kKeptBuffer) {
      fresh_.resize(wanted);
      data_ = fresh_.data() + kPadBytes;
    } else {
      if (kept.size() < wanted) kept.resize(wanted);
      data_ = kept.data() + kPadBytes;
    }
  }
  uint8_t* data() { return data_; }

 private:
  std::vector<uint8_t> fresh_;
  uint8_t* data_;
};

// Reads of one call: shared by the threads that work on it.
class Reader {
 public:
  Reader(const RowsOnDisk& file, const RowCodec& codec, const std::vector<Want>& wants, uint8_t* out)
      : file_(file), codec_(codec), wants_(wants), out_(out) {}

  void read(const PageRun& run) {
    if (failed_.load(std::memory_order_relaxed)) return;
    const uint64_t begin = file_.rows_at + run.begin;
    const uint64_t end = std::max(begin, std::min(file_.rows_at + run.end, file_.file_bytes));
    Buffer buffer(run.end - run.begin);
    if (!fill(buffer.data(), begin, end - begin, run)) return;
    physical_bytes_.fetch_add(run.end - run.begin, std::memory_order_relaxed);
    uint64_t encoded_bytes = 0;
    int64_t size = 0;
    for (int64_t i = run.first; i < run.last; ++i) {
      const Want& want = wants_[i];
      if (i > run.first && wants_[i - 1].id == want.id) {
        std::memcpy(row_out(i), row_out(i - 1), codec_.row_bytes());
      } else {
        size = decode(want, buffer.data() + (want.at - run.begin), row_out(i));
        if (size < 0) return fail({.failure = ReadFailure::kDamaged}, want.id, want.id);
      }
      encoded_bytes += size;
    }
    encoded_bytes_.fetch_add(encoded_bytes, std::memory_order_relaxed);
  }

  ReadResult result() {
    std::lock_guard lock(mutex_);
    failure_.encoded_bytes = encoded_bytes_;
    failure_.physical_bytes = physical_bytes_;
    return failure_;
  }

 private:
  uint8_t* row_out(int64_t i) { return out_ + wants_[i].to * codec_.row_bytes(); }

  bool fill(uint8_t* buffer, uint64_t at, uint64_t size, const PageRun& run) {
    for (uint64_t got = 0; got < size;) {
      const ssize_t step = pread(file_.fd, buffer + got, size - got, static_cast<off_t>(at + got));
      if (step > 0) {
        got += step;
      } else if (step == 0 || errno != EINTR) {
        const ReadFailure failure = step == 0 ? ReadFailure::kCutShort : ReadFailure::kSystem;
        fail({.failure = failure, .error = step == 0 ? 0 : errno}, wants_[run.first].id,
             wants_[run.last - 1].id);
        return false;
      }
    }
    return true;
  }

  // The stored size of the row, or -1 where it is damaged.
  int64_t decode(const Want& want, const uint8_t* stored, uint8_t* row) {
    if (!file_.layout.encoded(want.id)) {
      std::memcpy(row, stored, codec_.row_bytes());
      return static_cast<int64_t>(codec_.row_bytes());
    }
    uint64_t size = want.size;
    if (file_.layout.in_place()) {
      size = codec_.announced_size(stored, codec_.row_bytes() - 1);
      if (size == 0) return -1;
    } else if (!codec_.check(stored, size)) {
      return -1;
    }
    codec_.decode(stored, row);
    return static_cast<int64_t>(size);
  }

  void fail(ReadResult failure, int64_t first_row, int64_t last_row) {
    std::lock_guard lock(mutex_);
    if (failed_.exchange(true)) return;
    failure_ = failure;
    failure_.first_row = first_row;
    failure_.last_row = last_row;
  }

  const RowsOnDisk& file_;
  const RowCodec& codec_;
  const std::vector<Want>& wants_;
  uint8_t* const out_;
  std::atomic<uint64_t> encoded_bytes_{0}, physical_bytes_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  ReadResult failure_;
};

}  // namespace

ReadResult read_rows(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, const int64_t* at,
                     int64_t n, uint8_t* out) {
  if (n == 0 || codec.row_bytes() == 0) return {};
  const std::vector<Want> wants = sorted_wants(file.layout, ids, at, n);
  const std::vector<PageRun> runs = page_runs(wants);
  Reader reader(file, codec, wants, out);
  const int64_t num_runs = static_cast<int64_t>(runs.size());
  const int64_t grain = std::clamp<int64_t>(num_runs / (io_threads() * kExtentsPerThread), 1, 64);
  parallel_for_io(num_runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) reader.read(runs[i]);
  });
  return reader.result();
}

}  // namespace gnn_ibp
