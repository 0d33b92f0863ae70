// Two causes: strided loads, in blocks of 64 threads that each hold half of an SM's shared memory. The waste comes
// first: the twin has unit stride at the same occupancy.
#include "common.cuh"

constexpr int AT_ONCE = 16;

template <int STRIDE>
__device__ __forceinline__ void gather(const float* __restrict__ in, float* __restrict__ out, unsigned count) {
  extern __shared__ float scratch[];
  float sum = 0.0f;
  unsigned step = gridDim.x * blockDim.x;
#pragma unroll 1
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step * AT_ONCE) {
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) sum += in[static_cast<size_t>(i + k * step) * STRIDE];  // hot
  }
  scratch[threadIdx.x] = sum;
  __syncwarp();
  out[blockIdx.x * blockDim.x + threadIdx.x] = scratch[threadIdx.x];
}

__global__ void strided_low_occ(const float* in, float* out, unsigned count) { gather<32>(in, out, count); }
__global__ void strided_low_occ_twin(const float* in, float* out, unsigned count) { gather<1>(in, out, count); }

__global__ void init_strided(const float* packed, float* strided, size_t count) {
  size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) strided[i * 32] = packed[i];
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int shared = micro::one_block_shared(d), blocks = d.sms;
  unsigned round = static_cast<unsigned>(blocks) * 64 * AT_ONCE;
  auto count = static_cast<unsigned>(6 * d.l2 / 128 / round * round);
  float* packed = micro::values(count);
  float* strided = micro::zeros<float>(static_cast<size_t>(count) * 32);
  float* out = micro::zeros<float>(static_cast<size_t>(blocks) * 64);
  init_strided<<<(count + 255) / 256, 256>>>(packed, strided, count);
  micro::allow_shared(strided_low_occ, shared);
  micro::allow_shared(strided_low_occ_twin, shared);
  auto sum = [=] { return micro::magnitude(out, static_cast<size_t>(blocks) * 64); };
  return micro::bench(argc, argv, "strided_low_occ",
                      {{"case", [=] { strided_low_occ<<<blocks, 64, shared>>>(strided, out, count); }, sum},
                       {"twin", [=] { strided_low_occ_twin<<<blocks, 64, shared>>>(packed, out, count); }, sum}});
}
