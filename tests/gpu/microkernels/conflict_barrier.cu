// Two causes: columns of a tile with pitch 32, and warp 0 with four times the work before each block barrier. The waste
// comes first: the twin has pitch 33 and the same skew.
#include "common.cuh"

template <int PITCH>
__device__ __forceinline__ void rounds(float* out, int count, int reads) {
  __shared__ float tile[32 * PITCH];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[(i >> 5) * PITCH + (i & 31)] = i * 0.001f;
  __syncthreads();
  float sum = 0.0f;
  int mine = warp ? reads : reads * 4;
#pragma unroll 1
  for (int r = 0; r < count; ++r) {
#pragma unroll 4
    for (int i = 0; i < mine; ++i) sum += tile[lane * PITCH + ((warp + i + r) & 31)];  // hot
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void conflict_barrier(float* out, int count, int reads) { rounds<32>(out, count, reads); }
__global__ void conflict_barrier_twin(float* out, int count, int reads) { rounds<33>(out, count, reads); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 4, rounds_each = 16, reads = 32;
  size_t size = static_cast<size_t>(blocks) * 256;
  float* out = micro::zeros<float>(size);
  auto sum = [=] { return micro::magnitude(out, size); };
  return micro::bench(argc, argv, "conflict_barrier",
                      {{"case", [=] { conflict_barrier<<<blocks, 256>>>(out, rounds_each, reads); }, sum},
                       {"twin", [=] { conflict_barrier_twin<<<blocks, 256>>>(out, rounds_each, reads); }, sum}});
}
