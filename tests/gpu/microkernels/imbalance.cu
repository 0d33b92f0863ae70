// Block b loops b times; the twin deals the same units out in turn. One block an SM.
#include "common.cuh"

__device__ __forceinline__ void unit(float* out, int index, int steps) {
  float x = threadIdx.x * 0.001f + index % 7;
#pragma unroll 32
  for (int s = 0; s < steps; ++s) x = x * 0.999f + 0.5f;  // hot
  if (threadIdx.x == blockDim.x - 1) out[index] = x;
}

__global__ void __launch_bounds__(1024) imbalance(float* out, int steps) {
  int b = blockIdx.x, first = b * (b - 1) / 2;
#pragma unroll 1
  for (int i = 0; i < b; ++i) unit(out, first + i, steps);
}

__global__ void __launch_bounds__(1024) imbalance_twin(float* out, int units, int steps) {
#pragma unroll 1
  for (int u = blockIdx.x; u < units; u += gridDim.x) unit(out, u, steps);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int sms = d.sms, units = sms * (sms - 1) / 2, steps = 256;
  float* out = micro::zeros<float>(static_cast<size_t>(units));
  auto sum = [=] { return micro::magnitude(out, static_cast<size_t>(units)); };
  return micro::bench(argc, argv, "imbalance",
                      {{"case", [=] { imbalance<<<sms, 1024>>>(out, steps); }, sum},
                       {"twin", [=] { imbalance_twin<<<sms, 1024>>>(out, units, steps); }, sum}});
}
