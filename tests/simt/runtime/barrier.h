// __syncthreads and its votes: all threads of the block that have not exited meet.
#pragma once

#include "collective.h"

namespace simt {

struct Barrier {
  unsigned num_arrived = 0;
  BarrierKind kind;
  int vote;  // so far
  const char* file;
  int line;
  Meeting meeting;
};
inline Barrier block_barrier;

inline void finish_barrier() {
  for (unsigned w = 0; w < num_warps; w++) {
    Warp& warp = warps[w];
    for (uint32_t left = warp.at_barrier; left; left &= left - 1) {
      Thread& thread = lanes_of(warp)[lowest(left)];
      thread.state = READY;
      thread.result = static_cast<uint64_t>(block_barrier.vote);
    }
    warp.ready |= warp.at_barrier;
    warp.at_barrier = 0;
  }
  block_barrier.num_arrived = 0;
  block_barrier.meeting.turn ^= 1;
  num_collectives++;
}

int barrier(BarrierKind kind, int predicate, const char* file, int line) {
  Thread& thread = self();
  Barrier& all = block_barrier;
  thread.file = file;
  thread.line = line;
  thread.state = AT_BARRIER;
  if (!all.num_arrived) {
    all.kind = kind;
    all.file = file;
    all.line = line;
    all.vote = kind == BARRIER_AND;
  } else if (kind != all.kind || (options.strict && (line != all.line || strcmp(file, all.file)))) {
    fail("divergent barrier: this thread is at __syncthreads %s:%d while others wait at %s:%d", file, line,
         all.file, all.line);
  }
  if (kind == BARRIER_OR) all.vote |= predicate;
  if (kind == BARRIER_AND) all.vote &= predicate;
  if (kind == BARRIER_COUNT) all.vote += predicate;
  const uint32_t bit = 1u << thread.lane;
  thread.warp->ready &= ~bit;
  thread.warp->at_barrier |= bit;
  all.num_arrived++;
  Mark& mark = all.meeting.marks[all.meeting.turn];
  release(mark);
  const bool last = all.num_arrived == num_alive;
  if (last) finish_barrier();
  if (!last || options.order == RANDOM) yield();
  acquire(mark);
  return static_cast<int>(thread.result);
}

}  // namespace simt
