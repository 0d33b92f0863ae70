// Blocks of 64 threads that each ask for half of an SM's shared memory, with dependent loads that hit L2; the twin asks
// for 4 KB.
#include "common.cuh"

__global__ void init_rows(int* next, unsigned rows) {  // one cycle through all rows
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 32, lane = i % 32;
  if (row < rows) next[i] = static_cast<int>(((row * 1664525u + 1013904223u) & (rows - 1)) * 32 + lane);
}

__device__ __forceinline__ void follow(const int* __restrict__ next, int* __restrict__ out, unsigned rows, int steps) {
  extern __shared__ int scratch[];
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  int at = static_cast<int>((micro::mix(thread / 32) & (rows - 1)) * 32 + threadIdx.x % 32);
#pragma unroll 1
  for (int s = 0; s < steps; ++s) at = __ldcg(next + at);  // hot
  scratch[threadIdx.x] = at;
  __syncwarp();
  out[thread] = scratch[threadIdx.x];
}

__global__ void low_occ_smem(const int* next, int* out, unsigned rows, int steps) { follow(next, out, rows, steps); }
__global__ void low_occ_smem_twin(const int* next, int* out, unsigned rows, int steps) {
  follow(next, out, rows, steps);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  unsigned rows = micro::power_of_two_from(d.l2 / 8 / 128);
  int big = micro::one_block_shared(d), small = 4096, blocks = d.sms * 32, steps = 64;
  size_t count = static_cast<size_t>(blocks) * 64;
  int* next = micro::zeros<int>(static_cast<size_t>(rows) * 32);
  int* out = micro::zeros<int>(count);
  init_rows<<<rows * 32 / 256, 256>>>(next, rows);
  micro::allow_shared(low_occ_smem, big);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "low_occ_smem",
                      {{"case", [=] { low_occ_smem<<<blocks, 64, big>>>(next, out, rows, steps); }, sum},
                       {"twin", [=] { low_occ_smem_twin<<<blocks, 64, small>>>(next, out, rows, steps); }, sum}});
}
