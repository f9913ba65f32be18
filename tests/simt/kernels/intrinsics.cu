// Every intrinsic that the harness offers, each into a row of `out`, uint32 (rows, threads of the grid).
// The rows are in the order of the expected values in test_intrinsics.py.
#include "cuda/prelude.cuh"

constexpr unsigned FULL = 0xffffffffu;

struct Rows {  // the column of one thread
  uint32_t* next;
  unsigned num_columns;

  __device__ void add(uint32_t value) {
    *next = value;
    next += num_columns;
  }
};
__device__ __forceinline__ unsigned column() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ Rows rows_of(uint32_t* out) { return {out + column(), gridDim.x * blockDim.x}; }

extern "C" __global__ void bits(const uint32_t* a, const uint32_t* b, const uint64_t* q, uint32_t* out) {
  const uint32_t x = __ldg(&a[column()]), y = __ldcs(&b[column()]);
  const uint64_t wide = __ldcg(&q[column()]);
  Rows rows = rows_of(out);
  rows.add(__popc(x));
  rows.add(__clz(static_cast<int>(x)));
  rows.add(__ffs(static_cast<int>(x)));
  rows.add(__brev(x));
  rows.add(__funnelshift_l(x, y, y & 63));
  rows.add(__funnelshift_r(x, y, x & 63));
  rows.add(__funnelshift_lc(x, y, y & 63));
  rows.add(__funnelshift_rc(x, y, x & 63));
  rows.add(__byte_perm(x, y, x ^ y));
  rows.add(__umulhi(x, y));
  rows.add(__popcll(wide));
  rows.add(__clzll(static_cast<long long>(wide)));
  rows.add(__ffsll(static_cast<long long>(wide)));
  rows.add(min(x, y));
  rows.add(max(x, y));
}

extern "C" __global__ void shuffles(const uint32_t* a, const uint32_t* b, const uint64_t* q, uint32_t* out) {
  const uint32_t x = a[column()], y = b[column()];
  Rows rows = rows_of(out);
  rows.add(__shfl_sync(FULL, x, y));
  rows.add(__shfl_up_sync(FULL, x, 3));
  rows.add(__shfl_down_sync(FULL, x, 5));
  rows.add(__shfl_xor_sync(FULL, x, 9));
  rows.add(__shfl_sync(FULL, x, y, 8));
  rows.add(__shfl_up_sync(FULL, x, 3, 8));
  rows.add(__shfl_down_sync(FULL, x, 5, 16));
  rows.add(__shfl_xor_sync(FULL, x, 3, 4));
  const uint64_t wide = __shfl_xor_sync(FULL, q[column()], 17);
  rows.add(static_cast<uint32_t>(wide));
  rows.add(static_cast<uint32_t>(wide >> 32));
}

extern "C" __global__ void votes(const uint32_t* a, const uint32_t* b, uint32_t* out) {
  const uint32_t x = a[column()], y = b[column()];
  const uint32_t half = threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;  // two groups of a warp, apart
  Rows rows = rows_of(out);
  rows.add(__ballot_sync(FULL, x & 1));
  rows.add(__any_sync(FULL, x % 37 == 0));
  rows.add(__all_sync(FULL, (x & 1023) != 5));
  rows.add(__ballot_sync(half, y & 1));
  rows.add(__match_any_sync(FULL, y & 3));
  rows.add(__reduce_add_sync(FULL, x));
  rows.add(__reduce_min_sync(FULL, x));
  rows.add(__reduce_max_sync(FULL, x));
  rows.add(__reduce_and_sync(half, x | 0xfffffff0u));
  rows.add(__reduce_or_sync(half, x & 0x11111111u));
  rows.add(__reduce_xor_sync(half, x));
  rows.add(__syncthreads_or(x % 61 == 0));
  rows.add(__syncthreads_and((x & 7) != 9));
  rows.add(__syncthreads_count(x & 1));
}

extern "C" __global__ void shared(const uint32_t* a, const uint32_t* b, uint32_t* out) {  // blocks of 64
  SIMT_SHARED(uint32_t, words, [64]);
  SIMT_DYNAMIC_SHARED(uint32_t, dynamic);
  words[threadIdx.x] = a[column()];
  dynamic[63 - threadIdx.x] = b[column()];
  __syncthreads();
  Rows rows = rows_of(out);
  rows.add(words[63 - threadIdx.x]);
  rows.add(dynamic[threadIdx.x ^ 7]);
}

// Words of 4, units of 8 and 16 bytes, the last 16 cut short to 5 bytes and padded with zeros.
extern "C" __global__ void copies(const uint32_t* a, const uint2* a2, const uint4* a4, uint32_t* out) {
  SIMT_SHARED(uint32_t, word, [64]);
  SIMT_SHARED(uint2, pair, [64]);
  SIMT_SHARED(uint4, quad, [2][64]);
  const unsigned t = threadIdx.x;
  cp_async<4>(&word[t], a + t);
  cp_async<8>(&pair[t], a2 + t);
  cp_async_commit();
  cp_async<16>(&quad[0][t], a4 + t);
  cp_async<16>(&quad[1][t], a4 + t, 5);
  cp_async_commit();
  Rows rows = rows_of(out);
  cp_async_wait<1>();
  rows.add(word[t]);
  rows.add(pair[t].y);
  cp_async_wait<0>();
  rows.add(quad[0][t].w);
  rows.add(quad[1][t].x);
  rows.add(quad[1][t].y);
  rows.add(quad[1][t].z);
}

// counts: add, or, and, exchange of equal values, compare and swap, least, most (uint64 each).
extern "C" __global__ void atomics(const uint32_t* a, uint64_t* counts) {
  const unsigned long long x = a[column()];
  unsigned long long* count = reinterpret_cast<unsigned long long*>(counts);
  atomicAdd(&count[0], x);
  atomicOr(&count[1], x);
  atomicAnd(&count[2], x | 0xf);
  atomicExch(&count[3], 7);
  for (unsigned long long old = count[4], seen; (seen = atomicCAS(&count[4], old, old + 1)) != old;)
    old = seen;
  atomicMin(&count[5], x);
  atomicMax(&count[6], x);
}
