// Runs a launch: one fiber per CUDA thread, blocks one after another, all on the calling thread.
//
// What a thread does until it meets others (runtime/collective.h, barrier.h) or exits is one piece; which
// piece comes next is decided in runtime/schedule.h. A fault ends the launch; its fibers are left behind.
#include "simt.h"

#include <cstdarg>
#include <numeric>

#include "runtime/barrier.h"
#include "runtime/collective.h"
#include "runtime/copies.h"
#include "runtime/shared_memory.h"

namespace simt {

Lane* current = &host;
uint3 block_index, block_size, grid_size;

namespace {

void (*kernel_call)(void**);
void** kernel_arguments;
unsigned num_prepared;  // fibers that may be switched to
unsigned set;           // of fibers and shared memory, that the block uses
Mark launch_start, launch_end, set_start[NUM_SETS], set_end[NUM_SETS];
#ifdef SIMT_TSAN
void* couriers[NUM_SETS];  // carry what happened in a block to the next one of its set, and to no other
#endif

void run_thread() {
  Thread& thread = self();
  acquire(launch_start);
  acquire(set_start[set]);
  kernel_call(kernel_arguments);
  make_copies(thread, thread.copies.issued.size());
  forget_copies(thread.copies);
  release(set_end[set]);
  release(launch_end);
}

void leave_block() {
  Thread& thread = self();
  Warp& warp = *thread.warp;
  const uint32_t bit = 1u << thread.lane;
  thread.state = EXITED;
  warp.ready &= ~bit;
  warp.exited |= bit;
  num_alive--;
  finish_without_exited(warp);
  if (num_alive && block_barrier.num_arrived == num_alive) finish_barrier();
  if (!num_alive) return switch_to(host);
  Thread* next = next_ready(warp);
  if (!next) fail_deadlocked();
  switch_to(*next);
}

void fiber_main() {
  enter(host.fiber);
  for (;;) {  // a fiber serves one block after another
    run_thread();
    leave_block();
  }
}

void prepare_fibers() {
#ifdef SIMT_TSAN
  host.fiber.tsan = __tsan_get_current_fiber();
  for (Warp& warp : warps) warp.meetings.reserve(256);  // a move of them would look like a race
#endif
  for (; num_prepared < num_threads; num_prepared++) {
    for (auto& threads_of_set : thread_sets) {
      prepare(threads_of_set[num_prepared].fiber, fiber_main, num_prepared);
      forget_copies(threads_of_set[num_prepared].copies);
    }
  }
}

void carry_from_previous_block() {
#ifdef SIMT_TSAN
  if (!couriers[set]) couriers[set] = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(couriers[set], 1);
  acquire(set_end[set]);
  release(set_start[set]);
  __tsan_switch_to_fiber(host.fiber.tsan, 1);
#endif
}

bool run_block(unsigned block, uint64_t number_run) {
  block_index = {block, 0, 0};
  set = static_cast<unsigned>(number_run % NUM_SETS);
  threads = thread_sets[set];
  arena = arenas[set];
  carry_from_previous_block();
  if (number_run) refill_shared();
  block_barrier.num_arrived = 0;
  start_warps();
  switch_to(*next_ready(warps[options.order == REVERSE ? num_warps - 1 : 0]));
  return error.empty();
}

// Visits 0 to num_blocks - 1, each once: upwards, downwards, or in steps of a random size.
bool run_blocks(uint64_t num_blocks) {
  uint64_t step = 1, next = 0;
  if (options.order == RANDOM) {
    step = random_number() % num_blocks + 1;
    while (std::gcd(step, num_blocks) != 1) step++;
    next = random_number() % num_blocks;
  }
  for (uint64_t i = 0; i < num_blocks; i++, next = (next + step) % num_blocks) {
    const uint64_t block = options.order == REVERSE ? num_blocks - 1 - i : next;
    if (!run_block(static_cast<unsigned>(block), i)) return false;
  }
  return true;
}

}  // namespace

void fail(const char* format, ...) {
  char text[6000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  error = text;
  if (current != &host) {
    error =
        "block " + std::to_string(block_index.x) + " thread " + std::to_string(current->tid.x) + ": " + error;
    release(launch_end);
    switch_to(host);
  }
  fprintf(stderr, "simt: %s\n", error.c_str());
  abort();
}

}  // namespace simt

using namespace simt;

#pragma GCC visibility push(default)
extern "C" {

// Returns 0, or 1 with simt_error() set.
int simt_launch(void (*call)(void**), unsigned num_blocks, unsigned block_threads, size_t dynamic_bytes,
                void** arguments) {
  error.clear();
  if (!num_blocks) error = "the grid has no blocks";
  if (!block_threads || block_threads > MAX_THREADS) error = "a block must have 1 to 1024 threads";
  if (dynamic_bytes > MAX_SHARED_BYTES) error = "too much dynamic shared memory";
  if (!error.empty()) return 1;
  kernel_call = call;
  kernel_arguments = arguments;
  grid_size = {num_blocks, 1, 1};
  block_size = {block_threads, 1, 1};
  num_threads = block_threads;
  num_warps = (num_threads + WARP_LANES - 1) / WARP_LANES;
  num_collectives = num_switches = 0;
  seed_random(options.seed);
  arena = arenas[0];
  clear_shared(dynamic_bytes);
  prepare_fibers();
  release(launch_start);
  const bool done = run_blocks(num_blocks);
  acquire(launch_end);
  if (!done) num_prepared = 0;
  current = &host;
  return !done;
}

#ifdef SIMT_ASAN
// AddressSanitizer calls this before it reports, and knows but one thread itself.
void __asan_on_error() {
  if (current != &host) fprintf(stderr, "simt: block %u thread %u:\n", block_index.x, current->tid.x);
}
#endif
const char* simt_error() { return error.c_str(); }
void simt_options(const int* words) { memcpy(&options, words, sizeof options); }
void simt_watch(const void* from, uint64_t bytes) {
  watched = static_cast<const char*>(from);
  watched_bytes = bytes;
  reads.clear();
}
uint64_t simt_num_reads() { return reads.size(); }
void simt_reads(uint64_t* pairs) { memcpy(pairs, reads.data(), reads.size() * sizeof(Read)); }
void simt_stats(uint64_t* counts) {
  counts[0] = num_collectives;
  counts[1] = num_switches;
  counts[2] = static_shared_bytes;
}

}  // extern "C"
#pragma GCC visibility pop
