#include "deepgemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gemm/problem/types.h"

namespace rivals {
namespace {

namespace ptx = gemm::ptx;

struct Matrix {
  const void* base = nullptr;
  ptx::TensorElement element = ptx::TensorElement::kUint8;
  int rows = 0;
  int columns = 0;
  std::int64_t pitch = 0;
};

/// Copies of it bring `rows` rows and `columns` columns.
ptx::TensorMap map_of(const Matrix& matrix, int rows, int columns, ptx::Swizzle swizzle) {
  ptx::TensorMapSpec spec;
  spec.base = matrix.base;
  spec.element = matrix.element;
  spec.rank = 2;
  spec.extent = {static_cast<std::uint64_t>(matrix.columns), static_cast<std::uint64_t>(matrix.rows)};
  spec.stride_bytes = {0, static_cast<std::uint64_t>(matrix.pitch * ptx::element_bytes(matrix.element))};
  spec.box = {static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(rows)};
  spec.swizzle = swizzle;
  spec.l2_promotion = ptx::L2Promotion::k256B;
  return ptx::make_tensor_map(spec);
}

ptx::Swizzle swizzle_of(int span) {
  if (span == 128) return ptx::Swizzle::k128B;
  return span == 64 ? ptx::Swizzle::k64B : ptx::Swizzle::k32B;
}

/// The group of each row, as DeepGEMM wants it on the device; tiles must not have rows of two groups.
std::shared_ptr<const ptx::DeviceCopy> group_of_rows(const gemm::Problem& problem, int tile_m) {
  std::vector<int> group_of(static_cast<std::size_t>(problem.shape.m), -1);
  for (std::size_t i = 0; i < problem.groups.size(); ++i) {
    const gemm::GroupRows rows = problem.groups[i];
    if (rows.begin % tile_m != 0 || rows.count() % tile_m != 0)
      throw std::invalid_argument(fmt::format(
          "DeepGEMM's groups must begin at multiples of {} rows and have as many, but group {} has rows "
          "{} to {}",
          tile_m, i, rows.begin, rows.end));
    std::fill(group_of.begin() + rows.begin, group_of.begin() + rows.end, static_cast<int>(i));
  }
  return std::make_shared<ptx::DeviceCopy>(group_of.data(), group_of.size() * sizeof(int));
}

}  // namespace

gemm::Variant described(const Configuration& configuration) {
  const auto& [m, n, k] = configuration.tile;
  constexpr const char* kSuffix[] = {"", "_multicast_a", "_multicast_b"};
  gemm::Variant variant;
  variant.name = fmt::format("{}x{}{}", m, n, kSuffix[static_cast<int>(configuration.multicast)]);
  variant.summary =
      fmt::format("{} stages; {} threads multiply", configuration.stages, configuration.consumer_threads);
  variant.tile = configuration.tile;
  variant.stages = configuration.stages;
  if (configuration.form == Form::kBlockScales)
    variant.types = {.a = gemm::Type::kE4m3,
                     .b = gemm::Type::kE4m3,
                     .d = gemm::Type::kBf16,
                     .promotion = k,
                     .scaling = gemm::Scaling::kBlocks};
  if (configuration.form == Form::kBf16Groups) variant.groups = gemm::GroupForm::kRows;
  return variant;
}

ptx::LaunchShape launch_shape_of(const Configuration& configuration) {
  return {.grid = {static_cast<unsigned>(configuration.sms)},
          .block = {static_cast<unsigned>(configuration.producer_threads + configuration.consumer_threads)},
          .cluster = {static_cast<unsigned>(configuration.ctas_per_cluster())},
          .shared_bytes = configuration.shared_bytes};
}

Arguments arguments_of(const Configuration& configuration, const gemm::Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const auto& [tile_m, tile_n, tile_k] = configuration.tile;
  const bool has_scales = configuration.form == Form::kBlockScales;
  if (n != configuration.n || k != configuration.k)
    throw std::invalid_argument(
        fmt::format("this kernel of DeepGEMM was compiled for N = {} and K = {}, not for {} and {}",
                    configuration.n, configuration.k, n, k));
  const ptx::TensorElement element = has_scales ? ptx::TensorElement::kUint8 : ptx::TensorElement::kBf16;
  const ptx::Swizzle wide = ptx::Swizzle::k128B;
  const int rows_of_b = n * std::max(1, static_cast<int>(problem.groups.size()));
  Arguments arguments{.a = map_of({problem.a, element, m, k, k}, tile_m, tile_k, wide),
                      .b = map_of({problem.b, element, rows_of_b, k, k}, tile_n, tile_k, wide),
                      .d = map_of({problem.d, ptx::TensorElement::kBf16, m, n, n}, tile_m,
                                  configuration.output_span / 2, swizzle_of(configuration.output_span))};
  if (configuration.form == Form::kBf16Groups) arguments.groups = group_of_rows(problem, tile_m);
  if (!has_scales) return arguments;
  const int blocks = gemm::ceil_div(k, tile_k);
  if (problem.scales_b_pitch != blocks)
    throw std::invalid_argument(
        fmt::format("DeepGEMM's rows of B's scales follow one another without a gap: K must be a multiple of "
                    "512, but it is {}",
                    k));
  arguments.scales_a =
      map_of({problem.scales_a, ptx::TensorElement::kFloat32, blocks, m, problem.scales_a_pitch}, 1, tile_m,
             ptx::Swizzle::kNone);
  arguments.scales_b = const_cast<float*>(problem.scales_b);  // which the kernel only reads
  return arguments;
}

}  // namespace rivals
