#include "cpu/gather_decode.h"

#include <algorithm>
#include <vector>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kBlock = 64;           // rows that are looked up, then located, then decoded together
constexpr size_t kPieceBytes = 1 << 16;  // of decoded rows, for one thread at a time
constexpr size_t kCacheLine = 64;

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// Where a wanted row lies.
struct Place {
  const RowSource* source = nullptr;  // none: it is missing
  int64_t slot = 0;
  bool encoded = false;
  Extent extent{0, 0};
};

Place look_up(int64_t id, const RowSource* sources, int num_sources) {
  for (int s = 0; s < num_sources; ++s) {
    const RowSource& source = sources[s];
    const int64_t slot = source.slot_of ? source.slot_of[id] : id;
    if (slot < 0) continue;
    if (slot < source.layout.num_rows) source.layout.prefetch_index(slot, prefetch);
    return {&source, slot};
  }
  return {};
}

// Fills in the extent; false where it is none of the source's.
bool locate(Place& place) {
  const RowSource& source = *place.source;
  if (place.slot >= source.layout.num_rows) return false;
  place.encoded = source.layout.encoded(place.slot);
  place.extent = source.layout.extent(place.slot);
  const auto [at, size] = place.extent;
  if (at > source.num_bytes || size > source.num_bytes - at) return false;
  for (uint64_t line = 0; line < size; line += kCacheLine) prefetch(source.first + at + line);
  return true;
}

// Decodes the row; returns its stored bytes, or -1 where it is damaged.
int64_t decode(const Place& place, size_t row_bytes, uint8_t* row) {
  const RowSource& source = *place.source;
  const uint8_t* stored = source.first + place.extent.at;
  size_t size = place.extent.size;
  if (!place.encoded) {
    if (size != row_bytes) return -1;
    std::copy_n(stored, row_bytes, row);
    return static_cast<int64_t>(size);
  }
  if (source.layout.in_place()) {
    size = source.codec->announced_size(stored, size);
    if (size == 0) return -1;
  } else if (!source.codec->check(stored, size)) {
    return -1;
  }
  source.codec->decode(stored, row);
  return static_cast<int64_t>(size);
}

struct Call {
  const int64_t *ids, *at;
  const RowSource* sources;
  int num_sources;
  size_t row_bytes;
  uint8_t* out;
  int64_t *missing_ids, *missing_at;
};

// Serves ids [begin, end); those that are missing are written from missing_ids[begin] on. Three loops a
// block, so that the cache misses of many rows overlap.
GatherCounts serve(const Call& call, int64_t begin, int64_t end) {
  GatherCounts counts;
  Place places[kBlock];
  int64_t missing = begin;
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t count = std::min(kBlock, end - first);
    for (int64_t k = 0; k < count; ++k)
      places[k] = look_up(call.ids[first + k], call.sources, call.num_sources);
    bool well[kBlock];
    for (int64_t k = 0; k < count; ++k) well[k] = !places[k].source || locate(places[k]);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = first + k, row_at = call.at ? call.at[i] : i;
      if (!places[k].source) {
        call.missing_ids[missing] = call.ids[i];
        call.missing_at[missing++] = row_at;
        continue;
      }
      uint8_t* row = call.out + static_cast<size_t>(row_at) * call.row_bytes;
      const int64_t size = well[k] ? decode(places[k], call.row_bytes, row) : -1;
      if (size < 0) {
        counts.damaged = i;
        counts.num_missing = missing - begin;
        return counts;
      }
      const auto s = places[k].source - call.sources;
      counts.hits[s] += 1;
      counts.encoded_bytes[s] += size;
    }
  }
  counts.num_missing = missing - begin;
  return counts;
}

}  // namespace

GatherCounts gather_decode(const int64_t* ids, const int64_t* at, int64_t n, const RowSource* sources,
                           int num_sources, size_t row_bytes, uint8_t* out, int64_t* missing_ids,
                           int64_t* missing_at) {
  const Call call{ids, at, sources, num_sources, row_bytes, out, missing_ids, missing_at};
  const int64_t piece_rows =
      std::max<int64_t>(kBlock, static_cast<int64_t>(kPieceBytes / std::max<size_t>(1, row_bytes)));
  std::vector<GatherCounts> pieces(static_cast<size_t>((n + piece_rows - 1) / piece_rows));
  parallel_for(n, piece_rows, [&](int64_t begin, int64_t end) {
    pieces[static_cast<size_t>(begin / piece_rows)] = serve(call, begin, end);
  });

  GatherCounts total;
  for (size_t p = 0; p < pieces.size(); ++p) {
    const GatherCounts& piece = pieces[p];
    const int64_t begin = static_cast<int64_t>(p) * piece_rows;
    std::copy_n(missing_ids + begin, piece.num_missing, missing_ids + total.num_missing);
    std::copy_n(missing_at + begin, piece.num_missing, missing_at + total.num_missing);
    total.num_missing += piece.num_missing;
    for (int s = 0; s < num_sources; ++s) {
      total.hits[s] += piece.hits[s];
      total.encoded_bytes[s] += piece.encoded_bytes[s];
    }
    if (total.damaged < 0) total.damaged = piece.damaged;
  }
  return total;
}

}  // namespace gnn_ibp
