// 24 sections of straight-line code, 12,288 FMAs or 192 KB in all; warps start in different sections. The twin runs the
// same arithmetic in one rolled loop.
#include "common.cuh"

constexpr int SECTIONS = 24, STEPS = 128, CHAINS = 4;

__host__ __device__ constexpr float scale(int section) { return 0.99f - 0.001f * section; }

template <int S>
__device__ __forceinline__ void section(float (&x)[CHAINS]) {
#pragma unroll
  for (int s = 0; s < STEPS; ++s)
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * scale(S) + 0.25f;  // hot
}

__device__ __forceinline__ int order(int i) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  return (warp * 5 + i * 7) % SECTIONS;
}

__device__ __forceinline__ void begin(float (&x)[CHAINS]) {
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x * 0.01f + c;
}

__device__ __forceinline__ void end(float* out, const float (&x)[CHAINS]) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}

__global__ void icache(float* out, int visits) {
  float x[CHAINS];
  begin(x);
#pragma unroll 1
  for (int i = 0; i < visits; ++i) {
    switch (order(i)) {
#define MICRO_ONE(k) case k: section<k>(x); break;
#define MICRO_FOUR(k) MICRO_ONE(k) MICRO_ONE(k + 1) MICRO_ONE(k + 2) MICRO_ONE(k + 3)
      MICRO_FOUR(0) MICRO_FOUR(4) MICRO_FOUR(8) MICRO_FOUR(12) MICRO_FOUR(16) MICRO_FOUR(20)
    }
  }
  end(out, x);
}

__global__ void icache_twin(float* out, int visits) {
  float x[CHAINS];
  begin(x);
#pragma unroll 1
  for (int i = 0; i < visits; ++i) {
    float by = 0.99f - 0.001f * order(i);
#pragma unroll 8
    for (int s = 0; s < STEPS; ++s)
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * by + 0.25f;
  }
  end(out, x);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms, visits = SECTIONS * 4;
  size_t count = static_cast<size_t>(blocks) * 256;
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "icache",
                      {{"case", [=] { icache<<<blocks, 256>>>(out, visits); }, sum},
                       {"twin", [=] { icache_twin<<<blocks, 256>>>(out, visits); }, sum}});
}
