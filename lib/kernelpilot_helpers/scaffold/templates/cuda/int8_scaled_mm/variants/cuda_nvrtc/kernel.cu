// out = (a @ b) * scale_a * scale_b + bias: int8 in, exact int32 sums on the tensor cores (mma.sync m16n8k32), the
// epilogue in registers. a [M, K] and b [K, N] both have K contiguous.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class Out> struct Type;
template <> struct Type<__nv_bfloat16> {
  __device__ static float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
  __device__ static __nv_bfloat16 round(float v) { return __float2bfloat16_rn(v); }
};
template <> struct Type<__half> {
  __device__ static float widen(__half v) { return __half2float(v); }
  __device__ static __half round(float v) { return __float2half_rn(v); }
};

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// 16 bytes from global to shared memory, asynchronously; zeros where `inside` is false (nothing is read then).
__device__ __forceinline__ void copy16(unsigned to, const void* from, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}

__device__ __forceinline__ void multiply(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Byte of chunk `chunk` (16 bytes) of row `row`: chunks are exchanged so that 8 rows at one chunk hit 32 banks.
template <int BK> __device__ __forceinline__ int place(int row, int chunk) {
  static_assert(BK == 64 || BK == 128, "one or two rows per 128 bytes");
  return row * BK + ((BK == 128 ? chunk ^ (row & 7) : chunk ^ ((row >> 1) & 3)) << 4);
}

// A block of WM x WN warps makes a BM x BN tile, BK bytes of K at a time, STAGES - 1 loads ahead.
template <int BM, int BN, int BK, int WM, int WN, int STAGES, class Out>
__device__ __forceinline__ void tile(const signed char* a, const signed char* b, const float* scale_a,
                                     const float* scale_b, const Out* bias, Out* out, int m, int n, int k,
                                     long long a_row, long long b_col, long long o_row) {
  constexpr int THREADS = WM * WN * 32, CHUNKS = BK / 16, STAGE = (BM + BN) * BK;
  constexpr int MT = BM / WM / 16, NT = BN / WN / 8;
  static_assert(MT >= 1 && NT % 2 == 0 && (BM + BN) * CHUNKS % THREADS == 0, "tiles divide evenly");
  __shared__ __align__(128) unsigned char memory[STAGES * STAGE];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warp_m = warp / WN, warp_n = warp % WN;
  const int m0 = blockIdx.x * BM, n0 = blockIdx.y * BN, steps = (k + BK - 1) / BK;
  const unsigned base = shared_address(memory);

  auto load = [&](int step) {
    const unsigned to = base + step % STAGES * STAGE;
#pragma unroll
    for (int i = 0; i < (BM + BN) * CHUNKS / THREADS; ++i) {
      const int at = threadIdx.x + i * THREADS, row = at / CHUNKS, chunk = at % CHUNKS;
      const int depth = step * BK + chunk * 16;
      const bool of_a = row < BM;
      const int line = of_a ? m0 + row : n0 + row - BM;
      const bool inside = depth < k && line < (of_a ? m : n);
      const signed char* const from = of_a ? a + line * a_row + depth : b + line * b_col + depth;
      copy16(to + place<BK>(row, chunk), inside ? from : a, inside);
    }
  };

  int sum[MT][NT][4] = {};
#pragma unroll
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < steps) load(step);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();  // the stage has arrived for all, and all are done with the one that is loaded next
    if (step + STAGES - 1 < steps) load(step + STAGES - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const unsigned here = base + step % STAGES * STAGE;
#pragma unroll
    for (int part = 0; part < BK / 32; ++part) {
      unsigned left[MT][4], right[NT / 2][4];
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        const int row = (warp_m * MT + i) * 16 + (lane & 15);
        load_matrices(left[i], here + place<BK>(row, part * 2 + (lane >> 4)));
      }
#pragma unroll
      for (int j = 0; j < NT / 2; ++j) {
        const int row = BM + (warp_n * NT + 2 * j) * 8 + (lane & 7) + ((lane >> 4) << 3);
        load_matrices(right[j], here + place<BK>(row, part * 2 + ((lane >> 3) & 1)));
      }
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j) multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
  }

  // Column pairs: n is a multiple of 8, so a pair is inside as a whole.
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = m0 + (warp_m * MT + i) * 16 + half * 8 + lane / 4;
      if (row >= m) continue;
      const float by_row = scale_a[row];
#pragma unroll
      for (int j = 0; j < NT; ++j) {
        const int col = n0 + (warp_n * NT + j) * 8 + lane % 4 * 2;
        if (col >= n) continue;
        __align__(4) Out pair[2];
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float value = static_cast<float>(sum[i][j][half * 2 + c]) * by_row * scale_b[col + c];
          if (bias) value += Type<Out>::widen(bias[col + c]);
          pair[c] = Type<Out>::round(value);
        }
        *reinterpret_cast<unsigned*>(out + row * o_row + col) = *reinterpret_cast<const unsigned*>(pair);
      }
    }
}

// Any size, stride and alignment: one thread an element.
template <class Out>
__device__ __forceinline__ void element(const signed char* a, const signed char* b, const float* scale_a,
                                        const float* scale_b, const Out* bias, Out* out, int m, int n, int k,
                                        long long a_row, long long b_col, long long o_row, long long a_col,
                                        long long b_row, long long o_col, long long sa, long long sb, long long bs) {
  const long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (at >= static_cast<long long>(m) * n) return;
  const long long row = at / n, col = at % n;
  int sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * a_row + i * a_col] * b[i * b_row + col * b_col];
  float value = static_cast<float>(sum) * scale_a[row * sa] * scale_b[col * sb];
  if (bias) value += Type<Out>::widen(bias[col * bs]);
  out[row * o_row + col * o_col] = Type<Out>::round(value);
}

#define ARGUMENTS(Out)                                                                                            \
  const signed char *a, const signed char *b, const float *scale_a, const float *scale_b, const Out *bias, Out *out, \
      int m, int n, int k, long long a_row, long long b_col, long long o_row
#define TILE(name, Out, BM, BN, BK, WM, WN, STAGES)                                                               \
  extern "C" __global__ void __launch_bounds__(WM * WN * 32) name(ARGUMENTS(Out)) {                               \
    tile<BM, BN, BK, WM, WN, STAGES, Out>(a, b, scale_a, scale_b, bias, out, m, n, k, a_row, b_col, o_row);       \
  }
#define FOR(Out, suffix)                                                                                          \
  TILE(int8_mm_few_##suffix, Out, 16, 32, 128, 1, 2, 6)                                                           \
  TILE(int8_mm_some_##suffix, Out, 64, 64, 128, 2, 2, 3)                                                          \
  TILE(int8_mm_many_##suffix, Out, 128, 128, 64, 2, 4, 3)                                                         \
  extern "C" __global__ void int8_mm_any_##suffix(ARGUMENTS(Out), long long a_col, long long b_row,               \
                                                  long long o_col, long long sa, long long sb, long long bs) {    \
    element<Out>(a, b, scale_a, scale_b, bias, out, m, n, k, a_row, b_col, o_row, a_col, b_row, o_col, sa, sb,    \
                 bs);                                                                                             \
  }
FOR(__nv_bfloat16, bf16)
FOR(__half, f16)
