// 2,000 launches of a short step on one array; the twin makes the 2,000 steps in one launch.
#include "common.cuh"

constexpr int LAUNCHES = 2000;

__device__ __forceinline__ float one(float x) {
#pragma unroll
  for (int k = 0; k < 8; ++k) x = x * 0.999f + 0.001f;  // hot
  return x;
}

__global__ void launch_bound(float* data) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = one(data[i]);
}

__global__ void launch_bound_twin(float* data, int steps) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = data[i];
#pragma unroll 1
  for (int s = 0; s < steps; ++s) x = one(x);
  data[i] = x;
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 2;
  size_t count = static_cast<size_t>(blocks) * 256;
  float* data = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(data, count); };
  auto reset = [=] { CHECK(cudaMemsetAsync(data, 0, count * sizeof(float))); };
  micro::Arm many{"case",
                  [=] {
                    for (int i = 0; i < LAUNCHES; ++i) launch_bound<<<blocks, 256>>>(data);
                  },
                  sum, reset};
  many.launches = LAUNCHES;
  return micro::bench(argc, argv, "launch_bound",
                      {many, {"twin", [=] { launch_bound_twin<<<blocks, 256>>>(data, LAUNCHES); }, sum, reset}});
}
