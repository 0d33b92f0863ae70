// Every warp follows eight chains through a ring of four times the L2: one chain after the other, one load in flight;
// the twin follows the eight side by side.
#include "common.cuh"

constexpr int CHAINS = 8, WIDTH = 16;  // a row is 64 bytes

__global__ void init_ring(int* next, unsigned rows) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / WIDTH, lane = i % WIDTH;
  if (row < rows) next[i] = static_cast<int>(((row * 1664525u + 1013904223u) & (rows - 1)) * WIDTH + lane);
}

__device__ __forceinline__ int start(unsigned rows, int chain) {
  unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  return static_cast<int>((micro::mix(warp * CHAINS + chain) & (rows - 1)) * WIDTH + threadIdx.x % WIDTH);
}

__global__ void pointer_chase(const int* __restrict__ next, int* __restrict__ out, unsigned rows, int steps) {
  int sum = 0;
#pragma unroll 1
  for (int c = 0; c < CHAINS; ++c) {
    int at = start(rows, c);
#pragma unroll 1
    for (int s = 0; s < steps; ++s) at = next[at];  // hot
    sum ^= at;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void pointer_chase_twin(const int* __restrict__ next, int* __restrict__ out, unsigned rows, int steps) {
  int at[CHAINS], sum = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) at[c] = start(rows, c);
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) at[c] = next[at[c]];
  }
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum ^= at[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  unsigned rows = micro::power_of_two_from(4 * d.l2 / (WIDTH * 4));
  int blocks = d.sms * 8, steps = 16;
  size_t count = static_cast<size_t>(blocks) * 256;
  int* next = micro::zeros<int>(static_cast<size_t>(rows) * WIDTH);
  int* out = micro::zeros<int>(count);
  init_ring<<<rows * WIDTH / 256, 256>>>(next, rows);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "pointer_chase",
                      {{"case", [=] { pointer_chase<<<blocks, 256>>>(next, out, rows, steps); }, sum},
                       {"twin", [=] { pointer_chase_twin<<<blocks, 256>>>(next, out, rows, steps); }, sum}});
}
