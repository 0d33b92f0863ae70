#include <math.h>
#include <stdint.h>

enum { LANES = 16 };

/* As the plain loop, but with sixteen independent partial sums: one running sum is a chain of dependent additions
 * that no vector unit can shorten. The tail of a row is summed and written by itself. */
void add_rmsnorm(const float *restrict x, float *restrict residual, const float *restrict weight,
                 float *restrict out, int64_t rows, int64_t cols, double eps) {
    int64_t whole = cols - cols % LANES;
    for (int64_t row = 0; row < rows; row++) {
        const float *xr = x + row * cols;
        float *rr = residual + row * cols;
        float *or = out + row * cols;
        float part[LANES] = {0};
        for (int64_t col = 0; col < whole; col += LANES) {
            for (int lane = 0; lane < LANES; lane++) {
                float s = xr[col + lane] + rr[col + lane];
                rr[col + lane] = s;
                part[lane] += s * s;
            }
        }
        double sum = 0.0;
        for (int lane = 0; lane < LANES; lane++) {
            sum += part[lane];
        }
        for (int64_t col = whole; col < cols; col++) {
            float s = xr[col] + rr[col];
            rr[col] = s;
            sum += (double)s * (double)s;
        }
        float scale = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t col = 0; col < cols; col++) {
            or[col] = rr[col] * scale * weight[col];
        }
    }
}
