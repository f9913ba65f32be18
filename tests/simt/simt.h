// CUDA C++ for a host compiler: what a kernel file sees when it is compiled with -DSIMT_HOST.
//
// Every CUDA thread is a fiber (simt.cpp). Shuffles, votes and barriers are real rendezvous: a divergent
// one, a wrong mask or a deadlock is an error that names thread and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

struct uint2 {
  unsigned x, y;
} __attribute__((aligned(8)));
struct uint3 {
  unsigned x, y, z;
};
struct uint4 {
  unsigned x, y, z, w;
} __attribute__((aligned(16)));
struct int2 {
  int x, y;
} __attribute__((aligned(8)));
struct int4 {
  int x, y, z, w;
} __attribute__((aligned(16)));
struct ulonglong2 {
  unsigned long long x, y;
} __attribute__((aligned(16)));
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

// Default arguments that hold the line of the call.
#define SIMT_CALLER const char *caller_file = __builtin_FILE(), int caller_line = __builtin_LINE()

namespace simt {

struct Lane {
  uint3 tid;
  unsigned lane;
};
extern Lane* current;
extern uint3 block_index, block_size, grid_size;

enum Kind {
  SHFL_IDX,
  SHFL_UP,
  SHFL_DOWN,
  SHFL_XOR,
  BALLOT,
  ANY,
  ALL,
  SYNCWARP,
  MATCH_ANY,
  REDUCE_ADD,
  REDUCE_MIN,
  REDUCE_MAX,
  REDUCE_AND,
  REDUCE_OR,
  REDUCE_XOR,
  NUM_KINDS
};
uint64_t collective(Kind kind, unsigned mask, uint64_t value, int arg, int width, const char* file, int line);

enum BarrierKind { BARRIER, BARRIER_OR, BARRIER_AND, BARRIER_COUNT };
int barrier(BarrierKind kind, int predicate, const char* file, int line);

void* shared_variable(int* id, size_t bytes, size_t align, const char* name);
void* dynamic_shared();
void cp_async(void* to, const void* from, int bytes, int bytes_read, const char* file, int line);
void cp_async_commit();
void cp_async_wait(int keep);
void record_read(const void* from, size_t bytes);
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

template <class T>
struct Identity {
  typedef T type;
};
template <class T>
using identity_t = typename Identity<T>::type;  // a parameter that takes no part in deduction

template <class T>
inline uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "shuffle of a 4- or 8-byte type");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
inline T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline T recorded(const T* from) {
  record_read(from, sizeof(T));
  return *from;
}

// Calls a kernel with arguments given as cuLaunchKernel takes them, one pointer to each value.
template <class... A, size_t... I>
inline void call_with(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(arguments[I])...);
}
template <class... A>
inline void call(void (*kernel)(A...), void** arguments) {
  call_with(kernel, arguments, std::index_sequence_for<A...>{});
}
// Per argument of the kernel its bytes, negative for a pointer; returns how many there are.
template <class... A>
inline size_t argument_sizes(void (*)(A...), int64_t* out) {
  const int64_t sizes[] = {(std::is_pointer<A>::value ? -1 : 1) * static_cast<int64_t>(sizeof(A))..., 0};
  std::memcpy(out, sizes, sizeof...(A) * sizeof(int64_t));
  return sizeof...(A);
}

}  // namespace simt

#define SIMT_EXPORT(kernel)                                                                          \
  extern "C" __attribute__((visibility("default"))) void simt_call_##kernel(void** arguments) {      \
    simt::call(kernel, arguments);                                                                   \
  }                                                                                                  \
  extern "C" __attribute__((visibility("default"))) size_t simt_arguments_##kernel(int64_t* sizes) { \
    return simt::argument_sizes(kernel, sizes);                                                      \
  }

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline  // not more: the compiler is four times as fast
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __constant__ static const
#define threadIdx (::simt::current->tid)
#define blockIdx (::simt::block_index)
#define blockDim (::simt::block_size)
#define gridDim (::simt::grid_size)
constexpr int warpSize = 32;

#define SIMT_SHARED(type, name, dimensions)           \
  typedef type name##_simt_t dimensions;              \
  static int name##_simt_id = -1;                     \
  name##_simt_t& name = *static_cast<name##_simt_t*>( \
      ::simt::shared_variable(&name##_simt_id, sizeof(name##_simt_t), alignof(name##_simt_t), #name))
#define SIMT_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::simt::dynamic_shared())

#include "simt_intrinsics.h"
