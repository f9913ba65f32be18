// One planted fault per kernel, and correct twins: test_planted_faults.py says which check finds each.
// All run with blocks of 64 threads; `in` has 512 words, `out` 64.
#include "cuda/prelude.cuh"

constexpr unsigned FULL = 0xffffffffu;

// Shared memory and who sees it

extern "C" __global__ void ok_exchange(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  words[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  out[threadIdx.x] = words[threadIdx.x ^ 33];
}
extern "C" __global__ void missing_syncthreads(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  words[threadIdx.x] = threadIdx.x * 3;
  out[threadIdx.x] = words[threadIdx.x ^ 33];
}
extern "C" __global__ void missing_syncwarp(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  words[threadIdx.x] = threadIdx.x * 3;
  out[threadIdx.x] = words[threadIdx.x ^ 1];
}
extern "C" __global__ void shuffle_is_no_fence(
    uint32_t* out) {  // orders execution, but by the rules no memory
  SIMT_SHARED(uint32_t, words, [64]);
  words[threadIdx.x] = threadIdx.x * 3;
  __shfl_sync(FULL, 1, 0);
  out[threadIdx.x] = words[threadIdx.x ^ 1];
}
extern "C" __global__ void shared_not_written(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  if (threadIdx.x < 63) words[threadIdx.x] = 7;
  __syncthreads();
  out[threadIdx.x] = words[threadIdx.x];
}
extern "C" __global__ void shared_left_by_last_block(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  if (blockIdx.x == 0) words[threadIdx.x] = 7;
  __syncthreads();
  atomicAdd(&out[threadIdx.x], words[threadIdx.x]);
}

// Meetings

extern "C" __global__ void ok_shuffle_after_exit(uint32_t* out) {
  if (threadIdx.x % 32 >= 16) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffu, threadIdx.x, 1);
}
extern "C" __global__ void divergent_shuffle(uint32_t* out) {
  uint32_t value = threadIdx.x;
  if (threadIdx.x & 1) {
    value = __shfl_up_sync(FULL, value, 1);
  } else {
    value = __shfl_down_sync(FULL, value, 1);
  }
  out[threadIdx.x] = value;
}
extern "C" __global__ void shuffle_in_branch(uint32_t* out) {  // half a warp never gets there
  uint32_t value = threadIdx.x;
  if (threadIdx.x & 1) value = __shfl_up_sync(FULL, value, 1);
  __syncthreads();
  out[threadIdx.x] = value;
}
extern "C" __global__ void shuffle_from_exited(uint32_t* out) {
  if (threadIdx.x % 32 < 2) return;
  out[threadIdx.x] = __shfl_sync(FULL, threadIdx.x, 0);
}
extern "C" __global__ void shuffle_outside_mask(uint32_t* out) {
  if (threadIdx.x & 1) return;
  out[threadIdx.x] = __shfl_down_sync(0x55555555u, threadIdx.x, 1);
}
extern "C" __global__ void not_in_own_mask(uint32_t* out) {
  out[threadIdx.x] = __shfl_sync(0xffffu, threadIdx.x, 0);
}
extern "C" __global__ void shuffle_width_12(uint32_t* out) {
  out[threadIdx.x] = __shfl_xor_sync(FULL, threadIdx.x, 1, 12);
}
extern "C" __global__ void masks_disagree(uint32_t* out) {
  out[threadIdx.x] = __ballot_sync(threadIdx.x & 1 ? FULL : 0x55555555u, 1);
  __syncthreads();
}
extern "C" __global__ void barrier_in_branch(uint32_t* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    out[0] = 1;
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
extern "C" __global__ void barrier_missed(uint32_t* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  out[threadIdx.x] = 1;
}

// Bounds, alignment, arithmetic

extern "C" __global__ void global_out_of_bounds(uint32_t* out) { out[threadIdx.x + 1] = 1; }
extern "C" __global__ void shared_out_of_bounds(uint32_t* out) {
  SIMT_SHARED(uint32_t, words, [64]);
  uint32_t* word = words;  // a pointer, so that no type tells the bound
  word[threadIdx.x + 1] = 1;
  out[threadIdx.x] = 1;
}
extern "C" __global__ void misaligned_store(uint32_t* out) {
  if (threadIdx.x == 1) *reinterpret_cast<uint4*>(out + 1) = make_uint4(1, 2, 3, 4);
}
extern "C" __global__ void shift_by_32(uint32_t* out) {
  const uint32_t shift = 32 - (threadIdx.x & 31);
  out[threadIdx.x] = 1u << shift;
}
extern "C" __global__ void signed_overflow(uint32_t* out) {
  const int offset = 0x7fffffff;
  out[threadIdx.x] = static_cast<uint32_t>(offset + static_cast<int>(threadIdx.x));
}
extern "C" __global__ void ok_guarded_read(const uint4* in, uint32_t* out) {  // words 128 to 255 may be read
  out[threadIdx.x] = in[32 + threadIdx.x % 32].x;
}
extern "C" __global__ void read_beside_row(const uint4* in, uint32_t* out) {
  out[threadIdx.x] = in[32 + threadIdx.x % 33].x;
}
extern "C" __global__ void copy_beside_row(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + 31 + threadIdx.x % 32);
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = units[threadIdx.x].x;
}

// What was never written

extern "C" __global__ void output_hole(uint32_t* out) {
  if (threadIdx.x != 5) out[threadIdx.x] = 1;
}
extern "C" __global__ void local_not_written(uint32_t* out) {
  uint32_t value;
  if (threadIdx.x < 40) value = 3;
  out[threadIdx.x] = value;
}

// cp.async

extern "C" __global__ void ok_ring(const uint4* in, uint32_t* out) {  // two stages, eight lines
  SIMT_SHARED(uint4, ring, [2][64]);
  uint32_t sum = 0;
  cp_async<16>(&ring[0][threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  for (int i = 0; i < 2; i++) {
    if (i < 1) cp_async<16>(&ring[(i + 1) % 2][threadIdx.x], in + 64 * (i + 1) + threadIdx.x);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    sum += ring[i % 2][threadIdx.x ^ 33].x;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void copy_not_waited(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  out[threadIdx.x] = units[threadIdx.x].x;
}
extern "C" __global__ void copy_waited_one_short(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<1>();
  __syncthreads();
  out[threadIdx.x] = units[threadIdx.x].x;
}
extern "C" __global__ void copy_not_committed(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = units[threadIdx.x].x;
}
extern "C" __global__ void copy_seen_by_neighbour(const uint4* in, uint32_t* out) {  // waits only for its own
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = units[threadIdx.x ^ 1].x;
}
extern "C" __global__ void copy_into_what_is_read(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  cp_async<16>(&units[threadIdx.x], in + 64 + threadIdx.x);
  cp_async_commit();
  out[threadIdx.x] = units[threadIdx.x ^ 1].x;
  cp_async_wait<0>();
}
extern "C" __global__ void copy_twice_into_one_place(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x / 2], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = units[threadIdx.x / 2].x;
}
extern "C" __global__ void copy_misaligned(const uint32_t* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = units[threadIdx.x].x;
}
extern "C" __global__ void copy_out_of_bounds(const uint4* in, uint32_t* out) {
  SIMT_SHARED(uint4, units, [64]);
  cp_async<16>(&units[threadIdx.x], in + 65 + threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = units[threadIdx.x].x;
}

// Between blocks and warps

extern "C" __global__ void ok_atomic(uint32_t* out) {
  atomicAdd(&out[0], 1u);
  atomicOr(&out[1], 1u << (threadIdx.x & 31));
}
extern "C" __global__ void blocks_race(uint32_t* out) { out[threadIdx.x] = blockIdx.x; }
extern "C" __global__ void lost_update(uint32_t* out) {
  if (threadIdx.x % 32 == 0) out[0] = out[0] + 1;
}
