#include <cuda_bf16.h>
typedef __nv_bfloat16 T;
extern "C" __global__ void clear(const T *x, T *r, const T *w, T *out, float *sums, int rows, int cols, float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) sums[row] = 0.f;
}
extern "C" __global__ void sums(const T *x, T *r, const T *w, T *out, float *sums, int rows, int cols, float eps) {
    long long at = (long long)blockIdx.x * cols;
    float sum = 0.f;
    for (int c = blockIdx.y * blockDim.x + threadIdx.x; c < cols; c += blockDim.x * gridDim.y) {
        r[at + c] = (T)((float)x[at + c] + (float)r[at + c]);
        sum += (float)r[at + c] * (float)r[at + c];
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sums + blockIdx.x, sum);
}
extern "C" __global__ void normalise(const T *x, T *r, const T *w, T *out, float *sums, int rows, int cols, float eps) {
    long long at = (long long)blockIdx.x * cols;
    float scale = rsqrtf(sums[blockIdx.x] / cols + eps);
    for (int c = blockIdx.y * blockDim.x + threadIdx.x; c < cols; c += blockDim.x * gridDim.y)
        out[at + c] = (T)((float)r[at + c] * scale * (float)w[c]);
}
