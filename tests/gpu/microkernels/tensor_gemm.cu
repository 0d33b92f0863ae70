// C = A B of 8192 x 4096 x 4096 in fp16 with fp32 sums: `case` is the library's (or, built without it, our own on
// tensor cores), `wmma` is our own on tensor cores, `fma` is ours on the FMA pipe: a GEMM that misses the tensor cores.
// Build with -lcublas, or with -DMICRO_NO_CUBLAS where the library is absent.
#include "common.cuh"

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#if !defined(MICRO_NO_CUBLAS)
#include <cublas_v2.h>
#endif

constexpr int M = 8192, N = 4096, K = 4096;

__global__ void init_halves(half* out, size_t count, uint32_t seed) {
  size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  uint32_t bits = micro::mix(static_cast<uint32_t>(i) + seed) >> 8;
  if (i < count) out[i] = __float2half(bits * (1.0f / 16777216.0f) - 0.5f);
}

// Tensor cores: a block computes 128 x 128 with four warps of 64 x 64; three stages of asynchronous copies.
namespace tile {
constexpr int BM = 128, BN = 128, BK = 32, APAD = BK + 8, BPAD = BN + 8;
constexpr int A_HALVES = BM * APAD, B_HALVES = BK * BPAD, STAGES = 3;
constexpr int BYTES = STAGES * (A_HALVES + B_HALVES) * 2;
}  // namespace tile

__device__ __forceinline__ void stage(half* as, half* bs, const half* a, const half* b, int row, int col, int k) {
  using namespace tile;
#pragma unroll
  for (int i = threadIdx.x; i < BM * BK / 8; i += 128) {
    int r = i / (BK / 8), c = i % (BK / 8) * 8;
    __pipeline_memcpy_async(as + r * APAD + c, a + static_cast<size_t>(row + r) * K + k + c, 16);
  }
#pragma unroll
  for (int i = threadIdx.x; i < BK * BN / 8; i += 128) {
    int r = i / (BN / 8), c = i % (BN / 8) * 8;
    __pipeline_memcpy_async(bs + r * BPAD + c, b + static_cast<size_t>(k + r) * N + col + c, 16);
  }
}

__global__ void __launch_bounds__(128) gemm_wmma(const half* __restrict__ a, const half* __restrict__ b,
                                                 half* __restrict__ c) {
  using namespace tile;
  namespace w = nvcuda::wmma;
  extern __shared__ __align__(16) half shared[];
  half* as = shared;
  half* bs = shared + STAGES * A_HALVES;
  int row = blockIdx.y * BM, col = blockIdx.x * BN, warp = threadIdx.x / 32;
  int wr = warp / 2 * 64, wc = warp % 2 * 64;
  w::fragment<w::accumulator, 16, 16, 16, float> sum[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) w::fill_fragment(sum[i][j], 0.0f);
  for (int s = 0; s < STAGES - 1; ++s) {
    stage(as + s * A_HALVES, bs + s * B_HALVES, a, b, row, col, s * BK);
    __pipeline_commit();
  }
  for (int t = 0; t < K / BK; ++t) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    int ahead = t + STAGES - 1;
    int slot = ahead % STAGES;
    if (ahead < K / BK) stage(as + slot * A_HALVES, bs + slot * B_HALVES, a, b, row, col, ahead * BK);
    __pipeline_commit();
    const half* at = as + t % STAGES * A_HALVES;
    const half* bt = bs + t % STAGES * B_HALVES;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      w::fragment<w::matrix_a, 16, 16, 16, half, w::row_major> fa[4];
      w::fragment<w::matrix_b, 16, 16, 16, half, w::row_major> fb[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) w::load_matrix_sync(fa[i], at + (wr + i * 16) * APAD + k, APAD);
#pragma unroll
      for (int j = 0; j < 4; ++j) w::load_matrix_sync(fb[j], bt + k * BPAD + wc + j * 16, BPAD);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) w::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);  // hot wmma
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      w::fragment<w::accumulator, 16, 16, 16, half> out;
#pragma unroll
      for (int e = 0; e < out.num_elements; ++e) out.x[e] = __float2half(sum[i][j].x[e]);
      half* to = c + static_cast<size_t>(row + wr + i * 16) * N + col + wc + j * 16;
      w::store_matrix_sync(to, out, N, w::mem_row_major);
    }
}

// FMA: a block computes 128 x 128 with 256 threads of 8 x 8, operands widened on their way into shared memory.
__global__ void __launch_bounds__(256) gemm_fma(const half* __restrict__ a, const half* __restrict__ b,
                                                half* __restrict__ c) {
  constexpr int BK = 16, PITCH = 128 + 4;
  __shared__ __align__(16) float as[BK][PITCH];
  __shared__ __align__(16) float bs[BK][PITCH];
  int row = blockIdx.y * 128, col = blockIdx.x * 128, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int ar = threadIdx.x / 2, odd = threadIdx.x % 2, bk = threadIdx.x / 32, bc = threadIdx.x % 32 * 4;
  float sum[8][8] = {};
  for (int k = 0; k < K; k += BK) {
    uint4 va = *reinterpret_cast<const uint4*>(a + static_cast<size_t>(row + ar) * K + k + odd * 8);
    if (odd) va = make_uint4(va.z, va.w, va.x, va.y);  // odd lanes store four rows apart: 16 banks away
    const half* ha = reinterpret_cast<const half*>(&va);
#pragma unroll
    for (int i = 0; i < 8; ++i) as[odd * 8 + (i ^ (odd * 4))][ar] = __half2float(ha[i]);
#pragma unroll
    for (int r = 0; r < BK; r += 8) {
      uint2 vb = *reinterpret_cast<const uint2*>(b + static_cast<size_t>(k + r + bk) * N + col + bc);
      const half* hb = reinterpret_cast<const half*>(&vb);
      *reinterpret_cast<float4*>(&bs[r + bk][bc]) =
          make_float4(__half2float(hb[0]), __half2float(hb[1]), __half2float(hb[2]), __half2float(hb[3]));
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      float fa[8], fb[8];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float4*>(fa + h * 4) = *reinterpret_cast<const float4*>(&as[kk][h * 64 + ty * 4]);
        *reinterpret_cast<float4*>(fb + h * 4) = *reinterpret_cast<const float4*>(&bs[kk][h * 64 + tx * 4]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += fa[i] * fb[j];  // hot fma
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
      c[static_cast<size_t>(row + i / 4 * 64 + ty * 4 + i % 4) * N + col + j / 4 * 64 + tx * 4 + j % 4] =
          __float2half(sum[i][j]);
}

int main(int argc, char** argv) {
  constexpr size_t size_a = static_cast<size_t>(M) * K, size_b = static_cast<size_t>(K) * N;
  constexpr size_t size_c = static_cast<size_t>(M) * N;
  half* a = micro::zeros<half>(size_a);
  half* b = micro::zeros<half>(size_b);
  half* c = micro::zeros<half>(size_c);
  init_halves<<<(size_a + 255) / 256, 256>>>(a, size_a, 1);
  init_halves<<<(size_b + 255) / 256, 256>>>(b, size_b, 2);
  micro::allow_shared(gemm_wmma, tile::BYTES);
  auto sum = [=] {
    std::vector<half> host(1 << 20);
    CHECK(cudaMemcpy(host.data(), c, host.size() * sizeof(half), cudaMemcpyDeviceToHost));
    double total = 0;
    for (half v : host) total += std::fabs(static_cast<double>(__half2float(v)));
    return total;
  };
  auto own = [=] { gemm_wmma<<<dim3(N / tile::BN, M / tile::BM), 128, tile::BYTES>>>(a, b, c); };
#if defined(MICRO_NO_CUBLAS)
  auto library = own;
#else
  cublasHandle_t handle = nullptr;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 2;
  auto library = [=] {  // column-major: the row-major product is the product of the transposes in the other order
    const float one = 1.0f, zero = 0.0f;
    if (cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &one, b, CUDA_R_16F, N, a, CUDA_R_16F, K, &zero, c,
                     CUDA_R_16F, N, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
      std::exit(2);
  };
#endif
  return micro::bench(argc, argv, "tensor_gemm",
                      {{"case", library, sum},
                       {"wmma", own, sum},
                       {"fma", [=] { gemm_fma<<<dim3(N / 128, M / 128), 256>>>(a, b, c); }, sum}},
                      1e-2);
}
