// Shuffles, votes, reductions and __syncwarp: the lanes of a mask meet, then each goes on with its result.
#pragma once

#include "schedule.h"

namespace simt {

inline uint64_t num_collectives;

// What all lanes of a vote or reduction get together.
struct Totals {
  uint32_t votes = 0, sum = 0, any_bit = 0, all_bits = ~0u, odd_bits = 0, least = ~0u, most = 0;

  void add(unsigned lane, uint64_t value) {
    const uint32_t word = static_cast<uint32_t>(value);
    votes |= static_cast<uint32_t>(value != 0) << lane;
    sum += word;
    any_bit |= word;
    all_bits &= word;
    odd_bits ^= word;
    least = word < least ? word : least;
    most = word > most ? word : most;
  }
};

// The lane that `thread` reads in a shuffle; `present` are those that take part.
inline unsigned shuffled_from(const Thread& thread, uint32_t present) {
  const int width = thread.width, lane = static_cast<int>(thread.lane), arg = thread.arg & 31;
  if (width < 1 || width > 32 || (width & (width - 1))) {
    fail("%s:%d shuffle width %d is not a power of two up to 32", thread.file, thread.line, width);
  }
  const int base = lane & ~(width - 1), last = base + width - 1;
  int from = lane;
  if (thread.kind == SHFL_IDX) from = base | (arg & (width - 1));
  if (thread.kind == SHFL_UP && lane - arg >= base) from = lane - arg;
  if (thread.kind == SHFL_DOWN && lane + arg <= last) from = lane + arg;
  if (thread.kind == SHFL_XOR && (lane ^ arg) <= last) from = lane ^ arg;
  if (!(present >> from & 1)) {
    fail("%s:%d %s: thread %u reads lane %d, which is not taking part (mask %08x; it is %s)", thread.file,
         thread.line, kind_names[thread.kind], number_of(thread), from, thread.mask,
         where(lanes_of(*thread.warp)[from]).c_str());
  }
  return static_cast<unsigned>(from);
}

inline uint32_t lanes_with(uint64_t value, const Thread* lanes, uint32_t present) {
  uint32_t same = 0;
  for (uint32_t left = present; left; left &= left - 1) {
    if (lanes[lowest(left)].value == value) same |= 1u << lowest(left);
  }
  return same;
}

inline uint64_t result_for(const Thread& thread, const Thread* lanes, uint32_t present,
                           const Totals& totals) {
  switch (thread.kind) {
    case BALLOT:
      return totals.votes;
    case ANY:
      return totals.votes != 0;
    case ALL:
      return totals.votes == present;
    case MATCH_ANY:
      return lanes_with(thread.value, lanes, present);
    case REDUCE_ADD:
      return totals.sum;
    case REDUCE_MIN:
      return totals.least;
    case REDUCE_MAX:
      return totals.most;
    case REDUCE_AND:
      return totals.all_bits;
    case REDUCE_OR:
      return totals.any_bit;
    case REDUCE_XOR:
      return totals.odd_bits;
    case SYNCWARP:
      return 0;
    default:
      return lanes[shuffled_from(thread, present)].value;
  }
}

inline void check_same_call(const Thread& first, const Thread& other) {
  const bool same_line = first.line == other.line && !strcmp(first.file, other.file);
  if (first.kind == other.kind && (same_line || first.kind == SYNCWARP || !options.strict)) return;
  fail("divergent collective: thread %u %s, thread %u %s", number_of(first), where(first).c_str(),
       number_of(other), where(other).c_str());
}

inline Meeting& meeting_of(Warp& warp, unsigned mask) {
  for (Meeting* meeting : warp.meetings) {
    if (meeting->mask == mask) return *meeting;
  }
  warp.meetings.push_back(new Meeting{mask, {}, 0});
  return *warp.meetings.back();
}

inline void finish_collective(Warp& warp, uint32_t present) {
  Thread* lanes = lanes_of(warp);
  const Thread& first = lanes[lowest(present)];
  Totals totals;
  for (uint32_t left = present; left; left &= left - 1) {
    const Thread& thread = lanes[lowest(left)];
    check_same_call(first, thread);
    if (first.kind >= BALLOT) totals.add(thread.lane, thread.value);
  }
  for (uint32_t left = present; left; left &= left - 1) {
    Thread& thread = lanes[lowest(left)];
    thread.result = result_for(thread, lanes, present, totals);
  }
  for (uint32_t left = present; left; left &= left - 1) lanes[lowest(left)].state = READY;
  warp.at_collective &= ~present;
  warp.ready |= present;
  num_collectives++;
#ifdef SIMT_TSAN
  if (first.kind == SYNCWARP) meeting_of(warp, first.mask).turn ^= 1;
#endif
}

// Lets the lanes of `mask` go on if all that have not exited wait with this very mask.
inline bool try_finish_collective(Warp& warp, unsigned mask) {
  const uint32_t present = mask & ~warp.exited;
  if (!present || (warp.at_collective & present) != present) return false;
  const Thread* lanes = lanes_of(warp);
  for (uint32_t left = present; left; left &= left - 1) {
    if (lanes[lowest(left)].mask != mask) return false;
  }
  finish_collective(warp, present);
  return true;
}

// A lane has exited: others may have waited for it alone.
inline void finish_without_exited(Warp& warp) {
  for (uint32_t left = warp.at_collective; left; left &= left - 1) {
    const unsigned lane = lowest(left);
    if (warp.at_collective >> lane & 1) try_finish_collective(warp, lanes_of(warp)[lane].mask);
  }
}

uint64_t collective(Kind kind, unsigned mask, uint64_t value, int arg, int width, const char* file,
                    int line) {
  Thread& thread = self();
  Warp& warp = *thread.warp;
  const uint32_t bit = 1u << thread.lane;
  if (!(mask & bit)) {
    fail("%s:%d %s: the calling lane %u is not in its own mask %08x", file, line, kind_names[kind],
         thread.lane, mask);
  }
  thread.kind = kind;
  thread.mask = mask;
  thread.value = value;
  thread.arg = arg;
  thread.width = width;
  thread.file = file;
  thread.line = line;
  thread.state = AT_COLLECTIVE;
  warp.ready &= ~bit;
  warp.at_collective |= bit;
#ifdef SIMT_TSAN
  Mark* mark = nullptr;  // shuffles and votes order no memory
  if (kind == SYNCWARP) {
    Meeting& meeting = meeting_of(warp, mask);
    mark = &meeting.marks[meeting.turn];
    release(*mark);
  }
#endif
  if (!try_finish_collective(warp, mask) || options.order == RANDOM) yield();
#ifdef SIMT_TSAN
  if (mark) acquire(*mark);
#endif
  return thread.result;
}

}  // namespace simt
