#include "deepgemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gemm/problem/types.h"
#include "harness/backend/backend.h"
#include "harness/verify/verify.h"

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

/// How many rows each group has, on the device: as many as the host knows.
std::shared_ptr<const ptx::DeviceCopy> counts_of_groups(const gemm::Problem& problem, int tile_m) {
  if (problem.capacity % tile_m != 0)
    throw std::invalid_argument(fmt::format(
        "DeepGEMM stores whole tiles: room for {} rows in each group must be a multiple of the tile's {}",
        problem.capacity, tile_m));
  std::vector<int> counts;
  for (const gemm::GroupRows& rows : problem.groups) counts.push_back(rows.count());
  return std::make_shared<ptx::DeviceCopy>(counts.data(), counts.size() * sizeof(int));
}

/// The scales of A as DeepGEMM reads them where groups have room for as many rows each: [group][k / 128]
/// [capacity]. They are copied once, not in each launch.
std::shared_ptr<const ptx::DeviceCopy> scales_by_group(const gemm::Problem& problem, int blocks) {
  const auto capacity = static_cast<std::size_t>(problem.capacity);
  std::vector<float> scales(problem.groups.size() * static_cast<std::size_t>(blocks) * capacity);
  float* to = scales.data();
  for (const gemm::GroupRows& rows : problem.groups) {
    for (int block = 0; block < blocks; ++block, to += capacity)
      harness::copy_to_host(to, problem.scales_a + block * problem.scales_a_pitch + rows.begin,
                            capacity * sizeof(float));
  }
  return std::make_shared<ptx::DeviceCopy>(scales.data(), scales.size() * sizeof(float));
}

}  // namespace

void poison_rest(const gemm::Problem& problem) {
  for (std::size_t i = 0; i < problem.groups.size(); ++i) {
    const int end = problem.groups[i].end;
    const int rest = (static_cast<int>(i) + 1) * problem.capacity - end;
    if (rest == 0) continue;
    harness::fill_device(
        problem.d + gemm::offset(end, 0, problem.shape.n), harness::kPoisonByte,
        static_cast<std::size_t>(gemm::offset(rest, 0, problem.shape.n)) * sizeof(gemm::bf16));
  }
}

gemm::Variant described(const Configuration& configuration) {
  const auto& [m, n, k] = configuration.tile;
  constexpr const char* kSuffix[] = {"", "_multicast_a", "_multicast_b"};
  gemm::Variant variant;
  variant.name = fmt::format("{}x{}{}", m, n, kSuffix[static_cast<int>(configuration.multicast)]);
  variant.summary =
      fmt::format("{} stages; {} threads multiply", configuration.stages, configuration.consumer_threads);
  variant.tile = configuration.tile;
  variant.stages = configuration.stages;
  if (has_scales(configuration.form))
    variant.types = {.a = gemm::Type::kE4m3,
                     .b = gemm::Type::kE4m3,
                     .d = gemm::Type::kBf16,
                     .promotion = k,
                     .scaling = gemm::Scaling::kBlocks};
  if (has_contiguous_groups(configuration.form)) variant.groups = gemm::GroupForm::kRows;
  if (configuration.form == Form::kBlockScalesMasked) variant.groups = gemm::GroupForm::kMasked;
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
  const bool scaled = has_scales(configuration.form);
  const bool masked = configuration.form == Form::kBlockScalesMasked;
  const auto groups = static_cast<int>(problem.groups.size());
  if (masked && groups != configuration.groups)
    throw std::invalid_argument(fmt::format("this kernel of DeepGEMM was compiled for {} groups, not for {}",
                                            configuration.groups, groups));
  if (n != configuration.n || k != configuration.k)
    throw std::invalid_argument(
        fmt::format("this kernel of DeepGEMM was compiled for N = {} and K = {}, not for {} and {}",
                    configuration.n, configuration.k, n, k));
  const ptx::TensorElement element = scaled ? ptx::TensorElement::kUint8 : ptx::TensorElement::kBf16;
  const ptx::Swizzle wide = ptx::Swizzle::k128B;
  const int rows_of_b = n * std::max(1, groups);
  Arguments arguments{.a = map_of({problem.a, element, m, k, k}, tile_m, tile_k, wide),
                      .b = map_of({problem.b, element, rows_of_b, k, k}, tile_n, tile_k, wide),
                      .d = map_of({problem.d, ptx::TensorElement::kBf16, m, n, n}, tile_m,
                                  configuration.output_span / 2, swizzle_of(configuration.output_span))};
  arguments.rows = masked ? problem.capacity : m;
  if (has_contiguous_groups(configuration.form)) arguments.groups = group_of_rows(problem, tile_m);
  if (masked) arguments.groups = counts_of_groups(problem, tile_m);
  if (!scaled) return arguments;
  const int blocks = gemm::ceil_div(k, tile_k);
  if (problem.scales_b_pitch != blocks)
    throw std::invalid_argument(
        fmt::format("DeepGEMM's rows of B's scales follow one another without a gap: K must be a multiple of "
                    "512, but it is {}",
                    k));
  if (masked) arguments.scales = scales_by_group(problem, blocks);
  const Matrix scales_a =
      masked ? Matrix{arguments.scales->memory(), ptx::TensorElement::kFloat32, groups * blocks,
                      problem.capacity, problem.capacity}
             : Matrix{problem.scales_a, ptx::TensorElement::kFloat32, blocks, m, problem.scales_a_pitch};
  arguments.scales_a = map_of(scales_a, 1, tile_m, ptx::Swizzle::kNone);
  arguments.scales_b = const_cast<float*>(problem.scales_b);  // which the kernel only reads
  return arguments;
}

}  // namespace rivals
