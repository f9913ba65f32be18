// simt.cpp -- runtime for simt.h. Compile WITHOUT -fsanitize=address/thread (pass SIMT_ASAN / SIMT_TSAN
// instead) and WITH -fsanitize=memory for MSan builds. One OS thread; blocks run one after another.
#include "simt.h"
#include <sys/mman.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>
#ifdef SIMT_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void**, const void*, size_t);
void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
void __asan_poison_memory_region(const volatile void*, size_t);
void __asan_unpoison_memory_region(const volatile void*, size_t);
void* __asan_region_is_poisoned(void*, size_t);
}
#endif
#ifdef SIMT_TSAN
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_set_fiber_name(void*, const char*);
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#define ACQ(p) __tsan_acquire(p)
#define REL(p) __tsan_release(p)
#else
#define ACQ(p) ((void)0)
#define REL(p) ((void)0)
#endif
#ifdef SIMT_MSAN
extern "C" void __msan_poison(const volatile void*, size_t);
extern "C" void __msan_unpoison(const volatile void*, size_t);
#endif
#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
extern "C" void simt_switch(void** save, void* to);
asm(".text\n.globl simt_switch\n.hidden simt_switch\n.type simt_switch,@function\nsimt_switch:\n"
    " pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
    " movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
    " popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n"
    ".size simt_switch,.-simt_switch\n");
#else
#include <ucontext.h>
#endif

namespace simt {
namespace {
constexpr size_t STACK = 256 << 10, SMEM_MAX = 228 << 10, GAP = 64;
constexpr unsigned MAXT = 1024;
enum State { READY, WARP, BLOCK, DONE };
const char* const kind_name[NUM_KINDS] = {
    "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",  "__ballot_sync",
    "__any_sync",        "__all_sync",        "__syncwarp",        "__match_any_sync", "__reduce_add_sync",
    "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};
struct Read {
  uint64_t at, bytes;
};
std::vector<Read> reads;
const char* watched;
uint64_t watched_bytes;
struct Copy {
  void* dst;
  const void* src;
  int n, sn;
};
// Happens-before objects for TSan, two used in turn so that a thread late to leave one rendezvous does not
// pick up what others did after it.
struct Sync {
  char s[2];
  int turn;
  unsigned mask;
};
struct Warp {
  uint32_t ready, done, wait_warp, wait_block;
  std::vector<Sync*> syncs;
};
Sync* sync_of(Warp& w, unsigned mask) {
  for (Sync* s : w.syncs)
    if (s->mask == mask) return s;
  w.syncs.push_back(new Sync{{0, 0}, 0, mask});
  return w.syncs.back();
}
struct LaneX : Lane {
  void* sp = nullptr;
  char* stack = nullptr;
  Warp* warp = nullptr;
  State st = DONE;
  Kind kind;
  unsigned mask;
  uint64_t val, result;
  int arg, width;
  const char* file;
  int line;
  std::vector<Copy> copies;
  std::vector<size_t> groups;
  size_t copies_done = 0;
  void *fake = nullptr, *tsan = nullptr;
#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
  ucontext_t uc;
#endif
};
#ifdef SIMT_TSAN
constexpr unsigned SETS =
    2;  // neighbouring blocks run on different fibers, so that TSan sees races between blocks
#else
constexpr unsigned SETS = 1;
#endif
LaneX lane_sets[SETS][MAXT], mainx, *lanes = lane_sets[0];
Warp warps[MAXT / 32];
unsigned nthreads, nwarps, alive, arrived;
int bar_op, bar_acc;
const char* bar_file;
int bar_line;
Sync block_sync;
char start_sync, end_sync, set_start[SETS], set_end[SETS];
unsigned set;
#ifdef SIMT_TSAN
void* courier[SETS];  // carries happens-before from a block to the next of the same set, and to no other
#endif
void (*kernel)(void**);
void** kargs;
constexpr size_t ARENA = SMEM_MAX + 64 * GAP;
alignas(128) char arenas[SETS][ARENA];
char* arena = arenas[0];
size_t arena_top, dyn_bytes, dyn_off, static_bytes;
struct Slot {
  size_t off, n;
};
std::vector<Slot> slots;
std::vector<int*> slot_ids;
std::string error;
bool failed;
const void* main_bottom;
size_t main_size;  // ASan: the OS thread's own stack
uint64_t rng, n_collectives, n_switches;
struct Opts {
  int order, seed, poison, eager_copies, strict;
} opt = {0, 1, 0xA5, 0, 1};

inline uint32_t rnd() {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return (uint32_t)(rng >> 16);
}
unsigned pick_bit(uint32_t m) {
  if (opt.order == 0) return __builtin_ctz(m);
  if (opt.order == 1) return 31 - __builtin_clz(m);
  for (int k = rnd() % __builtin_popcount(m); k; k--) m &= m - 1;
  return __builtin_ctz(m);
}
LaneX* next_lane(Warp* w0) {
  if (opt.order != 2 && w0->ready) return &lanes[(w0 - warps) * 32 + pick_bit(w0->ready)];
  unsigned s = opt.order == 2 ? rnd() % nwarps : (unsigned)(w0 - warps);
  for (unsigned i = 0; i < nwarps; i++) {
    unsigned wi = opt.order == 1 ? (s + nwarps - i) % nwarps : (s + i) % nwarps;
    if (warps[wi].ready) return &lanes[wi * 32 + pick_bit(warps[wi].ready)];
  }
  return nullptr;
}
void switch_to(LaneX* to) {
  LaneX* from = static_cast<LaneX*>(cur);
  cur = to;
  n_switches++;
#ifdef SIMT_ASAN
  __sanitizer_start_switch_fiber(&from->fake, to == &mainx ? main_bottom : to->stack,
                                 to == &mainx ? main_size : STACK);
#endif
#ifdef SIMT_TSAN
  __tsan_switch_to_fiber(to->tsan, 1);  // 1: no happens-before from a mere switch
#endif
#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
  simt_switch(&from->sp, to->sp);
#else
  swapcontext(&from->uc, &to->uc);
#endif
#ifdef SIMT_ASAN
  const void* b;
  size_t n;
  __sanitizer_finish_switch_fiber(from->fake, &b, &n);
#endif
}
const char* where(const LaneX& l, char* buf, size_t n) {
  unsigned t = (unsigned)(&l - lanes);
  if (t >= nthreads)
    snprintf(buf, n, "not launched (block has %u threads)", nthreads);
  else if (l.st == DONE)
    snprintf(buf, n, "exited");
  else if (l.st == BLOCK)
    snprintf(buf, n, "at __syncthreads %s:%d", l.file, l.line);
  else if (l.st == WARP)
    snprintf(buf, n, "at %s(mask %08x) %s:%d", kind_name[l.kind], l.mask, l.file, l.line);
  else
    snprintf(buf, n, "running");
  return buf;
}
[[noreturn]] void deadlock() {
  std::string s = "deadlock: no thread of the block can go on";
  char b[400], w[300];
  int lines = 0;
  std::string last;
  unsigned from = 0;
  for (unsigned t = 0; t <= nthreads && lines < 40; t++) {
    std::string now = t < nthreads ? where(lanes[t], w, sizeof w) : "";
    if (t && now != last) {
      snprintf(b, sizeof b, "\n  threads %u-%u %s", from, t - 1, last.c_str());
      s += b;
      lines++;
      from = t;
    }
    last = now;
  }
  fail("%s", s.c_str());
}
void yield() {
  LaneX* me = static_cast<LaneX*>(cur);
  LaneX* n = next_lane(me->warp);
  if (!n) deadlock();
  if (n != me) switch_to(n);
}
void finish(Warp& w, uint32_t need) {
  LaneX* L = &lanes[(&w - warps) * 32];
  LaneX& f = L[__builtin_ctz(need)];
  uint32_t pred = 0, sum = 0, orr = 0, andd = ~0u, xorr = 0, least = ~0u, most = 0;
  char b1[300], b2[300];
  for (uint32_t m = need; m; m &= m - 1) {
    LaneX& l = L[__builtin_ctz(m)];
    if (l.kind != f.kind ||
        (opt.strict && l.kind != SYNCWARP && (l.line != f.line || strcmp(l.file, f.file))))
      fail("divergent collective: thread %d %s, thread %d %s", (int)(&f - lanes), where(f, b1, 300),
           (int)(&l - lanes), where(l, b2, 300));
    if (f.kind == BALLOT || f.kind == ANY || f.kind == ALL) {
      if (l.val) pred |= 1u << l.laneid;
    } else {
      const uint32_t v = (uint32_t)l.val;
      sum += v;
      orr |= v;
      andd &= v;
      xorr ^= v;
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
  }
  for (uint32_t m = need; m; m &= m - 1) {
    LaneX& l = L[__builtin_ctz(m)];
    if (f.kind <= SHFL_XOR) {
      int W = l.width, me = (int)l.laneid, base = me & ~(W - 1), src;
      if (W < 1 || W > 32 || (W & (W - 1)))
        fail("%s:%d shuffle width %d is not a power of two up to 32", l.file, l.line, W);
      int a = l.arg & 31;
      if (f.kind == SHFL_IDX)
        src = base | (a & (W - 1));
      else if (f.kind == SHFL_UP)
        src = me - a < base ? me : me - a;
      else if (f.kind == SHFL_DOWN)
        src = me + a > base + W - 1 ? me : me + a;
      else
        src = (me ^ a) > base + W - 1 ? me : (me ^ a);
      if (!(need >> src & 1))
        fail("%s:%d %s: thread %d reads lane %d, which is not taking part (mask %08x; it is %s)", l.file,
             l.line, kind_name[l.kind], (int)(&l - lanes), src, l.mask, where(L[src], b1, 300));
      l.result = L[src].val;
    } else if (f.kind == BALLOT)
      l.result = pred;
    else if (f.kind == ANY)
      l.result = pred != 0;
    else if (f.kind == ALL)
      l.result = pred == need;
    else if (f.kind == REDUCE_ADD)
      l.result = sum;
    else if (f.kind == REDUCE_OR)
      l.result = orr;
    else if (f.kind == REDUCE_AND)
      l.result = andd;
    else if (f.kind == REDUCE_XOR)
      l.result = xorr;
    else if (f.kind == REDUCE_MIN)
      l.result = least;
    else if (f.kind == REDUCE_MAX)
      l.result = most;
    else if (f.kind == MATCH_ANY) {
      l.result = 0;
      for (uint32_t n = need; n; n &= n - 1)
        if (L[__builtin_ctz(n)].val == l.val) l.result |= n & -n;
    }
    l.st = READY;
  }
  w.wait_warp &= ~need;
  w.ready |= need;
  n_collectives++;
#ifdef SIMT_TSAN
  if (f.kind == SYNCWARP) sync_of(w, f.mask)->turn ^= 1;
#endif
}
bool try_finish(Warp& w, unsigned mask) {
  uint32_t need = mask & ~w.done;
  if (!need || (w.wait_warp & need) != need) return false;
  LaneX* L = &lanes[(&w - warps) * 32];
  for (uint32_t m = need; m; m &= m - 1)
    if (L[__builtin_ctz(m)].mask != mask) return false;
  finish(w, need);
  return true;
}
void finish_barrier() {
  for (unsigned i = 0; i < nwarps; i++) {
    for (uint32_t m = warps[i].wait_block; m; m &= m - 1) {
      LaneX& l = lanes[i * 32 + __builtin_ctz(m)];
      l.st = READY;
      l.result = bar_acc;
    }
    warps[i].ready |= warps[i].wait_block;
    warps[i].wait_block = 0;
  }
  arrived = 0;
  n_collectives++;
  block_sync.turn ^= 1;
}
void do_copies(LaneX* l, size_t upto) {
  for (; l->copies_done < upto; l->copies_done++) {
    Copy& c = l->copies[l->copies_done];
    memcpy(c.dst, c.src, (size_t)c.sn);
    if (c.sn < c.n) memset((char*)c.dst + c.sn, 0, (size_t)(c.n - c.sn));
  }
}
void lane_main() {
#ifdef SIMT_ASAN
  const void* b;
  size_t n;
  __sanitizer_finish_switch_fiber(nullptr, &b, &n);
  if (!main_bottom) {
    main_bottom = b;
    main_size = n;
  }
#endif
  for (;;) {
    LaneX* me = static_cast<LaneX*>(cur);
    ACQ(&start_sync);
    ACQ(&set_start[set]);
    kernel(kargs);
    do_copies(me, me->copies.size());
    REL(&set_end[set]);
    REL(&end_sync);
    me->copies.clear();
    me->groups.clear();
    me->copies_done = 0;
    uint32_t bit = 1u << me->laneid;
    Warp& w = *me->warp;
    me->st = DONE;
    w.ready &= ~bit;
    w.done |= bit;
    alive--;
    for (uint32_t m = w.wait_warp; m; m &= m - 1) {
      unsigned l = __builtin_ctz(m);
      if (w.wait_warp >> l & 1) try_finish(w, lanes[(&w - warps) * 32 + l].mask);
    }
    if (alive && arrived == alive) finish_barrier();
    if (!alive)
      switch_to(&mainx);
    else {
      LaneX* nx = next_lane(me->warp);
      if (!nx) deadlock();
      switch_to(nx);
    }
  }
}
void init_lane(LaneX& l, unsigned t) {
  if (!l.stack) {
    char* p = (char*)mmap(nullptr, STACK + 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      perror("mmap");
      abort();
    }
    mprotect(p, 4096, PROT_NONE);
    l.stack = p + 4096;
  }
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(l.stack, STACK);
#endif
  l.fake = nullptr;
  l.copies.clear();
  l.groups.clear();
  l.copies_done = 0;
#ifdef SIMT_TSAN
  if (!l.tsan) {
    l.tsan = __tsan_create_fiber(0);
    char n[32];
    snprintf(n, 32, "cuda thread %u", t);
    __tsan_set_fiber_name(l.tsan, n);
  }
#endif
#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
  // rsp % 16 == 8 on entry to lane_main, as after a call; stack tops are spread over the L1 sets
  void** top = (void**)(l.stack + STACK - 72 - (size_t)t * 448 % 16384);
  top[0] = nullptr;
  *--top = (void*)lane_main;  // popped by ret
  for (int i = 0; i < 6; i++) *--top = nullptr;
  l.sp = top;
#else
  getcontext(&l.uc);
  l.uc.uc_stack.ss_sp = l.stack;
  l.uc.uc_stack.ss_size = STACK;
  l.uc.uc_link = nullptr;
  makecontext(&l.uc, lane_main, 0);
#endif
}
// Not memset: TSan would take an intercepted fill for an access by the running CUDA thread.
void fill(char* p, size_t n) {
  volatile char* q = p;
  for (size_t i = 0; i < n; i++) q[i] = (char)opt.poison;
}
unsigned inited;
void reset_shared(size_t from) {
  for (size_t i = from; i < slots.size(); i++) {
    Slot& s = slots[i];
    fill(arena + s.off, s.n);
#ifdef SIMT_MSAN
    __msan_poison(arena + s.off, s.n);
#endif
  }
}
size_t arena_alloc(size_t n, size_t align) {
  size_t off = (arena_top + align - 1) & ~(align - 1);
  if (off + n + GAP > ARENA) fail("out of shared memory");
  arena_top = (off + n + GAP + 15) & ~size_t(15);
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(arena + off, n);
#endif
  slots.push_back({off, n});
  reset_shared(slots.size() - 1);
  return off;
}
}  // namespace

Lane* cur = &mainx;
uint3 block_idx, block_dim, grid_dim;

void fail(const char* fmt, ...) {
  char b[6000];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(b, sizeof b, fmt, ap);
  va_end(ap);
  char h[200];
  if (cur != &mainx)
    snprintf(h, sizeof h, "block (%u,%u,%u) thread (%u,%u,%u): ", block_idx.x, block_idx.y, block_idx.z,
             cur->tid.x, cur->tid.y, cur->tid.z);
  else
    h[0] = 0;
  error = std::string(h) + b;
  failed = true;
  REL(&end_sync);
  if (cur != &mainx) switch_to(&mainx);  // the lanes are abandoned and rebuilt at the next launch
  fprintf(stderr, "simt: %s\n", error.c_str());
  abort();
}
uint64_t collective(Kind k, unsigned mask, uint64_t val, int arg, int width, const char* file, int line) {
  LaneX* me = static_cast<LaneX*>(cur);
  Warp& w = *me->warp;
  uint32_t bit = 1u << me->laneid;
  if (!(mask & bit))
    fail("%s:%d %s: the calling lane %u is not in its own mask %08x", file, line, kind_name[k], me->laneid,
         mask);
  me->kind = k;
  me->mask = mask;
  me->val = val;
  me->arg = arg;
  me->width = width;
  me->file = file;
  me->line = line;
  me->st = WARP;
  w.ready &= ~bit;
  w.wait_warp |= bit;
#ifdef SIMT_TSAN
  char* hb = nullptr;
  if (k == SYNCWARP) {
    Sync* s = sync_of(w, mask);
    hb = &s->s[s->turn];
    REL(hb);
  }  // shuffles and votes order no memory
#endif
  if (!try_finish(w, mask) || opt.order == 2) yield();
#ifdef SIMT_TSAN
  if (hb) ACQ(hb);
#endif
  return me->result;
}
int barrier(BarrierKind op, int pred, const char* file, int line) {
  LaneX* me = static_cast<LaneX*>(cur);
  Warp& w = *me->warp;
  uint32_t bit = 1u << me->laneid;
  me->file = file;
  me->line = line;
  me->st = BLOCK;
  if (!arrived) {
    bar_op = op;
    bar_file = file;
    bar_line = line;
    bar_acc = op == 2;
  } else if (op != bar_op || (opt.strict && (line != bar_line || strcmp(file, bar_file))))
    fail("divergent barrier: this thread is at __syncthreads %s:%d while others wait at %s:%d", file, line,
         bar_file, bar_line);
  bar_acc = op == 1 ? (bar_acc | pred) : op == 2 ? (bar_acc & pred) : op == 3 ? bar_acc + pred : 0;
  w.ready &= ~bit;
  w.wait_block |= bit;
  arrived++;
  char* hb = &block_sync.s[block_sync.turn];
  (void)hb;
  REL(hb);
  if (arrived == alive) {
    finish_barrier();
    if (opt.order == 2) yield();
  } else
    yield();
  ACQ(hb);
  return (int)me->result;
}
void* shared_slot(int* id, size_t n, size_t align, const char* name) {
  if (*id < 0) {
    size_t tot = n;
    for (auto& s : slots) tot += s.n;
    if (static_bytes + n > 48 << 10) fail("static shared memory over 48 KiB at %s", name);
    static_bytes += n;
    arena_alloc(n, align < 16 ? 16 : align);
    *id = (int)slots.size() - 1;
    slot_ids.push_back(id);
  }
  return arena + slots[(size_t)*id].off;
}
void* dynamic_shared() { return arena + dyn_off; }
void cp_async(void* dst, const void* src, int n, int sn, const char* file, int line) {
  LaneX* me = static_cast<LaneX*>(cur);
  if ((n != 4 && n != 8 && n != 16) || sn < 0 || sn > n)
    fail("%s:%d cp.async of %d (%d) bytes", file, line, n, sn);
  if ((uintptr_t)dst % (size_t)n || (uintptr_t)src % (size_t)n)
    fail("%s:%d cp.async: %p <- %p not aligned to %d bytes", file, line, dst, src, n);
  if ((char*)dst < arena || (char*)dst + n > arena + ARENA)
    fail("%s:%d cp.async: destination is not shared memory", file, line);
#ifdef SIMT_ASAN
  // Looked at now, because the copy itself is made later and far from this line.
  if (sn && __asan_region_is_poisoned(const_cast<void*>(src), (size_t)sn))
    fail("%s:%d cp.async reads %d bytes out of bounds at %p", file, line, sn, src);
  if (__asan_region_is_poisoned(dst, (size_t)n))
    fail("%s:%d cp.async writes %d bytes out of bounds at %p", file, line, n, dst);
#endif
  if (sn) record_read(src, (size_t)sn);
  me->copies.push_back({dst, src, n, sn});
  if (opt.eager_copies) do_copies(me, me->copies.size());
}
// Reads of the watched buffer, in the order in which they were made.
void record_read(const void* from, size_t bytes) {
  const uint64_t at = (uint64_t)((const char*)from - watched);
  if (at < watched_bytes) reads.push_back({at, bytes});
}
void cp_async_commit() {
  LaneX* me = static_cast<LaneX*>(cur);
  me->groups.push_back(me->copies.size());
}
void cp_async_wait(int keep) {
  LaneX* me = static_cast<LaneX*>(cur);
  if ((int)me->groups.size() > keep) do_copies(me, me->groups[me->groups.size() - 1 - (size_t)keep]);
  if (keep == 0 && me->copies_done == me->copies.size()) {
    me->copies.clear();
    me->groups.clear();
    me->copies_done = 0;
  }
}
}  // namespace simt

using namespace simt;
extern "C" void simt_watch(const void* from, uint64_t bytes) {
  watched = (const char*)from;
  watched_bytes = bytes;
  reads.clear();
}
extern "C" uint64_t simt_num_reads() { return reads.size(); }
extern "C" void simt_reads(uint64_t* out) { memcpy(out, reads.data(), reads.size() * sizeof(Read)); }
extern "C" const char* simt_error() { return error.c_str(); }
extern "C" void simt_stats(uint64_t* out) {
  out[0] = n_collectives;
  out[1] = n_switches;
  out[2] = static_bytes;
}
extern "C" void simt_options(const int* o) { memcpy(&opt, o, sizeof opt); }
extern "C" int simt_launch(void (*fn)(void**), unsigned grid, unsigned block, size_t dyn, void** args) {
  error.clear();
  failed = false;
  nthreads = block;
  nwarps = (nthreads + 31) / 32;
  if (!nthreads || nthreads > MAXT) {
    error = "block size must be 1 to 1024 threads";
    return 1;
  }
  if (dyn > SMEM_MAX) {
    error = "too much dynamic shared memory";
    return 1;
  }
  grid_dim = {grid, 1, 1};
  block_dim = {block, 1, 1};
  kernel = fn;
  kargs = args;
  rng = 0x9E3779B97F4A7C15ull * (uint64_t)(opt.seed + 1) | 1;
  n_collectives = n_switches = 0;
  for (int* id : slot_ids) *id = -1;
  slot_ids.clear();
  slots.clear();
  arena_top = GAP;
  static_bytes = 0;
#ifdef SIMT_ASAN
  __asan_poison_memory_region(arena, ARENA);
#endif
  dyn_off = arena_alloc(dyn, 128);
#ifdef SIMT_TSAN
  mainx.tsan = __tsan_get_current_fiber();
#endif
  for (; inited < nthreads; inited++)
    for (auto& s : lane_sets) init_lane(s[inited], inited);
  REL(&start_sync);
  const uint64_t num_blocks = grid;
  uint64_t step =
      opt.order == 2 && num_blocks > 1 ? rnd() % num_blocks | 1 : 1;  // random: a walk through all blocks
  while (std::gcd(step, num_blocks) != 1) step++;
  uint64_t next = opt.order == 2 ? rnd() % (num_blocks ? num_blocks : 1) : 0;
  for (uint64_t i = 0; i < num_blocks; i++, next = (next + step) % num_blocks) {
    const uint64_t block_number = opt.order == 1 ? num_blocks - 1 - i : next;
    block_idx = {(unsigned)block_number, 0, 0};
    set = (unsigned)(i % SETS);
    lanes = lane_sets[set];
    arena = arenas[set];
#ifdef SIMT_TSAN
    if (!courier[set]) courier[set] = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(courier[set], 1);
    ACQ(&set_end[set]);
    REL(&set_start[set]);
    __tsan_switch_to_fiber(mainx.tsan, 1);
#endif
    if (i) reset_shared(0);
    alive = nthreads;
    arrived = 0;
    for (unsigned w = 0; w < nwarps; w++) {
      unsigned n = nthreads - w * 32;
      uint32_t have = n >= 32 ? ~0u : (1u << n) - 1;
      warps[w].ready = have;
      warps[w].done = ~have;
      warps[w].wait_warp = warps[w].wait_block = 0;
    }
    for (unsigned t = 0; t < nthreads; t++) {
      LaneX& l = lanes[t];
      l.tid = {t, 0, 0};
      l.laneid = t & 31;
      l.warp = &warps[t / 32];
      l.st = READY;
    }
    switch_to(next_lane(&warps[0]));
    if (failed) {
      ACQ(&end_sync);
      inited = 0;
      cur = &mainx;
      return 1;
    }
  }
  ACQ(&end_sync);
  return 0;
}
