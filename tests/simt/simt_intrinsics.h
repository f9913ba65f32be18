// CUDA's intrinsic functions for a host compiler. Included by simt.h alone.
#pragma once

#define SIMT_SHUFFLE(name, kind, Arg)                                                                    \
  template <class T>                                                                                     \
  inline T name(unsigned mask, T value, Arg arg, int width = 32, SIMT_CALLER) {                          \
    return simt::from_bits<T>(simt::collective(simt::kind, mask, simt::to_bits(value),                   \
                                               static_cast<int>(arg), width, caller_file, caller_line)); \
  }
SIMT_SHUFFLE(__shfl_sync, SHFL_IDX, int)
SIMT_SHUFFLE(__shfl_up_sync, SHFL_UP, unsigned)
SIMT_SHUFFLE(__shfl_down_sync, SHFL_DOWN, unsigned)
SIMT_SHUFFLE(__shfl_xor_sync, SHFL_XOR, int)
#undef SIMT_SHUFFLE

#define SIMT_VOTE(Result, name, kind)                                                         \
  inline Result name(unsigned mask, int predicate, SIMT_CALLER) {                             \
    return static_cast<Result>(                                                               \
        simt::collective(simt::kind, mask, predicate != 0, 0, 32, caller_file, caller_line)); \
  }
SIMT_VOTE(unsigned, __ballot_sync, BALLOT)
SIMT_VOTE(int, __any_sync, ANY)
SIMT_VOTE(int, __all_sync, ALL)
#undef SIMT_VOTE

#define SIMT_REDUCE(name, kind)                                                      \
  inline unsigned name(unsigned mask, unsigned value, SIMT_CALLER) {                 \
    return static_cast<unsigned>(                                                    \
        simt::collective(simt::kind, mask, value, 0, 32, caller_file, caller_line)); \
  }
SIMT_REDUCE(__reduce_add_sync, REDUCE_ADD)
SIMT_REDUCE(__reduce_min_sync, REDUCE_MIN)
SIMT_REDUCE(__reduce_max_sync, REDUCE_MAX)
SIMT_REDUCE(__reduce_and_sync, REDUCE_AND)
SIMT_REDUCE(__reduce_or_sync, REDUCE_OR)
SIMT_REDUCE(__reduce_xor_sync, REDUCE_XOR)
#undef SIMT_REDUCE

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, SIMT_CALLER) {
  return static_cast<unsigned>(
      simt::collective(simt::MATCH_ANY, mask, simt::to_bits(value), 0, 32, caller_file, caller_line));
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_CALLER) {
  simt::collective(simt::SYNCWARP, mask, 0, 0, 32, caller_file, caller_line);
}

inline void __syncthreads(SIMT_CALLER) { simt::barrier(simt::BARRIER, 0, caller_file, caller_line); }
inline int __syncthreads_or(int predicate, SIMT_CALLER) {
  return simt::barrier(simt::BARRIER_OR, predicate != 0, caller_file, caller_line);
}
inline int __syncthreads_and(int predicate, SIMT_CALLER) {
  return simt::barrier(simt::BARRIER_AND, predicate != 0, caller_file, caller_line);
}
inline int __syncthreads_count(int predicate, SIMT_CALLER) {
  return simt::barrier(simt::BARRIER_COUNT, predicate != 0, caller_file, caller_line);
}

inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value ? __builtin_clz(static_cast<unsigned>(value)) : 32; }
inline int __clzll(long long value) {
  return value ? __builtin_clzll(static_cast<unsigned long long>(value)) : 64;
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }
inline unsigned __brev(unsigned value) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= ((value >> i) & 1u) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {  // unlike in PTX's prmt, only 3 bits of each selector count
    result |= (static_cast<unsigned>(bytes >> (8 * (selectors >> (4 * i) & 7))) & 255u) << (8 * i);
  }
  return result;
}

// Loads with a hint, each recorded where the launch watches the buffer.
#define SIMT_LOAD(name)          \
  template <class T>             \
  inline T name(const T* from) { \
    return simt::recorded(from); \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcv)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD

#define SIMT_STORE(name)                               \
  template <class T>                                   \
  inline void name(T* to, simt::identity_t<T> value) { \
    *to = value;                                       \
  }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <class T>
inline T atomicAdd(T* at, simt::identity_t<T> value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicOr(T* at, simt::identity_t<T> value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicAnd(T* at, simt::identity_t<T> value) {
  return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicExch(T* at, simt::identity_t<T> value) {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicCAS(T* at, simt::identity_t<T> compare, simt::identity_t<T> value) {
  T old = compare;
  __atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
template <class T>
inline T atomicMin(T* at, simt::identity_t<T> value) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (value < old &&
         !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T>
inline T atomicMax(T* at, simt::identity_t<T> value) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

template <class T>
inline T min(T a, simt::identity_t<T> b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, simt::identity_t<T> b) {
  return a < b ? b : a;
}
