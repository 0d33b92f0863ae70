// A round is 128 units, then a block barrier. Warp 0 does 113 units and the other fifteen one each; in the twin each of
// the sixteen does eight. A unit reads what its neighbour wrote in the round before.
#include "common.cuh"

constexpr int WARPS = 16, UNITS = 128;

template <bool EVEN>
__device__ __forceinline__ void rounds(float* out, int count, int steps) {
  __shared__ float slot[2][UNITS][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int each = UNITS / WARPS, rest = UNITS - (WARPS - 1);
  int first = EVEN ? warp * each : (warp ? rest + warp - 1 : 0);
  int mine = EVEN ? each : (warp ? 1 : rest);
  for (int u = warp; u < UNITS; u += WARPS) slot[0][u][lane] = u * 0.01f + lane;
  __syncthreads();
#pragma unroll 1
  for (int r = 0; r < count; ++r) {
#pragma unroll 1
    for (int u = first; u < first + mine; ++u) {
      float x = slot[r & 1][(u + 1) % UNITS][lane];
#pragma unroll 16
      for (int s = 0; s < steps; ++s) x = x * 0.999f + 0.5f;
      slot[(r + 1) & 1][u][lane] = x;
    }
    __syncthreads();  // hot
  }
  for (int u = warp; u < UNITS; u += WARPS) out[(blockIdx.x * UNITS + u) * 32 + lane] = slot[count & 1][u][lane];
}

__global__ void __launch_bounds__(512) barrier_skew(float* out, int count, int steps) {
  rounds<false>(out, count, steps);
}
__global__ void __launch_bounds__(512) barrier_skew_twin(float* out, int count, int steps) {
  rounds<true>(out, count, steps);
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 4, count = 16, steps = 32;
  size_t size = static_cast<size_t>(blocks) * UNITS * 32;
  float* out = micro::zeros<float>(size);
  auto sum = [=] { return micro::magnitude(out, size); };
  return micro::bench(argc, argv, "barrier_skew",
                      {{"case", [=] { barrier_skew<<<blocks, 512>>>(out, count, steps); }, sum},
                       {"twin", [=] { barrier_skew_twin<<<blocks, 512>>>(out, count, steps); }, sum}});
}
