// What kernels need beside CUDA C++ itself, for NVRTC and for running them on the CPU (tests/simt).
//
//   SIMT_SHARED(uint4, stage, [8][33]);  memory shared by a block: __shared__ uint4 stage[8][33]
//   SIMT_DYNAMIC_SHARED(uint4, ring);    the launch's dynamic shared memory, uint4* ring
//   cp_async<16>(to, from);              the calling thread's copy of 4, 8 or 16 bytes, aligned to as many,
//   cp_async<16>(to, from, n);           from global to shared memory; n bytes are read, zeros follow
//   cp_async_commit();                   closes a group of copies
//   cp_async_wait<N>();                  waits until all but this thread's N latest groups are there;
//                                        other lanes see the bytes after __syncwarp() or __syncthreads()
#pragma once

#include "integers.h"

#ifdef SIMT_HOST
#include "simt.h"

template <int BYTES>
inline void cp_async(void* to, const void* from, SIMT_CALLER) {
  simt::cp_async(to, from, BYTES, BYTES, caller_file, caller_line);
}
template <int BYTES>
inline void cp_async(void* to, const void* from, int num_bytes, SIMT_CALLER) {
  simt::cp_async(to, from, BYTES, num_bytes, caller_file, caller_line);
}
inline void cp_async_commit() { simt::cp_async_commit(); }
template <int GROUPS>
inline void cp_async_wait() {
  simt::cp_async_wait(GROUPS);
}

#else
#define SIMT_SHARED(type, name, dimensions) __shared__ type name dimensions
#define SIMT_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

template <int BYTES>
__device__ __forceinline__ void cp_async(void* to, const void* from, int num_bytes) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (BYTES == 16) {  // past L1, which only whole lines of a row would use
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(num_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(BYTES),
                 "r"(num_bytes)
                 : "memory");
  }
}
template <int BYTES>
__device__ __forceinline__ void cp_async(void* to, const void* from) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(BYTES) : "memory");
  }
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
#endif
