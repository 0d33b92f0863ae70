#include <cuda_bf16.h>
typedef __nv_bfloat16 T;
struct alignas(2) One { T v[1]; };
struct alignas(16) Eight { T v[8]; };
template <typename V, int W>
__device__ void rms(const T *x, T *r, const T *w, T *out, int cols, int ldx, int ldr, int ldo, float eps) {
    __shared__ float parts[8];
    x += (long long)blockIdx.x * ldx, r += (long long)blockIdx.x * ldr, out += (long long)blockIdx.x * ldo;
    float sum = 0.f;
    for (int c = threadIdx.x * W; c < cols; c += blockDim.x * W) {
        V a = *(const V *)(x + c), b = *(V *)(r + c);
        for (int i = 0; i < W; i++) {
            b.v[i] = (T)((float)a.v[i] + (float)b.v[i]);
            sum += (float)b.v[i] * (float)b.v[i];
        }
        *(V *)(r + c) = b;
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.f;
    for (int i = 0; i < 8; i++) sum += parts[i];
    float scale = rsqrtf(sum / cols + eps);
    for (int c = threadIdx.x * W; c < cols; c += blockDim.x * W) {
        V a = *(V *)(r + c), b = *(const V *)(w + c);
        for (int i = 0; i < W; i++) a.v[i] = (T)((float)a.v[i] * scale * (float)b.v[i]);
        *(V *)(out + c) = a;
    }
}
#define ENTRY(NAME, V, W)                                                                                              \
    extern "C" __global__ void NAME(const T *x, T *r, const T *w, T *out, int rows, int cols, int ldx, int ldr,       \
                                    int ldo, float eps) {                                                              \
        rms<V, W>(x, r, w, out, cols, ldx, ldr, ldo, eps);                                                             \
    }
ENTRY(narrow, One, 1)
ENTRY(wide, Eight, 8)
