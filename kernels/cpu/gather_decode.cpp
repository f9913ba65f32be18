#include "cpu/gather_decode.h"

#include <algorithm>
#include <vector>

#include "cpu/stream_out.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr int64_t kBlock = 64;                 // rows that are looked up, then located, then decoded together
constexpr size_t kPieceBytes = 1 << 17;        // of decoded rows, for one thread at a time
constexpr size_t kLongestStreamed = 32 << 10;  // rows that stay in the first caches on their way out
constexpr size_t kLongestOfTwo = 2 << 10;      // longer rows keep the processor busy one by one
constexpr size_t kTouched = 1 << 10;           // bytes of a row that are loaded ahead
constexpr size_t kCacheLine = 64;

// Loads whose values nobody uses, to have their lines in the caches. A prefetch instruction does not wait for
// the line, but where the page misses the TLB it is dropped; a short loop of loads has as many under way.
class Touch {
 public:
  ~Touch() { asm volatile("" : : "r"(sum_)); }  // keeps the loads

  template <typename T>
  void operator()(const T* at) {
    sum_ += static_cast<uint64_t>(*at);
  }

 private:
  uint64_t sum_ = 0;
};

// Where a wanted row lies.
struct Place {
  const RowSource* source = nullptr;  // none: it is missing
  int64_t slot = 0;
  bool follows = false;             // the place before it, in a group: the processor sees it coming
  const uint8_t* stored = nullptr;  // none: the index leads outside of the source
  size_t size = 0;
  bool encoded = false;
};

Place look_up(int64_t id, const RowSource* sources, int num_sources) {
  for (const RowSource* source = sources; source < sources + num_sources; ++source) {
    const int64_t slot = source->slot_of ? source->slot_of[id] : id;
    if (slot >= 0) return {source, slot};
  }
  return {};
}

void touch_index(const Place& place, Touch& touch) {
  const RowLayout& layout = place.source->layout;
  if (place.slot < layout.num_rows) layout.touch_index(place.slot, touch);
}

bool follows(const Place& place, const Place& before) {
  return place.source && place.source == before.source && place.slot == before.slot + 1 &&
         place.slot % RowLayout::kGroup != 0;
}

// The extent of the row at `place`. Where it follows the one before it no sum over the group is needed.
Extent extent_of(const Place& place, const Place& before) {
  const RowSource& source = *place.source;
  if (!place.follows || !before.stored || source.layout.in_place()) return source.layout.extent(place.slot);
  const uint64_t before_at = static_cast<uint64_t>(before.stored - source.first);
  return {before_at + source.layout.aligned(before.size), source.layout.size(place.slot)};
}

void locate(Place& place, const Place& before) {
  const RowSource& source = *place.source;
  if (place.slot >= source.layout.num_rows) return;
  const auto [at, size] = extent_of(place, before);
  if (at > source.num_bytes || size > source.num_bytes - at) return;
  place.encoded = source.layout.encoded(place.slot);
  place.stored = source.first + at;
  place.size = size;
}

// The lines at the row's start: where it has more, the processor sees that they are read in order.
void touch_row(const Place& place, Touch& touch) {
  const size_t size = std::min(place.size, kTouched);
  for (size_t at = 0; at < size; at += kCacheLine) touch(place.stored + at);
  if (size) touch(place.stored + size - 1);
}

struct Call {
  const int64_t *ids, *at;
  const RowSource* sources;
  int num_sources;
  size_t row_bytes;
  uint8_t* out;
  int64_t *missing_ids, *missing_at;
  bool streamed;  // past the caches

  int64_t row_at(int64_t i) const { return at ? at[i] : i; }
};

// Puts rows where the caller wants them.
class Target {
 public:
  explicit Target(const Call& call) : call_(call), row_(call.streamed ? 2 * call.row_bytes : 0) {}
  ~Target() {
    if (call_.streamed) finish_streaming();
  }

  // Puts two rows side by side: true where it has put both.
  bool put_two(const Place& a, int64_t a_at, const Place& b, int64_t b_at) {
    if (call_.row_bytes > kLongestOfTwo || !a.encoded || !b.encoded || a.source != b.source) return false;
    if (a.source->layout.in_place()) return false;
    uint8_t* const to[2] = {out_row(a_at), out_row(b_at)};
    if (!call_.streamed) return decode_two(a, to[0], b, to[1]);
    uint8_t* const rows[2] = {row_.data(), row_.data() + call_.row_bytes};
    if (!decode_two(a, rows[0], b, rows[1])) return false;
    copy(rows[0], to[0]);
    copy(rows[1], to[1]);
    return true;
  }

  // The bytes of the row as stored, or -1 where it is damaged.
  int64_t put(const Place& place, int64_t row_at) {
    if (!place.stored) return -1;
    uint8_t* to = out_row(row_at);
    if (!place.encoded) {
      if (place.size != call_.row_bytes) return -1;
      copy(place.stored, to);
      return static_cast<int64_t>(place.size);
    }
    if (!call_.streamed) return decode(place, to);
    const int64_t size = decode(place, row_.data());
    if (size >= 0) copy(row_.data(), to);
    return size;
  }

 private:
  uint8_t* out_row(int64_t row_at) const { return call_.out + static_cast<size_t>(row_at) * call_.row_bytes; }

  void copy(const uint8_t* row, uint8_t* to) const {
    if (call_.streamed) {
      stream_row(to, row, call_.row_bytes);
    } else {
      std::copy_n(row, call_.row_bytes, to);
    }
  }

  static bool decode_two(const Place& a, uint8_t* a_to, const Place& b, uint8_t* b_to) {
    return a.source->codec->try_decode_two({{a.stored, a.size, a_to}, {b.stored, b.size, b_to}});
  }

  static int64_t decode(const Place& place, uint8_t* to) {
    const RowCodec& codec = *place.source->codec;
    size_t size = place.size;
    if (place.source->layout.in_place()) {
      size = codec.announced_size(place.stored, size);
      if (size == 0) return -1;
      codec.decode(place.stored, size, to);
    } else if (!codec.try_decode(place.stored, size, to)) {
      return -1;
    }
    return static_cast<int64_t>(size);
  }

  const Call& call_;
  std::vector<uint8_t> row_;
};

// Finds the bytes of the rows and has them in the caches. One loop for each kind of line, short enough for
// the processor to be many rows ahead.
void wait_for_rows(Place* places, int64_t count) {
  Touch touch;
  for (int64_t k = 0; k < count; ++k)
    if (places[k].source && !places[k].follows) touch_index(places[k], touch);
  for (int64_t k = 0; k < count; ++k)
    if (places[k].source) locate(places[k], places[k == 0 ? 0 : k - 1]);
  for (int64_t k = 0; k < count; ++k)
    if (!places[k].follows) touch_row(places[k], touch);
}

// Serves ids [begin, end); those that are missing are written from missing_ids[begin] on. A block is looked
// up, waited for, then decoded, so that the cache misses of many rows overlap.
GatherCounts serve(const Call& call, int64_t begin, int64_t end) {
  GatherCounts counts;
  Target target(call);
  Place places[kBlock];
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t count = std::min(kBlock, end - first);
    for (int64_t k = 0; k < count; ++k) {
      places[k] = look_up(call.ids[first + k], call.sources, call.num_sources);
      places[k].follows = k > 0 && follows(places[k], places[k - 1]);
    }
    wait_for_rows(places, count);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = first + k;
      const Place& place = places[k];
      if (!place.source) {
        const int64_t missing = begin + counts.num_missing++;
        call.missing_ids[missing] = call.ids[i];
        call.missing_at[missing] = call.row_at(i);
        continue;
      }
      const auto s = place.source - call.sources;
      if (k + 1 < count && target.put_two(place, call.row_at(i), places[k + 1], call.row_at(i + 1))) {
        counts.hits[s] += 2;
        counts.encoded_bytes[s] += static_cast<int64_t>(place.size + places[++k].size);
        continue;
      }
      const int64_t size = target.put(place, call.row_at(i));
      if (size < 0) {
        counts.damaged = i;
        return counts;
      }
      counts.hits[s] += 1;
      counts.encoded_bytes[s] += size;
    }
  }
  return counts;
}

}  // namespace

GatherCounts gather_decode(const int64_t* ids, const int64_t* at, int64_t n, const RowSource* sources,
                           int num_sources, size_t row_bytes, uint8_t* out, int64_t* missing_ids,
                           int64_t* missing_at) {
  const bool streamed = static_cast<uint64_t>(n) * row_bytes > kCacheShare && row_bytes <= kLongestStreamed;
  const Call call{ids, at, sources, num_sources, row_bytes, out, missing_ids, missing_at, streamed};
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
