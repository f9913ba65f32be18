// cp.async: copies that happen as late as the waits allow, or at once; and the record of reads.
#pragma once

#include "schedule.h"
#include "shared_memory.h"

namespace simt {

struct Read {
  uint64_t at, bytes;
};
inline const char* watched;  // the buffer whose reads are recorded
inline uint64_t watched_bytes;
inline std::vector<Read> reads;

void record_read(const void* from, size_t bytes) {
  const uint64_t at = static_cast<uint64_t>(static_cast<const char*>(from) - watched);
  if (at < watched_bytes) reads.push_back({at, bytes});
}

// Whether AddressSanitizer can forbid exactly the bytes of a copy: it knows eight bytes at a time.
inline bool can_forbid(const Copy& copy) { return copy.bytes % 8 == 0; }

inline void make_copies(Thread& thread, size_t up_to) {
  Copies& copies = thread.copies;
  for (; copies.num_done < up_to; copies.num_done++) {
    const Copy& copy = copies.issued[copies.num_done];
    if (can_forbid(copy)) allow(copy.to, copy.bytes);
    memcpy(copy.to, copy.from, copy.bytes_read);
    memset(static_cast<char*>(copy.to) + copy.bytes_read, 0, copy.bytes - copy.bytes_read);
  }
}

inline void forget_copies(Copies& copies) {
  copies.issued.clear();
  copies.groups.clear();
  copies.num_done = 0;
}

void cp_async(void* to, const void* from, int bytes, int bytes_read, const char* file, int line) {
  Thread& thread = self();
  if (bytes_read < 0 || bytes_read > bytes) {
    fail("%s:%d cp.async reads %d of %d bytes", file, line, bytes_read, bytes);
  }
  const Copy copy = {to, from, static_cast<size_t>(bytes), static_cast<size_t>(bytes_read)};
  if (reinterpret_cast<uintptr_t>(to) % copy.bytes || reinterpret_cast<uintptr_t>(from) % copy.bytes) {
    fail("%s:%d cp.async: %p <- %p is not aligned to %d bytes", file, line, to, from, bytes);
  }
  if (static_cast<char*>(to) < arena || static_cast<char*>(to) + copy.bytes > arena + ARENA_BYTES) {
    fail("%s:%d cp.async: the destination is not shared memory", file, line);
  }
  // Both are looked at now, because the copy itself is made far from this line.
  if (is_forbidden(from, copy.bytes_read)) {
    fail("%s:%d cp.async reads %d bytes out of bounds, at %p", file, line, bytes_read, from);
  }
  if (is_forbidden(to, copy.bytes)) {
    fail("%s:%d cp.async writes %d bytes out of bounds, or where a copy is under way, at %p", file, line,
         bytes, to);
  }
  if (bytes_read) record_read(from, copy.bytes_read);
  thread.copies.issued.push_back(copy);
  if (options.eager_copies) {
    make_copies(thread, thread.copies.issued.size());
  } else if (can_forbid(copy)) {
    forbid(to, copy.bytes);  // until it is waited for
  }
}

void cp_async_commit() {
  self().copies.groups.push_back(self().copies.issued.size());
  if (options.order == RANDOM) yield();  // so that others run while the copies are under way
}

void cp_async_wait(int num_left) {
  Thread& thread = self();
  Copies& copies = thread.copies;
  const size_t left = static_cast<size_t>(num_left);
  if (copies.groups.size() > left) make_copies(thread, copies.groups[copies.groups.size() - 1 - left]);
  if (!left && copies.num_done == copies.issued.size()) forget_copies(copies);
}

}  // namespace simt
