// 32 long arithmetic paths: chosen by lane, in the twin by warp. Element e takes path e % 32 in both.
#include "common.cuh"

// The five bits of K choose the operations, so that no two paths can share code.
template <int K>
__device__ __forceinline__ float path(float x, int steps) {
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
    x = K & 1 ? x * 0.99f + 0.01f : x - x * x * 0.25f;
    x = K & 2 ? fmaxf(x, 0.125f) * 0.75f : x * x + 0.1f;
    x = K & 4 ? x * (1.0f - x) : fabsf(x - 0.5f);
    x = K & 8 ? fminf(x, 0.875f) + 0.0625f : x * 0.5f + 0.25f;
    x = K & 16 ? x * x * x : x * (0.7f + 0.001f * K);
  }
  return x;
}

__device__ __forceinline__ float choose(unsigned which, float x, int steps) {
  switch (which) {  // hot
#define MICRO_ONE(k) case k: return path<k>(x, steps);
#define MICRO_FOUR(k) MICRO_ONE(k) MICRO_ONE(k + 1) MICRO_ONE(k + 2) MICRO_ONE(k + 3)
    MICRO_FOUR(0) MICRO_FOUR(4) MICRO_FOUR(8) MICRO_FOUR(12) MICRO_FOUR(16) MICRO_FOUR(20) MICRO_FOUR(24)
    MICRO_FOUR(28)
  }
  return x;
}

__global__ void divergence(const float* __restrict__ in, float* __restrict__ out, int steps) {
  unsigned e = blockIdx.x * blockDim.x + threadIdx.x;
  out[e] = choose(e % 32, in[e], steps);
}

__global__ void divergence_twin(const float* __restrict__ in, float* __restrict__ out, int steps) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x, warp = t / 32;
  unsigned e = warp / 32 * 1024 + t % 32 * 32 + warp % 32;
  out[e] = choose(e % 32, in[e], steps);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 8, steps = 96;  // a multiple of four: whole groups of 1,024 elements
  size_t count = static_cast<size_t>(blocks) * 256;
  float* in = micro::values(count);
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "divergence",
                      {{"case", [=] { divergence<<<blocks, 256>>>(in, out, steps); }, sum},
                       {"twin", [=] { divergence_twin<<<blocks, 256>>>(in, out, steps); }, sum}});
}
