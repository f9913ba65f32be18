// A hash table that numbers ids in the order in which they first appear, emptied in no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "cpu/huge_pages.h"

namespace gnn_ibp {

// Open addressing with linear probing, at most half full. An entry counts only while it carries the current
// stamp, so a new batch starts by raising the stamp, whatever the size of the table.
class LocalIds {
 public:
  // Forgets all ids. The memory stays; of a table that was left almost empty the next batch uses half, so
  // that one large batch does not scatter all later ones.
  void clear() {
    if (size_ * 16 < capacity() && shift_ < kSmallest) ++shift_;
    restart();
  }

  // Makes room for `num_ids` ids; known[0], …, known[num_known - 1] are those that have been inserted.
  void reserve(int64_t num_ids, const int64_t* known, int64_t num_known) {
    if (num_ids > UINT32_MAX) throw std::length_error("a sample of more than 2^32 nodes");
    if (static_cast<uint64_t>(num_ids) * 2 <= capacity()) return;
    while (static_cast<uint64_t>(num_ids) * 2 > capacity()) --shift_;
    if (capacity() > allocated_) {
      allocated_ = capacity();
      entries_ = make_entries(allocated_);
    }
    restart();
    for (int64_t local = 0; local < num_known; ++local) insert(known[local], local);
  }

  void prefetch(int64_t id) const { __builtin_prefetch(&entries_[slot(id)], 1); }

  // The number of `id`, which becomes `next` where the id is new.
  int64_t insert(int64_t id, int64_t next) {
    for (uint64_t i = slot(id);; i = (i + 1) & (capacity() - 1)) {
      Entry& entry = entries_[i];
      if (entry.stamp != stamp_) {
        entry = {id, stamp_, static_cast<uint32_t>(next)};
        ++size_;
        return next;
      }
      if (entry.id == id) return entry.local;
    }
  }

  int64_t nbytes() const { return allocated_ * sizeof(Entry); }

 private:
  struct Entry {
    int64_t id;
    uint32_t stamp;
    uint32_t local;
  };

  static constexpr int kSmallest = 64 - 10;

  static Huge<Entry> make_entries(uint64_t size) {
    auto entries = make_huge<Entry>(size);
    std::fill_n(entries.get(), size, Entry{});
    return entries;
  }

  void restart() {
    size_ = 0;
    if (++stamp_ != 0) return;
    for (uint64_t i = 0; i < allocated_; ++i) entries_[i].stamp = 0;  // the oldest would count again
    stamp_ = 1;
  }

  uint64_t capacity() const { return uint64_t{1} << (64 - shift_); }
  uint64_t slot(int64_t id) const { return static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u >> shift_; }

  int shift_ = kSmallest;  // 64 - log2 of the entries in use
  uint64_t allocated_ = capacity();
  Huge<Entry> entries_ = make_entries(allocated_);
  uint32_t stamp_ = 1;
  uint64_t size_ = 0;  // distinct ids
};

}  // namespace gnn_ibp
