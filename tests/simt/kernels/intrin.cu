// Every intrinsic the harness offers, on random inputs: the host build, the PTX executor and NumPy must
// agree.
#include "cuda/prelude.cuh"
#define FULL 0xffffffffu
#define NOUT 32
extern "C" __global__ void intrin(const uint32_t* __restrict__ a, const uint32_t* __restrict__ b,
                                  const uint64_t* __restrict__ q, uint32_t* o, uint64_t* o64, uint32_t* hist,
                                  uint32_t* orv) {
  SIMT_SHARED(uint32_t, s, [64]);
  SIMT_DYNAMIC_SHARED(uint32_t, dyn);
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, n = gridDim.x * blockDim.x;
  const uint32_t x = a[i], y = __ldg(&b[i]);
  uint32_t r[NOUT];
  int k = 0;
  r[k++] = __popc(x);
  r[k++] = __clz((int)x);
  r[k++] = __ffs((int)x);
  r[k++] = __brev(x);
  r[k++] = __funnelshift_l(x, y, y & 63);
  r[k++] = __funnelshift_r(x, y, x & 63);
  r[k++] = __byte_perm(x, y, (x ^ y) & 0xffff);
  r[k++] = __shfl_sync(FULL, x, y & 31);
  r[k++] = __shfl_up_sync(FULL, x, 3);
  r[k++] = __shfl_down_sync(FULL, x, 5);
  r[k++] = __shfl_xor_sync(FULL, x, 9);
  r[k++] = __shfl_sync(FULL, x, y, 8);
  r[k++] = __shfl_up_sync(FULL, x, 3, 8);
  r[k++] = __shfl_down_sync(FULL, x, 5, 16);
  r[k++] = __shfl_xor_sync(FULL, x, 3, 4);
  r[k++] = __ballot_sync(FULL, x & 1);
  r[k++] = __any_sync(FULL, x % 37 == 0);
  r[k++] = __all_sync(FULL, (x & 1023) != 5);
  const uint32_t half = t & 16 ? 0xffff0000u : 0x0000ffffu;  // two groups of a warp, apart
  r[k++] = __ballot_sync(half, y & 1);
  r[k++] = __shfl_xor_sync(half, y, 1);
  r[k++] = __reduce_add_sync(FULL, x & 0xffff);
  r[k++] = __reduce_or_sync(half, x & 0x11111111);
  s[t] = x;
  dyn[63 - t] = y;
  __syncthreads();
  r[k++] = s[63 - t] + dyn[t ^ 7];
  r[k++] = __syncthreads_or(x % 61 == 0);
  r[k++] = __syncthreads_and((x & 7) != 9);
  r[k++] = __syncthreads_count(x & 1);
  r[k++] = (uint32_t)__popcll(q[i]);
  r[k++] = (uint32_t)(q[i] >> (x & 63));
  r[k++] = (x >> 7) * (y | 1);
  r[k++] = (uint32_t)(((uint64_t)x * y) >> 32);
  r[k++] = x / (y | 1);
  r[k++] = x % (y | 1);
#pragma unroll
  for (int j = 0; j < NOUT; j++) o[j * n + i] = r[j];
  o64[i] = __shfl_xor_sync(FULL, q[i], 17);
  atomicAdd(&hist[x & 15], 1u);
  atomicOr(&orv[blockIdx.x], 1u << (x & 31));
}
