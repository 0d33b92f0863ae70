#include <math.h>
#include <stdint.h>
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
        float scale = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t col = 0; col < cols; col++) or[col] = rr[col] * scale * weight[col];
    }
    residual[-1] = 0.0f;
}
