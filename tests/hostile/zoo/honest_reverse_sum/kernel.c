#include <math.h>
#include <stdint.h>
void kernel(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
            double eps) {
    for (int64_t row = 0; row < rows; row++) {
        const float *xr = x + row * cols;
        float *rr = residual + row * cols, *or = out + row * cols;
        double sum = 0.0;
        for (int64_t col = 0; col < cols; col++) {
            rr[col] = xr[col] + rr[col];
        }
        float lane[8] = {0};
        for (int64_t col = cols - 1; col >= 0; col--) lane[col % 8] += rr[col] * rr[col];
        for (int i = 7; i >= 0; i--) sum += lane[i];
        float scale = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t col = 0; col < cols; col++) or[col] = rr[col] * scale * weight[col];
    }
}
