// Instantiates DeepGEMM's kernels from the headers of a checkout. What stands here is their interface:
// template arguments, the bytes of shared memory, and the launch.
#pragma once

#include <algorithm>
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
#include <utility>
#include <vector>

#include "deepgemm.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/types.h"
#include "ptx/launch.cuh"

namespace rivals {

/// What kernels of one source file have in common.
struct Common {
  Form form = Form::kBlockScales;
  int rows = 0;  // of a tile
  Multicast multicast = Multicast::kNone;
  int n = 0;  // of the problem
  int k = 0;
  int sms = 0;
  int groups = 1;
};

constexpr int round_up(int value, int multiple) {
  return gemm::ceil_div(value, multiple) * multiple;
}

/// What follows from a tile with so many columns.
constexpr Configuration configuration_of(const Common& common, int columns) {
  constexpr int kLimit = 227 * 1024;  // bytes of shared memory
  constexpr int kMostStages = 16;
  constexpr int kRowBytes = 128;  // of a k-tile
  const int rows = common.rows;
  const bool scaled = has_scales(common.form);
  const int depth = scaled ? kRowBytes : kRowBytes / 2;
  const int scale_rows = depth % columns == 0 ? 1 : 2;  // of B's scales that a tile may need
  const int scales_of_b = scaled ? round_up(4 * scale_rows * gemm::ceil_div(common.k, depth), 8) : 0;
  const int fixed = round_up(2 * rows * columns, 1024) + 2 * 8 * kMostStages + scales_of_b;
  const int stage = (rows + columns) * kRowBytes + (scaled ? round_up(4 * rows, 128) : 0);
  Configuration one;
  one.form = common.form;
  one.tile = {rows, columns, depth};
  one.multicast = common.multicast;
  one.n = common.n;
  one.k = common.k;
  one.sms = common.sms;
  one.groups = common.groups;
  one.stages = std::min((kLimit - fixed) / stage, kMostStages);
  one.producer_threads = 128;
  one.consumer_threads = rows <= 64 ? 128 : 256;
  one.shared_bytes = fixed + one.stages * stage;
  one.output_span = 2 * columns % 128 == 0 ? 128 : 2 * columns % 64 == 0 ? 64 : 32;
  return one;
}

/// Whether DeepGEMM takes it into account: the accumulators fit, the scales of B change at few columns of the
/// tile, and there are enough stages; with counts on the device a cluster has two columns of tiles, or two
/// rows, of a group with an even number of columns. Tiles with many rows and few columns are left out: they
/// read more than a tile of 64 rows does.
constexpr bool is_raced(const Configuration& one) {
  constexpr int kBlock = gemm::kScaleBlock;
  constexpr int kWidestWithScales = 192;
  const auto& [m, n, k] = one.tile;
  const bool scales_fit =
      n <= kBlock || (n <= kWidestWithScales && (n % (n - kBlock) == 0 || kBlock % (n - kBlock) == 0));
  const bool cluster_fits = one.form != Form::kBlockScalesMasked || one.multicast == Multicast::kNone ||
                            gemm::ceil_div(one.n, n) % 2 == 0;
  return (scales_fit || !has_scales(one.form)) && cluster_fits && (m <= 128 || n <= 128) &&
         (m <= 64 || n >= 64) && one.stages >= (m * n < 128 * 192 ? 4 : 3);
}

template <Configuration kOne>
constexpr auto their_kernel() {
  constexpr auto kMajor = cute::UMMA::Major::K;
  constexpr auto kType = has_contiguous_groups(kOne.form)        ? deep_gemm::GemmType::MGroupedContiguous
                         : kOne.form == Form::kBlockScalesMasked ? deep_gemm::GemmType::MGroupedMasked
                                                                 : deep_gemm::GemmType::Normal;
  constexpr bool kSharesA = kOne.multicast == Multicast::kA;
  if constexpr (has_scales(kOne.form)) {  // the number of groups matters where their counts are on the device
    return &deep_gemm::sm90_fp8_gemm_1d2d_impl<
        kMajor, 0, kOne.n, kOne.k, kOne.groups, kOne.tile.m, kOne.tile.n, kOne.tile.k, 128, 128,
        kOne.output_span, kOne.stages, kOne.producer_threads, kOne.consumer_threads, kOne.ctas_per_cluster(),
        kSharesA, kOne.sms, kType, cutlass::bfloat16_t, deep_gemm::epilogue::transform::EpilogueIdentity>;
  } else {
    return &deep_gemm::sm90_bf16_gemm_impl<
        kMajor, kMajor, 0, kOne.n, kOne.k, 1, kOne.tile.m, kOne.tile.n, kOne.tile.k, 128, 128,
        kOne.output_span, kOne.stages, kOne.producer_threads, kOne.consumer_threads, kOne.ctas_per_cluster(),
        kSharesA, kOne.sms, kType, false, cutlass::bfloat16_t>;
  }
}

template <Configuration kOne>
gemm::Launcher prepare(const gemm::Problem& problem) {
  return [made = arguments_of(kOne, problem)](gemm::ptx::Stream stream) {
    if constexpr (has_scales(kOne.form)) {
      gemm::ptx::launch(their_kernel<kOne>(), launch_shape_of(kOne), stream, made.scales_b,
                        made.layout_of_groups(), made.rows, kOne.n, kOne.k, made.a, made.b, made.d,
                        made.scales_a);
    } else {
      gemm::ptx::launch(their_kernel<kOne>(), launch_shape_of(kOne), stream, made.layout_of_groups(),
                        made.rows, kOne.n, kOne.k, made.a, made.b, made.d);
    }
  };
}

template <Configuration kOne>
gemm::ptx::LaunchShape launch_shape(const gemm::Shape&) {
  return launch_shape_of(kOne);
}

template <Common kCommon, int kColumns>
void add_kernel(std::vector<Kernel>& kernels) {
  constexpr Configuration kOne = configuration_of(kCommon, kColumns);
  if constexpr (is_raced(kOne)) {
    gemm::Variant variant = described(kOne);
    variant.kernel = gemm::ptx::kernel_handle(their_kernel<kOne>());
    variant.launch_shape = launch_shape<kOne>;
    variant.prepare = prepare<kOne>;
    kernels.push_back({kOne, variant});
  }
}

template <Common kCommon, int... kIndex>
void add_kernels(std::vector<Kernel>& kernels, std::integer_sequence<int, kIndex...>) {
  (add_kernel<kCommon, 16 * (kIndex + 1)>(kernels), ...);
}

/// Those with tiles of 16, 32, ..., 256 columns.
template <Common kCommon>
std::vector<Kernel> kernels_of() {
  std::vector<Kernel> kernels;
  add_kernels<kCommon>(kernels, std::make_integer_sequence<int, 16>());
  return kernels;
}

}  // namespace rivals
