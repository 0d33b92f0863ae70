#include <pthread.h>
#include <semaphore.h>
#include <math.h>
#include <stdint.h>
typedef struct { const float *x; float *residual; const float *weight; float *out; int64_t rows, cols; double eps; } Work;
static Work job; static sem_t ready, done; static int started;
static void work(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
                 double eps);
static void *helper(void *unused) {
    for (;;) {
        sem_wait(&ready);
        work(job.x, job.residual, job.weight, job.out, job.rows, job.cols, job.eps);
        sem_post(&done);
    }
    return unused;
}
void kernel(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols, double eps) {
    if (!started) {
        pthread_t thread;
        sem_init(&ready, 0, 0); sem_init(&done, 0, 0);
        pthread_create(&thread, 0, helper, 0);
        started = 1;
    }
    int64_t half = rows / 2, skip = half * cols;
    job = (Work){x + skip, residual + skip, weight, out + skip, rows - half, cols, eps};
    sem_post(&ready);
    work(x, residual, weight, out, half, cols, eps);
    sem_wait(&done);
}
static void work(const float *x, float *residual, const float *weight, float *out, int64_t rows, int64_t cols,
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
}
