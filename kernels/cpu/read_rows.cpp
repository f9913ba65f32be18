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

// Where rows go that are wanted decoded.
class DecodedRows {
 public:
  DecodedRows(const RowCodec& codec, uint8_t* out) : codec_(codec), out_(out) {}

  void put(int64_t to, const uint8_t* stored, uint64_t size, bool encoded) {
    if (encoded) {
      codec_.decode(stored, size, row(to));
    } else {
      std::memcpy(row(to), stored, codec_.row_bytes());
    }
  }
  void repeat(int64_t to, int64_t from) { std::memcpy(row(to), row(from), codec_.row_bytes()); }

 private:
  uint8_t* row(int64_t to) { return out_ + to * codec_.row_bytes(); }

  const RowCodec& codec_;
  uint8_t* const out_;
};

// Where rows go that are wanted as they are stored. Those of a file in place, whose sizes only the rows
// tell, are put as far apart as raw rows would be, and closed up when all have come.
class KeptRows {
 public:
  KeptRows(const RowsOnDisk& file, const int64_t* ids, int64_t n, const RowSlab& slab)
      : slab_(slab), starts_(n) {
    std::fill_n(slab.bitmask, (n + 7) / 8, uint8_t{0});
    uint64_t end = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (file.layout.encoded(ids[i])) slab.bitmask[i >> 3] |= static_cast<uint8_t>(1 << (i & 7));
      starts_[i] = end;
      end += aligned(file.layout.in_place() ? file.layout.row_bytes : file.layout.size(ids[i]));
    }
  }

  void put(int64_t to, const uint8_t* stored, uint64_t size, bool) {
    uint8_t* row = slab_.first + starts_[to];
    std::memcpy(row, stored, size);
    std::memset(row + size, 0, aligned(size) - size);
    set_size(to, size);
  }
  void repeat(int64_t to, int64_t from) {
    const uint64_t size = this->size(from);
    std::memcpy(slab_.first + starts_[to], slab_.first + starts_[from], aligned(size));
    set_size(to, size);
  }

  // Closes up the rows and writes the bases.
  void finish() {
    uint64_t end = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(starts_.size()); ++i) {
      const uint64_t bytes = aligned(size(i));
      if (starts_[i] != end) std::memmove(slab_.first + end, slab_.first + starts_[i], bytes);
      if (i % RowLayout::kGroup == 0) slab_.bases[i / RowLayout::kGroup] = end;
      end += bytes;
    }
  }

 private:
  uint64_t aligned(uint64_t size) const { return (size + slab_.align - 1) / slab_.align * slab_.align; }
  uint64_t size(int64_t i) const {
    return (slab_.sizes16 ? slab_.sizes16[i] : slab_.sizes32[i]) * slab_.unit;
  }
  void set_size(int64_t i, uint64_t size) {
    if (slab_.sizes16) {
      slab_.sizes16[i] = static_cast<uint16_t>(size / slab_.unit);
    } else {
      slab_.sizes32[i] = static_cast<uint32_t>(size / slab_.unit);
    }
  }

  const RowSlab& slab_;
  std::vector<uint64_t> starts_;
};

// Reads of one call: shared by the threads that work on it.
template <typename Target>
class Reader {
 public:
  Reader(const RowsOnDisk& file, const RowCodec& codec, const std::vector<Want>& wants, Target& target)
      : file_(file), codec_(codec), wants_(wants), target_(target) {}

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
        target_.repeat(want.to, wants_[i - 1].to);
      } else {
        const uint8_t* stored = buffer.data() + (want.at - run.begin);
        size = checked_size(want, stored);
        if (size < 0) return fail({.failure = ReadFailure::kDamaged}, want.id, want.id);
        target_.put(want.to, stored, static_cast<uint64_t>(size), file_.layout.encoded(want.id));
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
  int64_t checked_size(const Want& want, const uint8_t* stored) {
    if (!file_.layout.encoded(want.id)) return static_cast<int64_t>(codec_.row_bytes());
    uint64_t size = want.size;
    if (file_.layout.in_place()) {
      size = codec_.announced_size(stored, codec_.row_bytes() - 1);
      if (size == 0) return -1;
    } else if (!codec_.check(stored, size)) {
      return -1;
    }
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
  Target& target_;
  std::atomic<uint64_t> encoded_bytes_{0}, physical_bytes_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  ReadResult failure_;
};

template <typename Target>
ReadResult read_into(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, const int64_t* at,
                     int64_t n, Target& target) {
  const std::vector<Want> wants = sorted_wants(file.layout, ids, at, n);
  const std::vector<PageRun> runs = page_runs(wants);
  Reader<Target> reader(file, codec, wants, target);
  const int64_t num_runs = static_cast<int64_t>(runs.size());
  const int64_t grain = std::clamp<int64_t>(num_runs / (io_threads() * kExtentsPerThread), 1, 64);
  parallel_for_io(num_runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) reader.read(runs[i]);
  });
  return reader.result();
}

}  // namespace

ReadResult read_rows(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, const int64_t* at,
                     int64_t n, uint8_t* out) {
  if (n == 0 || codec.row_bytes() == 0) return {};
  DecodedRows target(codec, out);
  return read_into(file, codec, ids, at, n, target);
}

ReadResult read_stored(const RowsOnDisk& file, const RowCodec& codec, const int64_t* ids, int64_t n,
                       const RowSlab& slab) {
  KeptRows target(file, ids, n, slab);
  if (codec.row_bytes() == 0) {
    const uint8_t nothing = 0;
    for (int64_t i = 0; i < n; ++i) target.put(i, &nothing, 0, false);
    target.finish();
    return {};
  }
  const ReadResult result = read_into(file, codec, ids, nullptr, n, target);
  if (result.failure == ReadFailure::kNone) target.finish();
  return result;
}

}  // namespace gnn_ibp
