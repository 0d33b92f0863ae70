// Thread i reads element i * 32 and writes element i; the twin reads the same values from a packed array.
#include "common.cuh"

__global__ void init_strided(const float* packed, float* strided, size_t count) {
  size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) strided[i * 32] = packed[i];
}

__global__ void strided_load(const float* __restrict__ in, float* __restrict__ out, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[static_cast<size_t>(i) * 32] * 2.0f;  // hot
}

__global__ void strided_load_twin(const float* __restrict__ in, float* __restrict__ out, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * 2.0f;
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  auto count = static_cast<unsigned>(6 * d.l2 / 128);  // the strided array is six times the L2
  float* packed = micro::values(count);
  float* strided = micro::zeros<float>(static_cast<size_t>(count) * 32);
  float* out = micro::zeros<float>(count);
  unsigned blocks = (count + 255) / 256;
  init_strided<<<blocks, 256>>>(packed, strided, count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "strided_load",
                      {{"case", [=] { strided_load<<<blocks, 256>>>(strided, out, count); }, sum},
                       {"twin", [=] { strided_load_twin<<<blocks, 256>>>(packed, out, count); }, sum}});
}
