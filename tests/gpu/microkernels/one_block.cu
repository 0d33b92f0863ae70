// One block does the whole array; the twin spreads it over the GPU.
#include "common.cuh"

__device__ __forceinline__ void walk(const float* __restrict__ in, float* __restrict__ out, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float x = in[i];  // hot
#pragma unroll
    for (int k = 0; k < 16; ++k) x = x * 0.9f + 0.1f;
    out[i] = x;
  }
}

__global__ void one_block(const float* in, float* out, int count) { walk(in, out, count); }
__global__ void one_block_twin(const float* in, float* out, int count) { walk(in, out, count); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int count = d.sms * 8 * 256;
  float* in = micro::values(count);
  float* out = micro::zeros<float>(count);
  int wide = d.sms * 8;
  auto sum = [=] { return micro::magnitude(out, static_cast<size_t>(count)); };
  return micro::bench(argc, argv, "one_block",
                      {{"case", [=] { one_block<<<1, 256>>>(in, out, count); }, sum},
                       {"twin", [=] { one_block_twin<<<wide, 256>>>(in, out, count); }, sum}});
}
