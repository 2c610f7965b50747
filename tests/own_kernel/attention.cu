// Attention for one head: scores = Q K^T, an online softmax over blocks of keys, out = P V. Two GEMMs with
// wgmma, the second with P in registers. V is passed transposed, [head][key], so that both second operands
// are K-major.
//
// Broken on purpose: -D NO_RESCALE (sums from before a new maximum keep their old scale), -D ONE_BARRIER (K
// and V of a block share a barrier that expects only K), -D EARLY_RELEASE (a stage is released before the
// second GEMM has read V).
#include <cuda/ptx>

#include "tensor_map.h"
#include "wgmma_tile.h"

namespace ptx = cuda::ptx;

constexpr int kQueries = 64;
constexpr int kKeys = 64;
constexpr int kHead = 64;
constexpr int kStages = 2;

struct Shared {
  alignas(1024) __nv_bfloat16 q[kQueries * kHead];
  alignas(1024) __nv_bfloat16 k[kStages][kKeys * kHead];
  alignas(1024) __nv_bfloat16 v[kStages][kHead * kKeys];
  std::uint64_t q_full;
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

/// Over the four lanes that hold a row.
template <typename Op>
__device__ inline float over_row(float value, Op op) {
  value = op(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return op(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__global__ void __launch_bounds__(160)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, float* out, int blocks, float scale) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int row = static_cast<int>(blockIdx.x) * kQueries;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.q_full, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(&shared.full[stage], 1);
      ptx::mbarrier_init(&shared.empty[stage], 128);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) {
      const std::int32_t at_q[] = {0, row};
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &shared.q_full,
                                     sizeof shared.q);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.q, &map_q, at_q,
                                &shared.q_full);
      for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
        wait(&shared.empty[stage], (i / kStages & 1) ^ 1);
        std::uint64_t* full = &shared.full[stage];
#ifdef ONE_BARRIER
        constexpr int kBytes = kKeys * kHead * 2;
#else
        constexpr int kBytes = 2 * kKeys * kHead * 2;
#endif
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, kBytes);
        const std::int32_t at_k[] = {0, i * kKeys};
        const std::int32_t at_v[] = {i * kKeys, 0};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.k[stage], &map_k, at_k, full);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.v[stage], &map_v, at_v, full);
      }
    }
    return;
  }

  float sums[kHead / 2] = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};
  wait(&shared.q_full, 0);
  for (int i = 0; i < blocks; ++i) {
    const int stage = i % kStages;
    wait(&shared.full[stage], i / kStages & 1);
    float scores[kKeys / 2];
    multiply<kKeys>(scores, shared.q, shared.k[stage], true);
    gemm::ptx::wgmma_wait_group<0>();
    gemm::ptx::wgmma_fence_operand(scores);

    // Registers 4j, 4j + 1 are of the row, 4j + 2 and 4j + 3 of the one 8 below.
    for (int half = 0; half < 2; ++half) {
      float top = largest[half];
      for (int j = 0; j < kKeys / 8; ++j) {
        for (int e = 0; e < 2; ++e) top = fmaxf(top, scores[4 * j + 2 * half + e] * scale);
      }
      top = over_row(top, [](float a, float b) { return fmaxf(a, b); });
      const float correction = __expf(largest[half] - top);
      largest[half] = top;
      float sum = 0;
      for (int j = 0; j < kKeys / 8; ++j) {
        for (int e = 0; e < 2; ++e) {
          float& score = scores[4 * j + 2 * half + e];
          score = __expf(score * scale - top);
          sum += score;
        }
      }
      total[half] = total[half] * correction + over_row(sum, [](float a, float b) { return a + b; });
#ifndef NO_RESCALE
      for (int j = 0; j < kHead / 8; ++j) {
        for (int e = 0; e < 2; ++e) sums[4 * j + 2 * half + e] *= correction;
      }
#endif
    }

#ifdef EARLY_RELEASE
    ptx::mbarrier_arrive(&shared.empty[stage]);
#endif
    // Accumulators of the first GEMM are in the places of the second's A.
    std::uint32_t p[kKeys / 16][4];
    for (int step = 0; step < kKeys / 16; ++step) {
      for (int r = 0; r < 4; ++r) {
        const int j = 2 * step + r / 2;
        const __nv_bfloat162 pair =
            __floats2bfloat162_rn(scores[4 * j + r % 2 * 2], scores[4 * j + r % 2 * 2 + 1]);
        memcpy(&p[step][r], &pair, sizeof pair);
      }
    }
    gemm::ptx::wgmma_fence_operand(sums);
    gemm::ptx::wgmma_fence();
    for (int step = 0; step < kKeys / 16; ++step)
      gemm::ptx::wgmma_m64nNk16_f32_bf16_rs<kHead>(sums, p[step], descriptor(shared.v[stage]) + 2 * step, 1);
    gemm::ptx::wgmma_commit_group();
    gemm::ptx::wgmma_wait_group<0>();
    gemm::ptx::wgmma_fence_operand(sums);
#ifndef EARLY_RELEASE
    ptx::mbarrier_arrive(&shared.empty[stage]);
#endif
  }
  for (int j = 0; j < kHead / 8; ++j) {
    for (int r = 0; r < 4; ++r) sums[4 * j + r] /= total[r / 2];
  }
  store<kHead>(sums, out, row, 0, kHead);
}

void check_kernel(emulate::Run& run) {
  const int queries = 128;
  const int keys = 5 * kKeys;
  const std::vector<__nv_bfloat16> q = run.uniform<__nv_bfloat16>(queries * kHead);
  const std::vector<__nv_bfloat16> k = run.uniform<__nv_bfloat16>(keys * kHead);
  const std::vector<__nv_bfloat16> v = run.uniform<__nv_bfloat16>(kHead * keys);
  const float scale = 1.0f;
  float* out = run.buffer<float>("out", queries * kHead);
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  attention<<<queries / kQueries, 160, sizeof(Shared)>>>(
      make_map(run.buffer("q", q), queries, kHead, kQueries),
      make_map(run.buffer("k", k), keys, kHead, kKeys), make_map(run.buffer("v", v), kHead, keys, kHead), out,
      keys / kKeys, scale);
  std::vector<double> expected(static_cast<size_t>(queries) * kHead);
  for (int i = 0; i < queries; ++i) {
    std::vector<double> weight(keys);
    double total = 0;
    for (int j = 0; j < keys; ++j) {
      double score = 0;
      for (int x = 0; x < kHead; ++x)
        score += static_cast<double>(float(q[i * kHead + x])) * float(k[j * kHead + x]);
      total += weight[j] = std::exp(score * scale);
    }
    for (int j = 0; j < keys; ++j) {
      for (int x = 0; x < kHead; ++x)
        expected[static_cast<size_t>(i * kHead + x)] += weight[j] / total * float(v[x * keys + j]);
    }
  }
  // P is rounded to bf16: half a unit of 2^-8 of each weight.
  run.expect_close("out", run.host(out), expected, 0, 1.0 / 256);
}
