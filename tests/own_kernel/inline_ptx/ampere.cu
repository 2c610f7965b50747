// A GEMM for Ampere with every instruction in inline PTX: cp.async into two buffers, ldmatrix, mma.sync. One
// warp computes 16 x 8 elements.
//
// Broken on purpose: -D WAIT_ONE_LESS (the buffer is read while its copies are on the way), -D NO_WARP_SYNC
// (the copies of other lanes are read with nothing between).
#include <cuda_bf16.h>

#include <cstdint>

constexpr int kM = 32, kN = 16, kK = 96, kStep = 16;

__global__ void multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  __shared__ __align__(16) __nv_bfloat16 tile_a[2][16 * kStep];
  __shared__ __align__(16) __nv_bfloat16 tile_b[2][8 * kStep];
  const int lane = static_cast<int>(threadIdx.x);
  const int row = 16 * static_cast<int>(blockIdx.x), column = 8 * static_cast<int>(blockIdx.y);
  const auto load = [&](int k) {
    const int buffer = k / kStep % 2;
    const auto to_a = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_a[buffer] + 8 * lane));
    const auto to_b = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_b[buffer] + 8 * (lane % 16)));
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to_a),
                 "l"(a + (row + lane / 2) * kK + k + lane % 2 * 8)
                 : "memory");
    if (lane < 16)
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to_b),
                   "l"(b + (column + lane / 2) * kK + k + lane % 2 * 8), "n"(16), "r"(16)
                   : "memory");
    asm volatile("cp.async.commit_group;\n" ::);
  };
  float sum[4] = {};
  load(0);
  for (int k = 0; k < kK; k += kStep) {
    if (k + kStep < kK) load(k + kStep);
#ifdef WAIT_ONE_LESS
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
    if (k + kStep < kK) {
      asm volatile("cp.async.wait_group %0;" ::"n"(1) : "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
#endif
#ifndef NO_WARP_SYNC
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#endif
    const int buffer = k / kStep % 2;
    std::uint32_t fragment_a[4], fragment_b[2];
    const auto from_a = static_cast<std::uint32_t>(
        __cvta_generic_to_shared(tile_a[buffer] + lane % 16 * kStep + lane / 16 * 8));
    const auto from_b = static_cast<std::uint32_t>(
        __cvta_generic_to_shared(tile_b[buffer] + lane % 8 * kStep + lane / 8 * 8));  // of the lower 16 lanes
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment_a[0]), "=r"(fragment_a[1]), "=r"(fragment_a[2]), "=r"(fragment_a[3])
                 : "r"(from_a)
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fragment_b[0]), "=r"(fragment_b[1])
                 : "r"(from_b)
                 : "memory");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(fragment_a[0]), "r"(fragment_a[1]), "r"(fragment_a[2]), "r"(fragment_a[3]), "r"(fragment_b[0]),
          "r"(fragment_b[1]));
    __syncwarp();
  }
  float* const to = d + (row + lane / 4) * kN + column + lane % 4 * 2;
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(sum[0]), "f"(sum[1]) : "memory");
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(to + 8 * kN), "f"(sum[2]), "f"(sum[3]) : "memory");
}

void check_kernel(emulate::Run& run) {
  const auto* a = run.buffer("a", run.small_integers<__nv_bfloat16>(kM * kK));
  const auto* b = run.buffer("b", run.small_integers<__nv_bfloat16>(kN * kK));
  float* const d = run.buffer<float>("d", kM * kN);
  multiply<<<dim3(kM / 16, kN / 8), 32>>>(a, b, d);
  run.expect_gemm("d", d, a, b, kM, kN, kK);
}
