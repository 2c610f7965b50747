// The second product of an attention kernel: a warpgroup stores the probabilities P in shared memory and
// multiplies them by V.
//
// As reported: -D NEITHER (no fence and no barrier between the stores and wgmma). Halves of the cure: -D
// NO_FENCE (only the barrier), -D NO_BARRIER (only the fence).
#include <cuda/ptx>

#include <vector>

#include "../own_kernel/wgmma_tile.h"

namespace ptx = cuda::ptx;

constexpr int kTile = 64;

/// Where an element of a tile with 128-byte swizzled rows lies.
__device__ int swizzled(int row, int column) {
  return row * kTile + ((column / 8 ^ row % 8) * 8 + column % 8);
}

__global__ void __launch_bounds__(128)
    multiply_by_v(const __nv_bfloat16* p, const __nv_bfloat16* v, float* out) {
  __shared__ alignas(1024) __nv_bfloat16 probabilities[kTile * kTile];
  __shared__ alignas(1024) __nv_bfloat16 values[kTile * kTile];
  for (int i = threadIdx.x; i < kTile * kTile; i += 128) values[swizzled(i / kTile, i % kTile)] = v[i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  // ANCHOR: kernel
  for (int i = 0; i < kTile / 2; ++i) {  // each thread stores half a row
    const int row = threadIdx.x / 2, column = threadIdx.x % 2 * (kTile / 2) + i;
    probabilities[swizzled(row, column)] = p[row * kTile + column];
  }
#if !defined(NO_FENCE) && !defined(NEITHER)
  ptx::fence_proxy_async(ptx::space_shared);
#endif
#if !defined(NO_BARRIER) && !defined(NEITHER)
  __syncthreads();
#endif
  float d[kTile / 2] = {};
  multiply<kTile>(d, probabilities, values, true);
  gemm::ptx::wgmma_wait_group<0>();
  // ANCHOR_END: kernel
  store<kTile>(d, out, 0, 0, kTile);
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> p = run.small_integers<float>(kTile * kTile),
                           v = run.small_integers<float>(kTile * kTile);
  const std::vector<__nv_bfloat16> narrow_p(p.begin(), p.end()), narrow_v(v.begin(), v.end());
  float* out = run.buffer<float>("out", kTile * kTile);
  multiply_by_v<<<1, 128>>>(run.buffer("p", narrow_p), run.buffer("v", narrow_v), out);
  std::vector<float> expected(kTile * kTile);
  for (int i = 0; i < kTile * kTile * kTile; ++i)
    expected[i / kTile] +=
        p[i / kTile / kTile * kTile + i % kTile] * v[i / kTile % kTile * kTile + i % kTile];
  run.expect_equal("out", run.host(out), expected);
}
