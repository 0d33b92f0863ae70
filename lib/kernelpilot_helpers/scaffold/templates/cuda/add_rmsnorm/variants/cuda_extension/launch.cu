// Chooses and launches a kernel of kernel.cu. Free of torch's headers, so that nvcc is done in seconds.
#include "kernel.cu"

struct Matrix {
  void* data;
  long long row, col;
};

static bool aligned(const Matrix& m) {
  return m.col == 1 && m.row % 8 == 0 && reinterpret_cast<unsigned long long>(m.data) % 16 == 0;
}

template <typename Kernel>
static cudaError_t by_rows(Kernel kernel, int rows, int n, int vectors, cudaStream_t stream, const Matrix& x,
                           const Matrix& residual, const Matrix& weight, const Matrix& out, float eps) {
  const int threads = (n + 8 * vectors * 32 - 1) / (8 * vectors * 32) * 32;
  kernel<<<rows, threads, 0, stream>>>(static_cast<const bf16*>(x.data), static_cast<bf16*>(residual.data),
                                       static_cast<const bf16*>(weight.data), static_cast<bf16*>(out.data), n, eps,
                                       x.row, residual.row, out.row);
  return cudaGetLastError();
}

cudaError_t launch_add_rmsnorm(const Matrix& x, const Matrix& residual, const Matrix& weight, const Matrix& out,
                               int rows, int n, float eps, cudaStream_t stream) {
  const int threads = rows < 512 ? 1024 : 512;  // few rows leave the GPU empty: more threads for each
  if (n % 8 == 0 && aligned(x) && aligned(residual) && aligned(out) && aligned(weight)) {
    if (n <= 8 * threads) return by_rows(add_rmsnorm_v1, rows, n, 1, stream, x, residual, weight, out, eps);
    if (n <= 16 * threads) return by_rows(add_rmsnorm_v2, rows, n, 2, stream, x, residual, weight, out, eps);
    if (n <= 32 * 1024) return by_rows(add_rmsnorm_v4, rows, n, 4, stream, x, residual, weight, out, eps);
  }
  const int wanted = (n + 31) / 32 * 32;
  add_rmsnorm_any<<<rows, wanted < 1024 ? wanted : 1024, 0, stream>>>(
      static_cast<const bf16*>(x.data), static_cast<bf16*>(residual.data), static_cast<const bf16*>(weight.data),
      static_cast<bf16*>(out.data), n, eps, x.row, residual.row, out.row, x.col, residual.col, out.col, weight.col);
  return cudaGetLastError();
}
