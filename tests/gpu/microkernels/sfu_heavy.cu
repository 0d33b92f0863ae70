// x <- 0.5 sin(x) + 0.3 cos(x) by the special function unit; the twin evaluates polynomials in FMA.
#include "common.cuh"

struct Special {
  static __device__ __forceinline__ float next(float x) { return 0.5f * __sinf(x) + 0.3f * __cosf(x); }  // hot
};
struct Polynomial {  // |x| < 1
  static __device__ __forceinline__ float next(float x) {
    float s = x * x;
    float sine = x * (0.99998f + s * (-0.16661f + s * 0.00812f));
    float cosine = 1.0f + s * (-0.49994f + s * 0.04057f);
    return 0.5f * sine + 0.3f * cosine;
  }
};

template <class Function>
__device__ __forceinline__ void iterate(float* out, int steps) {
  float x[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) x[c] = threadIdx.x * 0.001f + c * 0.1f;
#pragma unroll 4
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] = Function::next(x[c]);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}

__global__ void sfu_heavy(float* out, int steps) { iterate<Special>(out, steps); }
__global__ void sfu_heavy_twin(float* out, int steps) { iterate<Polynomial>(out, steps); }

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  int blocks = d.sms * 8, steps = 256;
  size_t count = static_cast<size_t>(blocks) * 256;
  float* out = micro::zeros<float>(count);
  auto sum = [=] { return micro::magnitude(out, count); };
  return micro::bench(argc, argv, "sfu_heavy",
                      {{"case", [=] { sfu_heavy<<<blocks, 256>>>(out, steps); }, sum},
                       {"twin", [=] { sfu_heavy_twin<<<blocks, 256>>>(out, steps); }, sum}},
                      1e-2);
}
