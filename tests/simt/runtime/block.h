// The block that runs: its threads, its warps, and what they wait for.
#pragma once

#include <string>
#include <vector>

#include "fiber.h"
#include "simt.h"

namespace simt {

constexpr unsigned MAX_THREADS = 1024, WARP_LANES = 32;
#ifdef SIMT_TSAN
constexpr unsigned NUM_SETS = 2;  // blocks take turns on two sets of fibers, so that races between them show
#else
constexpr unsigned NUM_SETS = 1;
#endif

enum Order { FORWARD, REVERSE, RANDOM };
struct Options {  // as kernel_launch.Options.words()
  int order, seed, fill, eager_copies, strict;
};
inline Options options = {FORWARD, 1, 0xA5, 0, 1};

enum State { READY, AT_COLLECTIVE, AT_BARRIER, EXITED };

struct Copy {  // a cp.async under way
  void* to;
  const void* from;
  size_t bytes, bytes_read;
};
struct Copies {
  std::vector<Copy> issued;
  std::vector<size_t> groups;  // how many were issued when each was committed
  size_t num_done = 0;
};

// Where a rendezvous passes on what happened before it. Two marks are used in turn, so that a thread that is
// late to leave does not pick up what others did after it.
struct Meeting {
  unsigned mask;
  Mark marks[2];
  int turn;
};

struct Warp {
  uint32_t ready, exited, at_collective, at_barrier;  // sets of lanes
  std::vector<Meeting*> meetings;                     // of __syncwarp, by mask; they stay where they are
};

struct Thread : Lane {
  Fiber fiber;
  Warp* warp = nullptr;
  State state = EXITED;
  // What it waits at, or waited at last, and what it gets there.
  Kind kind;
  unsigned mask;
  uint64_t value, result;
  int arg, width;
  const char* file;
  int line;
  Copies copies;
};

inline Thread thread_sets[NUM_SETS][MAX_THREADS];
inline Thread* threads = thread_sets[0];
inline Thread host;  // the process's own thread, as far as switching goes
inline Warp warps[MAX_THREADS / WARP_LANES];
inline unsigned num_threads, num_warps, num_alive;
inline std::string error;

inline Thread& self() { return *static_cast<Thread*>(current); }
inline Thread* lanes_of(const Warp& warp) { return &threads[(&warp - warps) * WARP_LANES]; }
inline unsigned number_of(const Thread& thread) { return static_cast<unsigned>(&thread - threads); }
inline unsigned lowest(uint32_t lanes) { return static_cast<unsigned>(__builtin_ctz(lanes)); }

// All threads of the block are ready, none has started.
inline void start_warps() {
  num_alive = num_threads;
  for (unsigned w = 0; w < num_warps; w++) {
    const unsigned left = num_threads - w * WARP_LANES;
    const uint32_t present = left >= WARP_LANES ? ~0u : (1u << left) - 1;
    warps[w].ready = present;
    warps[w].exited = ~present;
    warps[w].at_collective = warps[w].at_barrier = 0;
  }
  for (unsigned t = 0; t < num_threads; t++) {
    threads[t].tid = {t, 0, 0};
    threads[t].lane = t % WARP_LANES;
    threads[t].warp = &warps[t / WARP_LANES];
    threads[t].state = READY;
  }
}

}  // namespace simt
