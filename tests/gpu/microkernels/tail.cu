// Equal long blocks, one an SM, and one block more than SMs: sms * (sms + 1) items. The twin gives each SM sms + 1.
#include "common.cuh"

__device__ __forceinline__ void work(float* out, int items, int steps) {
#pragma unroll 1
  for (int i = 0; i < items; ++i) {
    int item = blockIdx.x * items + i;
    float x = threadIdx.x * 0.001f + item % 7;
#pragma unroll 32
    for (int s = 0; s < steps; ++s) x = x * 0.999f + 0.5f;  // hot
    if (threadIdx.x == blockDim.x - 1) out[item] = x;
  }
}

__global__ void __launch_bounds__(1024) tail(float* out, int items, int steps) { work(out, items, steps); }
__global__ void __launch_bounds__(1024) tail_twin(float* out, int items, int steps) { work(out, items, steps); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int sms = d.sms, steps = 160, shared = micro::one_block_shared(d);
  size_t count = static_cast<size_t>(sms) * (sms + 1);
  float* out = micro::zeros<float>(count);
  micro::allow_shared(tail, shared);
  micro::allow_shared(tail_twin, shared);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "tail",
                      {{"case", [=] { tail<<<sms + 1, 1024, shared>>>(out, sms, steps); }, sum},
                       {"twin", [=] { tail_twin<<<sms, 1024, shared>>>(out, sms + 1, steps); }, sum}});
}
