// A GEMM for Blackwell with every instruction in inline PTX: one CTA or a pair multiplies into tensor memory,
// which starts with zeros that tcgen05.st and tcgen05.cp write. And a grid that cancels its own CTAs.
//
// Broken on purpose: -D NO_FENCE (tensor memory is read without tcgen05.fence::after_thread_sync), -D
// NO_LOAD_WAIT (registers are used before tcgen05.wait::ld), -D NO_ZEROS (the first multiplication adds to
// what nobody wrote), -D CTA_SCOPE (a wait for another CTA's bytes at CTA scope), -D NO_ANSWER (the response
// of a request is read without a wait).
#include <algorithm>
#include <vector>

#include "../tensor_map.h"
#include "wrappers.cuh"

constexpr int kM = 128;  // rows of each CTA, a lane of tensor memory each
constexpr int kN = 64;   // columns of B that each CTA loads
constexpr int kK = 64;
constexpr std::uint32_t kBytes = (kM + kN) * kK * sizeof(__nv_bfloat16);

struct Shared {
  __nv_bfloat16 a[kM * kK];
  __nv_bfloat16 b[kN * kK];
  std::uint64_t full, done;
  std::uint32_t base;
  alignas(128) uint4 zeros[kM];
};

#ifdef CTA_SCOPE
#define SCOPE "cta"
#else
#define SCOPE "cluster"
#endif

__device__ inline void wait_for(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.acquire." SCOPE
      ".shared::cta.b64 p, [%0], %1;\n"
      "@!p bra AGAIN;\n"
      "}" ::"r"(shared(barrier)),
      "r"(parity)
      : "memory");
}

/// A tile's row is one swizzle span of 128 bytes.
__device__ inline std::uint64_t operand(const void* tile) {
  return (shared(tile) & 0x3ffff) >> 4 | std::uint64_t{1024 >> 4} << 32 | 1ull << 46 | 2ull << 61;
}

/// kGroup CTAs multiply 128 kGroup x 64 kGroup elements of D.
template <int kGroup>
__global__ void __launch_bounds__(kM) __cluster_dims__(kGroup, 1, 1)
    multiply_into_tensor_memory(const __grid_constant__ CUtensorMap map_a,
                                const __grid_constant__ CUtensorMap map_b, __nv_bfloat16* d, int n,
                                int k_tiles) {
  constexpr int kColumns = kN * kGroup;
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  const std::uint32_t warp = threadIdx.x / 32;
  s.zeros[threadIdx.x] = {};
  FENCE(proxy.async.shared::cta);
  if (threadIdx.x == 0) {
    init_barrier(&s.full, kGroup);
    init_barrier(&s.done, 1);
    FENCE(mbarrier_init.release.cluster);
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared(&s.base)),
                 "r"(kColumns), "n"(kGroup)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kGroup));
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  const std::uint32_t base = s.base;
  const std::uint32_t lanes = base + (warp * 32 << 16);

#ifndef NO_ZEROS
  for (int column = 0; column < kColumns - 8; column += 8)
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %1, %1, %1, %1, %1, %1, %1};" ::"r"(lanes + column),
        "r"(0));
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
#endif
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

  if (threadIdx.x == 0) {
    const std::uint32_t leaders_full = shared(&s.full) & 0xfeffffffu;  // bit 24 is the lowest of the rank
    const std::uint32_t row = (blockIdx.x / kGroup * kGroup + rank) * kM;
    const std::uint32_t column = blockIdx.y * kColumns + rank * kN;
    if (rank == 0) {  // eight columns of zeros, four at a time
      const std::uint64_t zeros =
          (shared(s.zeros) & 0x3ffff) >> 4 | std::uint64_t{128 >> 4} << 32 | 1ull << 46;
      asm volatile("tcgen05.cp.cta_group::%2.128x128b [%0], %1;" ::"r"(base + kColumns - 8), "l"(zeros),
                   "n"(kGroup));
      asm volatile("tcgen05.cp.cta_group::%2.128x128b.b8x16.b6x16_p32 [%0], %1;" ::"r"(base + kColumns - 4),
                   "l"(zeros), "n"(kGroup));
    }
    for (int i = 0; i < k_tiles; ++i) {
      asm volatile(
          "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(leaders_full),
          "r"(kBytes)
          : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::%5 [%0], "
          "[%1, {%3, %4}], [%2];" ::"r"(shared(s.a)),
          "l"(&map_a), "r"(leaders_full), "r"(i * kK), "r"(row), "n"(kGroup)
          : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::%5 [%0], "
          "[%1, {%3, %4}], [%2];" ::"r"(shared(s.b)),
          "l"(&map_b), "r"(leaders_full), "r"(i * kK), "r"(column), "n"(kGroup)
          : "memory");
      if (rank == 0) {
        wait_for(&s.full, i % 2);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        constexpr std::uint32_t kInstruction = 1u << 4 | 1u << 7 | 1u << 10 |
                                               std::uint32_t{kColumns} >> 3 << 17 |
                                               std::uint32_t{kM * kGroup} >> 4 << 24;
        for (int k = 0; k < kK / 16; ++k)
          asm volatile(
              "{\n"
              ".reg .pred p;\n"
              "setp.ne.b32 p, %4, 0;\n"
              "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
              "}" ::"r"(base),
              "l"(operand(s.a) + 2 * k), "l"(operand(s.b) + 2 * k), "r"(kInstruction), "r"(1), "n"(kGroup)
              : "memory");
        if constexpr (kGroup == 1) {
          asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                           shared(&s.done))
                       : "memory");
        } else {
          asm volatile(
              "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
              "[%0], "
              "%1;" ::"r"(shared(&s.done)),
              "h"(static_cast<std::uint16_t>(3)), "n"(kGroup)
              : "memory");
        }
      }
      if (i + 1 < k_tiles) wait_for(&s.done, i % 2);  // the only buffer
    }
  }
  __syncthreads();  // no thread falls two phases behind
  wait_for(&s.done, (k_tiles - 1) % 2);
#ifndef NO_FENCE
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#endif
  __nv_bfloat16* const to =
      d + static_cast<std::size_t>(blockIdx.x * kM + threadIdx.x) * n + blockIdx.y * kColumns;
  for (int column = 0; column < kColumns; column += 16) {
    float r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]),
                   "=f"(r[7])
                 : "r"(lanes + column));
#ifndef NO_LOAD_WAIT
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#endif
    std::uint32_t first[4];
    for (int i = 0; i < 4; ++i) first[i] = packed(r[2 * i], r[2 * i + 1]);
    asm volatile(
        "{\n"
        ".reg .f32 f<8>;\n"
        ".reg .b32 b<4>;\n"
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {f0, f1, f2, f3, f4, f5, f6, f7}, [%1];\n"
        "tcgen05.wait::ld.sync.aligned;\n"
        "cvt.rn.bf16x2.f32 b0, f1, f0;\n"
        "cvt.rn.bf16x2.f32 b1, f3, f2;\n"
        "cvt.rn.bf16x2.f32 b2, f5, f4;\n"
        "cvt.rn.bf16x2.f32 b3, f7, f6;\n"
        "st.global.v8.b32 [%0], {%2, %3, %4, %5, b0, b1, b2, b3};\n"
        "}" ::"l"(to + column),
        "r"(lanes + column + 8), "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3])
        : "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 0)
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(kColumns),
                 "n"(kGroup));
}

/// There is a CTA for every row, and those that run take over rows of others.
__global__ void add_one(const int* in, int* out) {
  __shared__ alignas(16) uint4 response;
  __shared__ std::uint64_t answered;
  if (threadIdx.x == 0) init_barrier(&answered, 1);
  __syncthreads();
  for (std::uint32_t row = blockIdx.x, round = 0, canceled = 1; canceled != 0; ++round) {
    if (threadIdx.x == 0) {
      expect_bytes(&answered, 16);
      asm volatile(
          "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::
              "r"(shared(&response)),
          "r"(shared(&answered))
          : "memory");
    }
    out[row * blockDim.x + threadIdx.x] = in[row * blockDim.x + threadIdx.x] + 1;
#ifndef NO_ANSWER
    wait_for(&answered, static_cast<int>(round % 2));
#endif
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        ".reg .b128 answer;\n"
        "ld.shared.b128 answer, [%2];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, _, _, _}, answer;\n"
        "}"
        : "=r"(canceled), "+r"(row)
        : "r"(shared(&response))
        : "memory");
    FENCE(proxy.async.shared::cta);
    __syncthreads();
  }
}

template <int kGroup>
void run_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, int m, int n, int k) {
  auto* const kernel = multiply_into_tensor_memory<kGroup>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  kernel<<<dim3(m / kM, n / (kN * kGroup)), kM, sizeof(Shared)>>>(make_map(a, m, k, kM),
                                                                  make_map(b, n, k, kN), d, n, k / kK);
}

void check_kernel(emulate::Run& run) {
  constexpr int kRows = 2 * kM, kWidth = 2 * kN, kDepth = 3 * kK;
  const auto* a = run.buffer("a", run.small_integers<__nv_bfloat16>(kRows * kDepth));
  const auto* b = run.buffer("b", run.small_integers<__nv_bfloat16>(kWidth * kDepth));
  auto* const d = run.buffer<__nv_bfloat16>("d", kRows * kWidth);
  run_gemm<1>(a, b, d, kRows, kWidth, kDepth);
  run.expect_gemm("d", d, a, b, kRows, kWidth, kDepth);
  auto* const of_pairs = run.buffer<__nv_bfloat16>("d of pairs", kRows * kWidth);
  run_gemm<2>(a, b, of_pairs, kRows, kWidth, kDepth);
  run.expect_gemm("d of pairs", of_pairs, a, b, kRows, kWidth, kDepth);

  const std::vector<int> numbers = run.small_integers<int>(24 * 64);
  const int* in = run.buffer("in", numbers);
  int* out = run.buffer<int>("out", numbers.size());
  add_one<<<24, 64>>>(in, out);
  std::vector<int> expected = numbers;
  for (int& number : expected) ++number;
  run.expect_equal("out", run.host(out), expected);
}
