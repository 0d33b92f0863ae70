#include <math.h>
#include <stdint.h>

/* Sixteen columns at a time, so that the compiler can keep sixteen partial sums in vector registers. */
void add_rmsnorm(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
                 double eps) {
    for (int64_t row = 0; row < rows; row++) {
        const float *xr = x + row * cols;
        float *rr = residual + row * cols;
        float *or = out + row * cols;
        float part[16] = {0};
        for (int64_t col = 0; col + 16 <= cols; col += 16) {
            for (int lane = 0; lane < 16; lane++) {
                float s = xr[col + lane] + rr[col + lane];
                rr[col + lane] = s;
                part[lane] += s * s;
            }
        }
        double sum = 0.0;
        for (int lane = 0; lane < 16; lane++) {
            sum += part[lane];
        }
        for (int64_t col = cols - cols % 16; col < cols; col++) {
            float s = xr[col] + rr[col];
            rr[col] = s;
            sum += (double)s * (double)s;
        }
        float scale = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t col = 0; col + 16 <= cols; col += 16) {
            for (int lane = 0; lane < 16; lane++) {
                or[col + lane] = rr[col + lane] * scale * weight[col + lane];
            }
        }
    }
}
