// Eight independent FMA accumulators, one warp a scheduler, no memory. `serial` runs the same eight chains one after
// the other: each instruction waits for the one before it.
#include "common.cuh"

constexpr int CHAINS = 8;

__global__ void fma_chain(float* out, int steps) {
  float x[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x * 0.01f + c;
#pragma unroll 16
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * 0.999f + 0.5f;  // hot chain
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void fma_serial(float* out, int steps) {
  float sum = 0.0f;
#pragma unroll 1
  for (int c = 0; c < CHAINS; ++c) {
    float x = threadIdx.x * 0.01f + c;
#pragma unroll 1
    for (int s = 0; s < steps; s += 128) {
#pragma unroll
      for (int k = 0; k < 128; ++k) x = x * 0.999f + 0.5f;  // hot serial
    }
    sum += x;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms, steps = 8192;
  size_t count = static_cast<size_t>(blocks) * 128;
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "fma_chain",
                      {{"case", [=] { fma_chain<<<blocks, 128>>>(out, steps); }, sum},
                       {"serial", [=] { fma_serial<<<blocks, 128>>>(out, steps); }, sum}});
}
