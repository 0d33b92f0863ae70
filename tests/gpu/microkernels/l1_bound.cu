// A matrix product in which each thread computes one element: two loads that hit L1 for each FMA, one of them a
// broadcast. The twin keeps a 4 x 4 register tile.
#include "common.cuh"

constexpr int N = 1024;

__global__ void __launch_bounds__(1024) l1_bound(const float* __restrict__ a, const float* __restrict__ b,
                                                 float* __restrict__ c) {
  int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < N; ++k) sum += a[row * N + k] * b[k * N + col];  // hot
  c[row * N + col] = sum;
}

__global__ void __launch_bounds__(256) l1_bound_twin(const float* __restrict__ a, const float* __restrict__ b,
                                                     float* __restrict__ c) {
  int row = (blockIdx.y * 8 + threadIdx.y) * 4, col = blockIdx.x * 128 + threadIdx.x;
  float sum[4][4] = {};
  for (int k = 0; k < N; ++k) {
    float left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = a[(row + i) * N + k], right[i] = b[k * N + col + 32 * i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) c[(row + i) * N + col + 32 * j] = sum[i][j];
}

int main(int argc, char** argv) {
  constexpr size_t count = static_cast<size_t>(N) * N;
  float* a = micro::values(count, 1);
  float* b = micro::values(count, 2);
  float* c = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(c, count); };
  return micro::bench(argc, argv, "l1_bound",
                      {{"case", [=] { l1_bound<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(a, b, c); }, sum},
                       {"twin", [=] { l1_bound_twin<<<dim3(N / 128, N / 32), dim3(32, 8)>>>(a, b, c); }, sum}});
}
