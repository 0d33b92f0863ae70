// A buffer of 0.4 x L2 in tiles of 16 KB: each block reads its tile many times past L1. The twin stages the tile in
// shared memory.
#include "common.cuh"

constexpr int TILE = 1024;  // vectors of 16 bytes

__device__ __forceinline__ void add(float4& sum, float4 v) {
  sum.x += v.x;
  sum.y += v.y;
  sum.z += v.z;
  sum.w += v.w;
}

__device__ __forceinline__ void store(float* out, float4 sum) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum.x + sum.y + sum.z + sum.w;
}

__global__ void l2_bound(const float4* __restrict__ in, float* __restrict__ out, int sweeps) {
  const float4* tile = in + static_cast<size_t>(blockIdx.x) * TILE;
  float4 sum{};
#pragma unroll 8
  for (int r = 0; r < sweeps; ++r) add(sum, __ldcg(tile + ((threadIdx.x + r * 288) & (TILE - 1))));  // hot
  store(out, sum);
}

__global__ void l2_bound_twin(const float4* __restrict__ in, float* __restrict__ out, int sweeps) {
  __shared__ float4 tile[TILE];
  for (int i = threadIdx.x; i < TILE; i += 256) tile[i] = in[static_cast<size_t>(blockIdx.x) * TILE + i];
  __syncthreads();
  float4 sum{};
#pragma unroll 8
  for (int r = 0; r < sweeps; ++r) add(sum, tile[(threadIdx.x + r * 288) & (TILE - 1)]);
  store(out, sum);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  auto blocks = static_cast<unsigned>(d.l2 * 2 / 5 / (TILE * sizeof(float4)));
  int sweeps = 4 * 32;
  size_t vectors = static_cast<size_t>(blocks) * TILE, count = static_cast<size_t>(blocks) * 256;
  auto* in = reinterpret_cast<float4*>(micro::values(vectors * 4));
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "l2_bound",
                      {{"case", [=] { l2_bound<<<blocks, 256>>>(in, out, sweeps); }, sum},
                       {"twin", [=] { l2_bound_twin<<<blocks, 256>>>(in, out, sweeps); }, sum}});
}
