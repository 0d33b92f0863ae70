// 160 live floats in a fully unrolled body under a cap of 40 registers; the twin has no cap.
#include "common.cuh"

constexpr int LIVE = 160;

__device__ __forceinline__ void body(const float* __restrict__ in, float* __restrict__ out, int rounds) {
  float v[LIVE];
#pragma unroll
  for (int k = 0; k < LIVE; ++k) v[k] = in[k * 128 + threadIdx.x] * 0.01f;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int k = 0; k < LIVE; ++k) v[k] = v[k] * v[(k + 37) % LIVE] + v[(k + 11) % LIVE];  // hot
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < LIVE; ++k) sum += v[k];
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(128, 12) spill(const float* in, float* out, int rounds) { body(in, out, rounds); }
__global__ void __launch_bounds__(128) spill_twin(const float* in, float* out, int rounds) { body(in, out, rounds); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 12, rounds = 16;
  size_t count = static_cast<size_t>(blocks) * 128;
  float* in = micro::values(LIVE * 128);
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "spill",
                      {{"case", [=] { spill<<<blocks, 128>>>(in, out, rounds); }, sum},
                       {"twin", [=] { spill_twin<<<blocks, 128>>>(in, out, rounds); }, sum}});
}
