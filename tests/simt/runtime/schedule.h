// Which thread runs next: in order, in reverse order, or at random with a seed.
#pragma once

#include "block.h"

namespace simt {

inline const char* const kind_names[NUM_KINDS] = {
    "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",  "__ballot_sync",
    "__any_sync",        "__all_sync",        "__syncwarp",        "__match_any_sync", "__reduce_add_sync",
    "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};

inline uint64_t random_state;
inline uint64_t num_switches;

inline void seed_random(int seed) {
  random_state = 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(seed) + 1) | 1;
}
inline uint32_t random_number() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return static_cast<uint32_t>(random_state >> 16);
}

inline void switch_to(Thread& to) {
  Thread& from = self();
  current = &to;
  num_switches++;
  switch_fiber(from.fiber, to.fiber);
}

inline unsigned pick_lane(uint32_t ready) {
  if (options.order == FORWARD) return lowest(ready);
  if (options.order == REVERSE) return 31 - static_cast<unsigned>(__builtin_clz(ready));
  for (uint32_t skip = random_number() % __builtin_popcount(ready); skip; skip--) ready &= ready - 1;
  return lowest(ready);
}

// A ready thread, of `warp` as long as it has one unless at random; nullptr if there is none.
inline Thread* next_ready(Warp& warp) {
  const unsigned own = static_cast<unsigned>(&warp - warps);
  const unsigned first = options.order == RANDOM ? random_number() % num_warps : own;
  for (unsigned i = 0; i < num_warps; i++) {
    const unsigned w = (options.order == REVERSE ? first + num_warps - i : first + i) % num_warps;
    if (warps[w].ready) return &lanes_of(warps[w])[pick_lane(warps[w].ready)];
  }
  return nullptr;
}

inline std::string where(const Thread& thread) {
  char text[400];
  const unsigned number = number_of(thread);
  if (number >= num_threads) {
    snprintf(text, sizeof text, "not launched (the block has %u threads)", num_threads);
  } else if (thread.state == AT_BARRIER) {
    snprintf(text, sizeof text, "at __syncthreads %s:%d", thread.file, thread.line);
  } else if (thread.state == AT_COLLECTIVE) {
    snprintf(text, sizeof text, "at %s(mask %08x) %s:%d", kind_names[thread.kind], thread.mask, thread.file,
             thread.line);
  } else {
    return thread.state == EXITED ? "exited" : "running";
  }
  return text;
}

[[noreturn]] inline void fail_deadlocked() {
  constexpr unsigned MAX_LINES = 40;
  std::string report = "deadlock: no thread of the block can go on";
  unsigned first = 0;
  for (unsigned t = 1, lines = 0; t <= num_threads && lines < MAX_LINES; t++) {
    if (t < num_threads && where(threads[t]) == where(threads[first])) continue;
    report +=
        "\n  threads " + std::to_string(first) + "-" + std::to_string(t - 1) + " " + where(threads[first]);
    first = t;
    lines++;
  }
  fail("%s", report.c_str());
}

// Lets others run until the calling thread is ready and picked again.
inline void yield() {
  Thread* next = next_ready(*self().warp);
  if (!next) fail_deadlocked();
  if (next != current) switch_to(*next);
}

}  // namespace simt
