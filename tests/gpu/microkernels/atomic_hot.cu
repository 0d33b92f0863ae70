// All threads add to one address; the twin reduces inside the block first.
#include "common.cuh"

// Float, because a compiler reduces integer addends of a warp by itself; whole numbers, so that any order is exact.
__device__ __forceinline__ float addend() {
  return 1.0f + static_cast<float>(micro::mix(blockIdx.x * blockDim.x + threadIdx.x) & 1u);
}

__global__ void atomic_hot(float* total) {
  atomicAdd(total, addend());  // hot
}

__global__ void atomic_hot_twin(float* total) {
  __shared__ float parts[8];
  float sum = addend();
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 8) {
    sum = parts[threadIdx.x];
    for (int d = 4; d; d >>= 1) sum += __shfl_down_sync(0xffu, sum, d);
    if (threadIdx.x == 0) atomicAdd(total, sum);
  }
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 32;
  auto* total = micro::zeros<float>(1);
  auto sum = [=] { return micro::magnitude(total, 1); };
  auto reset = [=] { CHECK(cudaMemsetAsync(total, 0, sizeof(float))); };
  return micro::bench(argc, argv, "atomic_hot",
                      {{"case", [=] { atomic_hot<<<blocks, 256>>>(total); }, sum, reset},
                       {"twin", [=] { atomic_hot_twin<<<blocks, 256>>>(total); }, sum, reset}});
}
