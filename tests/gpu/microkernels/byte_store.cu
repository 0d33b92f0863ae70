// Each thread stores one byte with stride 4; in the twin each thread packs four results into one word.
#include "common.cuh"

__device__ __forceinline__ unsigned result(unsigned e) { return micro::mix(e) & 0xffu; }

__global__ void byte_store(unsigned char* out, unsigned count) {
  unsigned e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e < count) out[static_cast<size_t>(e) * 4] = static_cast<unsigned char>(result(e));  // hot
}

__global__ void byte_store_twin(uchar4* out, unsigned count) {
  unsigned w = blockIdx.x * blockDim.x + threadIdx.x, e = w * 4;
  if (e < count) {
    out[w] = make_uchar4(static_cast<unsigned char>(result(e)), static_cast<unsigned char>(result(e + 1)),
                         static_cast<unsigned char>(result(e + 2)), static_cast<unsigned char>(result(e + 3)));
  }
}

int main(int argc, char** argv) {
  micro::Device d = micro::device();
  auto count = static_cast<unsigned>(d.l2);
  auto* spread = micro::zeros<unsigned char>(static_cast<size_t>(count) * 4);
  auto* packed = micro::zeros<unsigned char>(count);
  unsigned wide = (count + 255) / 256, narrow = (count / 4 + 255) / 256;
  constexpr size_t most = 1 << 20;  // results that are compared
  return micro::bench(
      argc, argv, "byte_store",
      {{"case", [=] { byte_store<<<wide, 256>>>(spread, count); },
        [=] { return micro::magnitude(spread, most * 4, most * 4); }},
       {"twin", [=] { byte_store_twin<<<narrow, 256>>>(reinterpret_cast<uchar4*>(packed), count); },
        [=] { return micro::magnitude(packed, most, most); }}});
}
