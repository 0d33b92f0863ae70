#include <math.h>
#include <stdint.h>
void kernel(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
            double eps) {
    for (int64_t row = 0; row < rows; row++) {
        const float *xr = x + row * cols;
        float *rr = residual + row * cols, *or = out + row * cols;
        double sum = 0.0;
        float lane[16] = {0};
        int64_t whole = cols / 16 * 16;
        for (int64_t col = 0; col < whole; col += 16)
            for (int i = 0; i < 16; i++) {
                float s = xr[col + i] + rr[col + i];
                rr[col + i] = s;
                lane[i] += s * s;
            }
        for (int64_t col = whole; col < cols; col++) {
            float s = xr[col] + rr[col];
            rr[col] = s;
            lane[0] += s * s;
        }
        for (int i = 0; i < 16; i++) sum += lane[i];
        float scale = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t col = 0; col < cols; col++) or[col] = rr[col] * scale * weight[col];
    }
}
