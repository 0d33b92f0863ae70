#include <cuda_bf16.h>
template <typename T> __device__ void many(const long long *table, const T *weight, int work, int cols, int ld, float eps) {
    if ((int)blockIdx.y >= work) return;
    __shared__ float parts[8];
    const T *x = (const T *)table[3 * blockIdx.y] + (long long)blockIdx.x * ld;
    T *r = (T *)table[3 * blockIdx.y + 1] + (long long)blockIdx.x * ld;
    T *out = (T *)table[3 * blockIdx.y + 2] + (long long)blockIdx.x * ld;
    float sum = 0.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        r[c] = (T)((float)x[c] + (float)r[c]);
        sum += (float)r[c] * (float)r[c];
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.f;
    for (int i = 0; i < 8; i++) sum += parts[i];
    float scale = rsqrtf(sum / cols + eps);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = (T)((float)r[c] * scale * (float)weight[c]);
}
extern "C" __global__ void many_bf16(const long long *t, const __nv_bfloat16 *w, int work, int cols, int ld, float eps) {
    many<__nv_bfloat16>(t, w, work, cols, ld, eps);
}
extern "C" __global__ void many_f32(const long long *t, const float *w, int work, int cols, int ld, float eps) {
    many<float>(t, w, work, cols, ld, eps);
}
