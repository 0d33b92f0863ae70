// residual += x; out = residual / rms(residual) * weight, in bf16 with sums in float32. One block a row.
// The vector kernels want rows of n % 8 == 0 elements without gaps, each starting at 16 bytes; the last takes any.
#include <cuda_bf16.h>

typedef __nv_bfloat16 bf16;

// Sum over the block; every thread gets it. blockDim.x is a multiple of 32.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float partial[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : 0.f;
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

__device__ __forceinline__ float2 unpack(unsigned word) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&word));
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// VECTORS x 8 elements a thread, held in registers between the two passes over the row.
template <int VECTORS>
__device__ __forceinline__ void by_vectors(const bf16* x, bf16* residual, const bf16* weight, bf16* out, int n,
                                           float eps, long long x_row, long long r_row, long long o_row) {
  const long long row = blockIdx.x;
  const uint4* const xs = reinterpret_cast<const uint4*>(x + row * x_row);
  uint4* const rs = reinterpret_cast<uint4*>(residual + row * r_row);
  uint4* const os = reinterpret_cast<uint4*>(out + row * o_row);
  const uint4* const ws = reinterpret_cast<const uint4*>(weight);
  const int vectors = n / 8;
  constexpr bool EARLY = VECTORS <= 2;  // the weights too, while there are registers for them
  uint4 left[VECTORS], right[VECTORS], gain[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int at = threadIdx.x + v * blockDim.x;
    left[v] = right[v] = gain[v] = make_uint4(0u, 0u, 0u, 0u);
    if (at < vectors) {
      left[v] = xs[at];
      right[v] = rs[at];
      if (EARLY) gain[v] = ws[at];
    }
  }
  float total[VECTORS][8], squares = 0.f;
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int at = threadIdx.x + v * blockDim.x;
    const unsigned a[4] = {left[v].x, left[v].y, left[v].z, left[v].w};
    const unsigned b[4] = {right[v].x, right[v].y, right[v].z, right[v].w};
    unsigned kept[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 p = unpack(a[i]), q = unpack(b[i]);
      const float low = p.x + q.x, high = p.y + q.y;
      total[v][2 * i] = low;
      total[v][2 * i + 1] = high;
      squares += low * low + high * high;
      kept[i] = pack(low, high);
    }
    if (at < vectors) rs[at] = make_uint4(kept[0], kept[1], kept[2], kept[3]);
  }
  const float scale = rsqrtf(block_sum(squares) / n + eps);
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int at = threadIdx.x + v * blockDim.x;
    if (!EARLY && at < vectors) gain[v] = ws[at];
    const unsigned g[4] = {gain[v].x, gain[v].y, gain[v].z, gain[v].w};
    unsigned done[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 w = unpack(g[i]);
      done[i] = pack(total[v][2 * i] * scale * w.x, total[v][2 * i + 1] * scale * w.y);
    }
    if (at < vectors) os[at] = make_uint4(done[0], done[1], done[2], done[3]);
  }
}

#define BY_VECTORS(name, vectors)                                                                              \
  extern "C" __global__ void __launch_bounds__(1024)                                                           \
      name(const bf16* x, bf16* residual, const bf16* weight, bf16* out, int n, float eps, long long x_row,    \
           long long r_row, long long o_row) {                                                                 \
    by_vectors<vectors>(x, residual, weight, out, n, eps, x_row, r_row, o_row);                                \
  }
BY_VECTORS(add_rmsnorm_v1, 1)
BY_VECTORS(add_rmsnorm_v2, 2)
BY_VECTORS(add_rmsnorm_v4, 4)

// Any size, stride and alignment, element by element. A thread re-reads only what it has written itself.
extern "C" __global__ void __launch_bounds__(1024)
    add_rmsnorm_any(const bf16* x, bf16* residual, const bf16* weight, bf16* out, int n, float eps, long long x_row,
                    long long r_row, long long o_row, long long x_col, long long r_col, long long o_col,
                    long long w_col) {
  const long long row = blockIdx.x;
  float squares = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    bf16* const kept = residual + row * r_row + i * r_col;
    const float total = __bfloat162float(x[row * x_row + i * x_col]) + __bfloat162float(*kept);
    *kept = __float2bfloat16_rn(total);
    squares += total * total;
  }
  const float scale = rsqrtf(block_sum(squares) / n + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float total = __bfloat162float(residual[row * r_row + i * r_col]);
    out[row * o_row + i * o_col] = __float2bfloat16_rn(total * scale * __bfloat162float(weight[i * w_col]));
  }
}
