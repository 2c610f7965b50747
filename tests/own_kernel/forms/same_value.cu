// All lanes of a warp store one value, which CUDA allows: one of the stores takes effect, whichever it is. A
// published LayerNorm omits the "if (lane == 0)" before such a store, because every lane has the sum.
//
// Broken on purpose: -D OTHER_VALUES (the lanes have different sums), -D OTHER_WARPS (all warps store to one
// word).
#include <vector>

__device__ inline float warp_sum(float value) {
  for (int delta = 16; delta > 0; delta /= 2)
#ifdef OTHER_VALUES
    value += __shfl_down_sync(0xffffffffu, value, delta);
#else
    value += __shfl_xor_sync(0xffffffffu, value, delta);
#endif
  return value;
}

__global__ void sums(const float* x, float* out, int* seen) {
  __shared__ float warps[4];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const float sum = warp_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
#ifdef OTHER_WARPS
  warps[0] = sum;
  if (warp > 0) warps[warp] = sum;
#else
  warps[warp] = sum;
#endif
  __syncthreads();
  if (threadIdx.x < 32) out[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
  if (warp == 0) seen[blockIdx.x] = 1;
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> values = run.small_integers<float>(3 * 128);
  const float* x = run.buffer("x", values);
  float* out = run.buffer<float>("out", 3);
  int* seen = run.buffer<int>("seen", 3);
  sums<<<3, 128>>>(x, out, seen);
  std::vector<float> expected(3);
  for (size_t i = 0; i < values.size(); ++i) expected[i / 128] += values[i];
  run.expect_equal("out", run.host(out), expected);
  run.expect_equal("seen", run.host(seen), std::vector<int>(3, 1));
}
