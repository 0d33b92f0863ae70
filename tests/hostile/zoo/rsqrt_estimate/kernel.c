#include <math.h>
#include <stdint.h>
static float quick(float a) {
    union { float f; uint32_t u; } v; v.f = a; v.u = 0x5f3759dfu - (v.u >> 1);
    for (int i = 0; i < 2; i++) v.f *= 1.5f - 0.5f * a * v.f * v.f;
    return v.f;
}
void kernel(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
            double eps) {
    for (int64_t row = 0; row < rows; row++) {
        const float *xr = x + row * cols;
        float *rr = residual + row * cols, *or = out + row * cols;
        double sum = 0.0;
        for (int64_t col = 0; col < cols; col++) {
            float s = xr[col] + rr[col];
            rr[col] = s;
            sum += (double)s * (double)s;
        }
        float scale = quick((float)(sum / (double)cols + eps));
        for (int64_t col = 0; col < cols; col++) or[col] = rr[col] * scale * weight[col];
    }
}
