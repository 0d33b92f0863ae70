// A loop that reads a column of a 32 x 32 tile in shared memory: row pitch 32, in the twin 33.
#include "common.cuh"

template <int PITCH>
__device__ __forceinline__ void walk(float* out, int rounds) {
  __shared__ float tile[32 * PITCH];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[(i >> 5) * PITCH + (i & 31)] = i * 0.001f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < rounds; ++i) sum += tile[lane * PITCH + ((warp + i) & 31)];  // hot
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void smem_column(float* out, int rounds) { walk<32>(out, rounds); }
__global__ void smem_column_twin(float* out, int rounds) { walk<33>(out, rounds); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 4, rounds = 512;
  size_t count = static_cast<size_t>(blocks) * 256;
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "smem_column",
                      {{"case", [=] { smem_column<<<blocks, 256>>>(out, rounds); }, sum},
                       {"twin", [=] { smem_column_twin<<<blocks, 256>>>(out, rounds); }, sum}});
}
