// Two causes: 160 live floats under a cap of 40 registers, and a pointer chase with one load in flight. The waste comes
// first: the twin has no cap and the same chase.
#include "common.cuh"

constexpr int LIVE = 160;

__global__ void init_ring(int* next, unsigned rows) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 32, lane = i % 32;
  if (row < rows) next[i] = static_cast<int>(((row * 1664525u + 1013904223u) & (rows - 1)) * 32 + lane);
}

__device__ __forceinline__ void body(const float* __restrict__ in, const int* __restrict__ next,
                                     float* __restrict__ out, unsigned rows, int rounds) {
  unsigned thread = blockIdx.x * 128 + threadIdx.x;
  int at = static_cast<int>((micro::mix(thread / 32) & (rows - 1)) * 32 + threadIdx.x % 32);
  float v[LIVE];
#pragma unroll
  for (int k = 0; k < LIVE; ++k) v[k] = in[k * 128 + threadIdx.x] * 0.01f;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    at = next[at];
    v[0] += static_cast<float>(at & 1) * 0.001f;
#pragma unroll
    for (int k = 0; k < LIVE; ++k) v[k] = v[k] * v[(k + 37) % LIVE] + v[(k + 11) % LIVE];  // hot
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < LIVE; ++k) sum += v[k];
  out[thread] = sum;
}

__global__ void __launch_bounds__(128, 12) spill_chase(const float* in, const int* next, float* out, unsigned rows,
                                                       int rounds) {
  body(in, next, out, rows, rounds);
}
__global__ void __launch_bounds__(128) spill_chase_twin(const float* in, const int* next, float* out, unsigned rows,
                                                        int rounds) {
  body(in, next, out, rows, rounds);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  unsigned rows = micro::power_of_two_from(2 * d.l2 / 128);
  int blocks = d.sms * 12, rounds = 16;
  size_t count = static_cast<size_t>(blocks) * 128;
  float* in = micro::values(LIVE * 128);
  int* next = micro::zeros<int>(static_cast<size_t>(rows) * 32);
  float* out = micro::zeros<float>(count);
  init_ring<<<rows * 32 / 256, 256>>>(next, rows);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "spill_chase",
                      {{"case", [=] { spill_chase<<<blocks, 128>>>(in, next, out, rows, rounds); }, sum},
                       {"twin", [=] { spill_chase_twin<<<blocks, 128>>>(in, next, out, rows, rounds); }, sum}});
}
