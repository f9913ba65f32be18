// One deliberate bug per kernel (and its correct twin): what does each check of the harness catch?
#include "cuda/prelude.cuh"
#define FULL 0xffffffffu
extern "C" __global__ void ok_exchange(uint32_t* o) {  // neighbour exchange through shared memory, correct
  SIMT_SHARED(uint32_t, s, [64]);
  s[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x ^ 33];
}
extern "C" __global__ void missing_syncthreads(uint32_t* o) {
  SIMT_SHARED(uint32_t, s, [64]);
  s[threadIdx.x] = threadIdx.x * 3;
  o[threadIdx.x] = s[threadIdx.x ^ 33];
}
extern "C" __global__ void missing_syncwarp(uint32_t* o) {
  SIMT_SHARED(uint32_t, s, [64]);
  s[threadIdx.x] = threadIdx.x * 3;
  o[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void shuffle_is_no_fence(
    uint32_t* o) {  // orders execution in practice, but not memory by the rules
  SIMT_SHARED(uint32_t, s, [64]);
  s[threadIdx.x] = threadIdx.x * 3;
  __shfl_sync(FULL, 1, 0);
  o[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void divergent_shuffle(uint32_t* o) {
  uint32_t v = threadIdx.x;
  if (threadIdx.x & 1)
    v = __shfl_up_sync(FULL, v, 1);
  else
    v = __shfl_down_sync(FULL, v, 1);
  o[threadIdx.x] = v;
}
extern "C" __global__ void shuffle_in_branch(
    uint32_t* o) {  // half a warp never gets there: hangs or is undefined on a GPU
  uint32_t v = threadIdx.x;
  if (threadIdx.x & 1) v = __shfl_up_sync(FULL, v, 1);
  __syncthreads();
  o[threadIdx.x] = v;
}
extern "C" __global__ void shuffle_from_exited(uint32_t* o) {
  if (threadIdx.x % 32 < 2) return;
  o[threadIdx.x] = __shfl_sync(FULL, threadIdx.x, 0);
}
extern "C" __global__ void not_in_own_mask(uint32_t* o) {
  o[threadIdx.x] = __shfl_sync(0xffffu, threadIdx.x, 0);
}
extern "C" __global__ void barrier_in_branch(uint32_t* o) {
  if (threadIdx.x < 32)
    __syncthreads();
  else {
    o[0] = 1;
    __syncthreads();
  }
  o[threadIdx.x] = 1;
}
extern "C" __global__ void barrier_missed(uint32_t* o) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncwarp(threadIdx.x < 32 ? FULL : FULL);
  o[threadIdx.x] = 1;
}
extern "C" __global__ void global_oob(uint32_t* o) { o[threadIdx.x + 1] = 1; }
extern "C" __global__ void shared_oob(uint32_t* o) {
  SIMT_SHARED(uint32_t, s, [63]);
  s[threadIdx.x] = 1;
  o[threadIdx.x] = 1;
}
extern "C" __global__ void misaligned_uint4(uint32_t* o) {
  if (threadIdx.x == 1) *(uint4*)(o + 1) = make_uint4(1, 2, 3, 4);
}
extern "C" __global__ void shift_32(uint32_t* o) {
  uint32_t n = 32 - (threadIdx.x & 31);
  o[threadIdx.x] = 1u << n;
}
extern "C" __global__ void signed_overflow(uint32_t* o) {
  int v = 0x7fffffff;
  o[threadIdx.x] = (uint32_t)(v + (int)threadIdx.x);
}
extern "C" __global__ void shared_uninit(uint32_t* o) {
  SIMT_SHARED(uint32_t, s, [64]);
  if (threadIdx.x < 63) s[threadIdx.x] = 7;
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void output_hole(uint32_t* o) {
  if (threadIdx.x != 5) o[threadIdx.x] = 1;
}
extern "C" __global__ void local_uninit(uint32_t* o) {
  uint32_t v;
  if (threadIdx.x < 40) v = 3;
  o[threadIdx.x] = v;
}
extern "C" __global__ void cp_async_no_wait(const uint4* in, uint32_t* o) {
  SIMT_SHARED(uint4, s, [64]);
  cp_async<16>(&s[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  o[threadIdx.x] = ((uint32_t*)s)[threadIdx.x * 4];
}
extern "C" __global__ void cp_async_no_sync(const uint4* in,
                                            uint32_t* o) {  // waits, but only for its own copies
  SIMT_SHARED(uint4, s, [64]);
  cp_async<16>(&s[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  o[threadIdx.x] = ((uint32_t*)s)[(threadIdx.x ^ 1) * 4];
}
extern "C" __global__ void cp_async_reuse(
    const uint4* in, uint32_t* o) {  // second copy lands in a buffer that is still being read
  SIMT_SHARED(uint4, s, [64]);
  cp_async<16>(&s[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  cp_async<16>(&s[threadIdx.x], in + 64 + threadIdx.x);
  cp_async_commit();
  o[threadIdx.x] = ((uint32_t*)s)[(threadIdx.x ^ 1) * 4];
  cp_async_wait<0>();
}
extern "C" __global__ void block_race(uint32_t* o) { o[threadIdx.x] = blockIdx.x; }
extern "C" __global__ void lost_update(uint32_t* o) {
  if (threadIdx.x % 32 == 0) o[0] = o[0] + 1;
}
extern "C" __global__ void ok_atomic(uint32_t* o) {
  atomicAdd(&o[0], 1u);
  atomicOr(&o[1], 1u << (threadIdx.x & 31));
}
