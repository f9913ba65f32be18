// A hash table that numbers ids in the order in which they first appear, emptied in no time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>

#include "cpu/huge_pages.h"

namespace gnn_ibp {

// Open addressing with linear probing, at most half full. Numbers go on from batch to batch, and an entry
// counts only if its number is one of this batch's: a new batch starts by raising the first that counts,
// whatever the size of the table. Where ids fit into 32 bits an entry takes 8 bytes, else 16.
template <class Id>
class LocalIds {
 public:
  // Forgets all ids. The memory stays; of a table that was left almost empty the next batch uses half, so
  // that one large batch does not scatter all later ones.
  void clear() {
    if (uint64_t{end_ - first_} * 16 < capacity() && shift_ < kSmallest) ++shift_;
    restart();
  }

  // Makes room for `num_ids` ids; known[0], …, known[num_known - 1] are those that have been inserted.
  void reserve(int64_t num_ids, const int64_t* known, int64_t num_known) {
    if (num_ids > INT32_MAX) throw std::overflow_error("a sample of more than 2^31 nodes");
    if (static_cast<uint64_t>(num_ids) * 2 <= capacity()) return;
    uint64_t wanted = capacity();
    while (static_cast<uint64_t>(num_ids) * 2 > wanted) wanted *= 2;
    if (wanted > allocated_) {
      entries_ = make_entries(wanted);  // where that throws, the table is as it was
      allocated_ = wanted;
      first_ = end_ = 1;
    }
    shift_ = 64 - std::countr_zero(wanted);
    restart();
    for (int64_t local = 0; local < num_known; ++local) insert(known[local], local);
  }

  void prefetch(int64_t id) const { __builtin_prefetch(&entries_[slot(id)], 1); }

  // The number of `id`, which becomes `next` where the id is new. No branch asks which: it cannot be
  // predicted.
  int64_t insert(int64_t id, int64_t next) {
    uint64_t i = slot(id);
    Entry entry = entries_[i];
    while ((entry.number >= first_) & (entry.id != static_cast<Id>(id))) {
      i = (i + 1) & (capacity() - 1);
      entry = entries_[i];
    }
    const uint32_t number = entry.number >= first_ ? entry.number : first_ + static_cast<uint32_t>(next);
    entries_[i] = {static_cast<Id>(id), number};
    end_ = std::max(end_, number + 1);
    return number - first_;
  }

  int64_t nbytes() const { return allocated_ * sizeof(Entry); }

 private:
  struct Entry {
    Id id;
    uint32_t number;  // counted from `first_`
  };

  static constexpr int kSmallest = 64 - 10;
  static constexpr uint32_t kWipeFrom = 1 << 24;  // rare, and 31 bits are left for the numbers of a batch

  static Huge<Entry> make_entries(uint64_t size) {
    auto entries = make_huge<Entry>(size);
    std::fill_n(entries.get(), size, Entry{});
    return entries;
  }

  void restart() {
    first_ = end_;
    if (first_ < kWipeFrom) return;
    std::fill_n(entries_.get(), allocated_, Entry{});
    first_ = end_ = 1;
  }

  uint64_t capacity() const { return uint64_t{1} << (64 - shift_); }
  uint64_t slot(int64_t id) const { return static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u >> shift_; }

  int shift_ = kSmallest;  // 64 - log2 of the entries in use
  uint64_t allocated_ = capacity();
  Huge<Entry> entries_ = make_entries(allocated_);
  uint32_t first_ = 1, end_ = 1;  // the numbers that count
};

}  // namespace gnn_ibp
