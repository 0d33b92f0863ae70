// Each thread copies one 16-byte vector between two arrays of four times the L2: nothing to win.
#include "common.cuh"

__global__ void dram_copy(const float4* __restrict__ from, float4* __restrict__ to, size_t count) {
  size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) to[i] = from[i];  // hot
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  size_t count = 4 * d.l2 / sizeof(float4);
  float* from = micro::values(count * 4);
  float* to = micro::zeros<float>(count * 4);
  auto blocks = static_cast<unsigned>((count + 255) / 256);
  micro::Arm copy{"case",
                  [=] {
                    dram_copy<<<blocks, 256>>>(reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to),
                                               count);
                  },
                  [=] { return micro::magnitude(to, count * 4); }};
  copy.min_bytes = 2.0 * static_cast<double>(count) * sizeof(float4);
  return micro::bench(argc, argv, "dram_copy", {copy});
}
