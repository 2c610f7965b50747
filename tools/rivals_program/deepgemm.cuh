// Instantiates DeepGEMM's kernel for e4m3 operands whose blocks have scales, from the headers of a checkout.
// What stands here is its interface: template arguments, the bytes of shared memory, and the launch.
#pragma once

#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
#include <utility>
#include <vector>

#include "deepgemm.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/types.h"
#include "ptx/launch.cuh"

namespace rivals {

constexpr int round_up(int value, int multiple) {
  return gemm::ceil_div(value, multiple) * multiple;
}

/// What follows from a tile of m x n for a problem of `columns` x `depth` on a GPU with `sms` SMs.
constexpr Configuration configuration_of(int m, int n, Multicast multicast, int columns, int depth, int sms) {
  constexpr int kLimit = 227 * 1024;  // bytes of shared memory
  constexpr int kMostStages = 16;
  constexpr int kBarriers = 2 * 8 * kMostStages;
  constexpr int kDepth = gemm::kScaleBlock;        // of a k-tile
  const int scale_rows = kDepth % n == 0 ? 1 : 2;  // rows of B's scales that a tile may need
  const int fixed =
      round_up(2 * m * n, 1024) + kBarriers + round_up(4 * scale_rows * gemm::ceil_div(depth, kDepth), 8);
  const int stage = (m + n) * kDepth + round_up(4 * m, 128);
  const int fitting = (kLimit - fixed) / stage;
  Configuration one;
  one.tile = {m, n, kDepth};
  one.multicast = multicast;
  one.n = columns;
  one.k = depth;
  one.sms = sms;
  one.stages = fitting < kMostStages ? fitting : kMostStages;
  one.producer_threads = 128;
  one.consumer_threads = m <= 64 ? 128 : 256;
  one.shared_bytes = fixed + one.stages * stage;
  one.output_span = 2 * n % 128 == 0 ? 128 : 2 * n % 64 == 0 ? 64 : 32;
  return one;
}

/// Whether DeepGEMM takes it into account: a tile wider than 128 columns changes from one scale of B to the
/// next at few columns, the accumulators fit, and there are enough stages. Tiles with many rows and few
/// columns are left out: they read more than a tile of 64 rows does.
constexpr bool is_raced(const Configuration& one) {
  const auto& [m, n, k] = one.tile;
  const bool scales_fit = n <= k || n % (n - k) == 0 || k % (n - k) == 0;
  return scales_fit && (m <= 128 || n <= 128) && (m <= 64 || n >= 64) &&
         one.stages >= (m * n < 128 * 192 ? 4 : 3);
}

template <int kM, int kN, Multicast kMulticast, int kColumns, int kDepth, int kSms>
void add_kernel(std::vector<Kernel>& kernels) {
  static constexpr Configuration kOne = configuration_of(kM, kN, kMulticast, kColumns, kDepth, kSms);
  if constexpr (is_raced(kOne)) {
    static constexpr auto kKernel = &deep_gemm::sm90_fp8_gemm_1d2d_impl<
        cute::UMMA::Major::K, 0, kColumns, kDepth, 1, kM, kN, kOne.tile.k, 128, 128, kOne.output_span,
        kOne.stages, kOne.producer_threads, kOne.consumer_threads, kOne.ctas_per_cluster(),
        kMulticast == Multicast::kA, kSms, deep_gemm::GemmType::Normal, cutlass::bfloat16_t,
        deep_gemm::epilogue::transform::EpilogueIdentity>;
    gemm::Variant variant = described(kOne);
    variant.kernel = gemm::ptx::kernel_handle(kKernel);
    variant.launch_shape = [](const gemm::Shape&) { return launch_shape_of(kOne); };
    variant.prepare = [](const gemm::Problem& problem) -> gemm::Launcher {
      return [made = arguments_of(kOne, problem), rows = problem.shape.m](gemm::ptx::Stream stream) {
        gemm::ptx::launch(kKernel, launch_shape_of(kOne), stream, made.scales_b, nullptr, rows, kColumns,
                          kDepth, made.a, made.b, made.d, made.scales_a);
      };
    };
    kernels.push_back({kOne, variant});
  }
}

template <int kM, Multicast kMulticast, int kColumns, int kDepth, int kSms, int... kIndex>
void add_kernels(std::vector<Kernel>& kernels, std::integer_sequence<int, kIndex...>) {
  (add_kernel<kM, 16 * (kIndex + 1), kMulticast, kColumns, kDepth, kSms>(kernels), ...);
}

/// The kernels with tiles of kM rows and 16, 32, ..., 192 columns.
template <int kM, Multicast kMulticast, int kColumns, int kDepth, int kSms>
std::vector<Kernel> kernels_of() {
  std::vector<Kernel> kernels;
  add_kernels<kM, kMulticast, kColumns, kDepth, kSms>(kernels, std::make_integer_sequence<int, 12>());
  return kernels;
}

}  // namespace rivals
