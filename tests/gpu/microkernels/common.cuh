// What every micro-kernel program shares: sizes from the device, arms launched alone or in turn, one line of JSON.
//
//   PROGRAM ARM    two warm-ups and three timed launches of that arm
//   PROGRAM time   all arms in turn, 2 warm-ups and 16 timed launches of each
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    cudaError_t code_ = (call);                                                                       \
    if (code_ != cudaSuccess) {                                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code_)); \
      std::exit(2);                                                                                   \
    }                                                                                                 \
  } while (0)

namespace micro {

struct Device {
  int sms = 0;
  size_t l2 = 0;          // bytes
  int shared_per_sm = 0;  // bytes
  int shared_optin = 0;   // bytes a block may ask for
};

inline int attribute(cudaDeviceAttr which) {
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

inline Device device() {
  Device d;
  d.sms = attribute(cudaDevAttrMultiProcessorCount);
  d.l2 = static_cast<size_t>(attribute(cudaDevAttrL2CacheSize));
  d.shared_per_sm = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  d.shared_optin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return d;
}

// Dynamic shared memory of which one block fits an SM and two do not.
inline int one_block_shared(const Device& d) { return std::min(d.shared_optin, d.shared_per_sm / 2 + 1024); }

template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

inline uint32_t power_of_two_from(size_t least) {
  uint32_t n = 1;
  while (n < least) n *= 2;
  return n;
}

template <class T>
T* zeros(size_t count) {
  T* p = nullptr;
  CHECK(cudaMalloc(&p, count * sizeof(T)));
  CHECK(cudaMemset(p, 0, count * sizeof(T)));
  return p;
}

__host__ __device__ inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// Values in (-0.5, 0.5), the same for the same index.
__global__ void init_values(float* out, size_t count, uint32_t seed) {
  size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += step)
    out[i] = (mix(static_cast<uint32_t>(i) + seed) >> 8) * (1.0f / 16777216.0f) - 0.5f;
}

inline float* values(size_t count, uint32_t seed = 0) {
  float* p = zeros<float>(count);
  init_values<<<1024, 256>>>(p, count, seed);
  CHECK(cudaGetLastError());
  return p;
}

// Sum of magnitudes of at most the first `most` elements.
template <class T>
double magnitude(const T* on_device, size_t count, size_t most = 1 << 20) {
  std::vector<T> host(std::min(count, most));
  CHECK(cudaMemcpy(host.data(), on_device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const T& v : host) sum += std::fabs(static_cast<double>(v));
  return sum;
}

struct Arm {
  std::string name;
  std::function<void()> launch;
  std::function<double()> checksum;            // of what the last launch wrote
  std::function<void()> reset = [] {};         // before each launch, not timed
  double min_bytes = 0;                        // least DRAM traffic of one launch; 0: not said
  int launches = 1;                            // launches that `launch` makes
};

class Timer {
 public:
  Timer() {
    CHECK(cudaEventCreate(&from_));
    CHECK(cudaEventCreate(&to_));
  }
  float us(const Arm& arm) {
    arm.reset();
    CHECK(cudaEventRecord(from_));
    arm.launch();
    CHECK(cudaEventRecord(to_));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(to_));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, from_, to_));
    return ms * 1e3f;
  }

 private:
  cudaEvent_t from_{}, to_{};
};

inline float median(std::vector<float> v) {
  std::sort(v.begin(), v.end());
  size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

inline void print_arm(const Arm& arm, const std::vector<float>& us, double checksum) {
  std::printf("\"%s\": {\"us\": %.3f, \"min_us\": %.3f, \"samples\": %zu, \"launches\": %d, \"checksum\": %.9g, "
              "\"min_bytes\": %.0f}",
              arm.name.c_str(), median(us), *std::min_element(us.begin(), us.end()), us.size(), arm.launches, checksum,
              arm.min_bytes);
}

// `tolerance` is relative and holds between the first arm's checksum and each other's.
inline int bench(int argc, char** argv, const char* program, const std::vector<Arm>& arms, double tolerance = 1e-3) {
  std::string chosen = argc > 1 ? argv[1] : "";
  std::vector<const Arm*> run;
  for (const Arm& arm : arms)
    if (chosen == "time" || chosen == arm.name) run.push_back(&arm);
  if (run.empty()) {
    std::fprintf(stderr, "usage: %s time", program);
    for (const Arm& arm : arms) std::fprintf(stderr, "|%s", arm.name.c_str());
    std::fprintf(stderr, "\n");
    return 1;
  }
  CHECK(cudaDeviceSynchronize());
  Timer timer;
  const int warm = 2, timed = chosen == "time" ? 16 : 3;
  std::vector<std::vector<float>> us(run.size());
  std::vector<double> sums(run.size());
  for (int i = 0; i < warm + timed; ++i)
    for (size_t a = 0; a < run.size(); ++a) {
      float t = timer.us(*run[a]);
      if (i >= warm) us[a].push_back(t);
      if (i == warm + timed - 1) sums[a] = run[a]->checksum();
    }
  bool same = true;
  for (double s : sums) same = same && std::fabs(s - sums[0]) <= tolerance * std::fabs(sums[0]);
  std::printf("{\"program\": \"%s\", \"same\": %s, \"arms\": {", program, same ? "true" : "false");
  for (size_t a = 0; a < run.size(); ++a) {
    if (a) std::printf(", ");
    print_arm(*run[a], us[a], sums[a]);
  }
  std::printf("}}\n");
  return same ? 0 : 3;
}

}  // namespace micro
