#include "cpu/stored_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kGroupGrain = 4096;
constexpr int64_t kRowGrain = 1024;

}  // namespace

bool check_index(const RowLayout& layout, uint64_t rows_bytes) {
  const int64_t num_groups = (layout.num_rows + RowLayout::kGroup - 1) / RowLayout::kGroup;
  if (num_groups == 0) return rows_bytes == 0;
  std::atomic<bool> good{layout.bases[0] == 0};
  parallel_for(num_groups, kGroupGrain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * RowLayout::kGroup;
      const int64_t last = std::min(layout.num_rows, first + RowLayout::kGroup);
      uint64_t at = layout.bases[group];
      bool sizes_good = true;
      for (int64_t i = first; i < last; ++i) {
        const uint64_t size = layout.size(i);
        sizes_good &= layout.encoded(i) ? size < layout.row_bytes : size == layout.row_bytes;
        at += layout.aligned(size);
      }
      const uint64_t next = group + 1 < num_groups ? layout.bases[group + 1] : rows_bytes;
      // A sum that overflows would have passed rows_bytes, at which all bases end.
      if (!sizes_good || at != next || at > rows_bytes) good.store(false, std::memory_order_relaxed);
    }
  });
  return good;
}

void measure_rows(const RowLayout& layout, const RowCodec& codec, const uint8_t* rows, const int64_t* ids,
                  int64_t n, int64_t* sizes) {
  parallel_for(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Extent extent = layout.extent(ids[k]);
      const uint8_t* stored = rows + extent.at;
      if (!layout.encoded(ids[k])) {
        sizes[k] = static_cast<int64_t>(extent.size);
      } else if (layout.in_place()) {
        const size_t size = layout.row_bytes ? codec.announced_size(stored, layout.row_bytes - 1) : 0;
        sizes[k] = size ? static_cast<int64_t>(size) : -1;
      } else {
        sizes[k] = codec.check(stored, extent.size) ? static_cast<int64_t>(extent.size) : -1;
      }
    }
  });
}

void copy_rows(const RowLayout& from, const uint8_t* from_rows, const int64_t* ids, const RowLayout& to,
               uint8_t* to_rows, const int64_t* slots, int64_t n) {
  parallel_for(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Extent target = to.extent(slots[k]);
      std::memcpy(to_rows + target.at, from_rows + from.extent(ids[k]).at, target.size);
      std::memset(to_rows + target.at + target.size, 0, to.aligned(target.size) - target.size);
    }
  });
}

}  // namespace gnn_ibp
