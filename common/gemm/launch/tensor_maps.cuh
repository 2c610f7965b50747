// The tensor maps of the steps: what TMA reads and writes, and in which boxes. Beside them stand operand_map
// (tma_tile.cuh), what step 09 taught, and store_map (store_tile.cuh), what step 15 taught.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/types.h"
#include "gemm/problem/weights.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/scale_piece.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// The maps of a kernel with tiles of T that stores D with TMA.
struct TileMaps {
  ptx::TensorMap a;
  ptx::TensorMap b;
  ptx::TensorMap d;
};

/// The CTAs of a cluster C load a share each of what they have in common, so the boxes are shares.
template <typename T, typename C = OneCta>
TileMaps tile_maps(const Gemm& gemm) {
  const auto [m, n, k] = gemm.shape;
  return {.a = operand_map<T>(gemm.a, m, k, T::kM / C::kN),
          .b = operand_map<T>(gemm.b, n, k, T::kN / C::kM),
          .d = store_map(gemm.d, m, n)};
}

/// Arguments: `first`, and behind it the maps of A, B and D.
template <typename T, typename C = OneCta, typename... First>
auto with_tile_maps(const Gemm& gemm, const First&... first) {
  const TileMaps maps = tile_maps<T, C>(gemm);
  return std::tuple(first..., maps.a, maps.b, maps.d);
}

/// The same for a kernel whose threads store D themselves: the maps of A and B.
template <typename T, typename C = OneCta, typename... First>
auto with_operand_maps(const Gemm& gemm, const First&... first) {
  const auto [m, n, k] = gemm.shape;
  return std::tuple(first..., operand_map<T>(gemm.a, m, k, T::kM / C::kN),
                    operand_map<T>(gemm.b, n, k, T::kN / C::kM));
}

/// The map of a dense matrix, read or written in boxes of box_rows rows of 128 bytes, swizzled (step 42).
/// Where two elements share a byte (step 78), it counts bytes.
inline ptx::TensorMap typed_map(const void* matrix, Type type, int rows, int columns, int box_rows) {
  const bool packed = bits_of(type) == 4;
  const int size = packed ? 1 : bytes_of(type);
  if (packed) columns /= 2;
  auto spec = ptx::matrix_spec(matrix, rows, columns, box_rows, kRowBytes / size, ptx::Swizzle::k128B);
  spec.element = tensor_element(type);
  spec.stride_bytes[1] = static_cast<std::uint64_t>(columns) * static_cast<std::uint64_t>(size);
  return ptx::make_tensor_map(spec);
}

/// The map of the scales of A's blocks (step 44), read in boxes of `rows` rows and one block of K. What lies
/// past M is no part of the tensor, so TMA fills it with zeros: those rows are multiplied by zeros.
inline ptx::TensorMap block_scale_map(const Problem& problem, int rows) {
  ptx::TensorMapSpec spec;
  spec.base = problem.scales_a;
  spec.element = ptx::TensorElement::kFloat32;
  spec.rank = 2;
  spec.extent = {static_cast<std::uint64_t>(problem.shape.m),
                 static_cast<std::uint64_t>(ceil_div(problem.shape.k, kScaleBlock))};
  spec.stride_bytes = {0, static_cast<std::uint64_t>(problem.scales_a_pitch) * sizeof(float)};
  spec.box = {static_cast<std::uint32_t>(rows), 1};
  return ptx::make_tensor_map(spec);
}

/// The map of scales in pieces for 128 rows and 4 blocks of K (step 78), read in boxes of box_k pieces along
/// K and box_rows along the rows.
inline ptx::TensorMap scale_piece_map(const std::uint8_t* scales, int rows, int blocks, int box_k,
                                      int box_rows) {
  constexpr unsigned kWords = kPieceBytes / 4;
  const auto pieces_k = static_cast<unsigned>(ceil_div(blocks, 4));
  return ptx::make_tensor_map(
      {.base = scales,
       .element = ptx::TensorElement::kUint32,
       .rank = 3,
       .extent = {kWords, pieces_k, static_cast<unsigned>(ceil_div(rows, kPieceRows))},
       .stride_bytes = {0, kPieceBytes, std::uint64_t{kPieceBytes} * pieces_k},
       .box = {kWords, static_cast<unsigned>(box_k), static_cast<unsigned>(box_rows)}});
}

/// The map of D in tiles kN columns wide: dimension 2 counts them, so that a subtile that hangs over its tile
/// is clipped there. Only whole tiles are in it.
template <typename D, int kN>
ptx::TensorMap typed_tile_map(const void* d, int m, int n) {
  constexpr std::uint64_t kSize = sizeof(D);
  auto spec = ptx::matrix_spec(d, m, n, 64, kRowBytes / static_cast<int>(kSize), ptx::Swizzle::k128B);
  spec.element = tensor_element(kTypeOf<D>);
  spec.rank = 3;
  spec.extent[0] = static_cast<std::uint64_t>(std::min(kN, n));
  spec.extent[2] = static_cast<std::uint64_t>(std::max(1, n / kN));
  spec.stride_bytes[1] = static_cast<std::uint64_t>(n) * kSize;
  spec.stride_bytes[2] = kN * kSize;
  spec.box[2] = 1;
  return ptx::make_tensor_map(spec);
}

/// The map of an operand of `rows` rows (step 40). K-major, [rows][k]: read in boxes of box_rows rows of 64
/// elements of K. MN-major, [k][rows]: the innermost dimension is that of the rows, and a box of 128 bytes
/// holds 64 of them, for 64 of K.
inline ptx::TensorMap layout_map(const void* matrix, Type type, Major major, int rows, int k, int box_rows) {
  return major == Major::kK ? typed_map(matrix, type, rows, k, box_rows)
                            : typed_map(matrix, type, k, rows, 64);
}

/// Arguments: `first`, and behind it the maps of A, B and D of a problem of any types and layouts.
template <typename T, typename... First>
auto with_typed_maps(const Problem& problem, const First&... first) {
  const auto [m, n, k] = problem.shape;
  const Types& types = problem.types;
  return std::tuple(first..., layout_map(problem.a, types.a, types.major_a, m, k, T::kM),
                    layout_map(problem.b, types.b, types.major_b, n, k, T::kN),
                    typed_map(problem.d, types.d, m, n, 64));
}

/// What the map of C, or of another tensor of an epilogue, is to be: an [m][n] bf16 matrix whose rows lie
/// `pitch` elements apart, read in boxes of 64 x 64 (step 30).
inline ptx::TensorMapSpec source_spec(const bf16* c, int m, int n, std::int64_t pitch) {
  auto spec = ptx::matrix_spec(c, m, n, 64, 64, ptx::Swizzle::k128B);
  spec.stride_bytes[1] = static_cast<std::uint64_t>(pitch) * sizeof(bf16);
  return spec;
}

/// The map of C. Where C is not read it may be anything, also no matrix that has a map; the kernel has one
/// nevertheless, `otherwise`.
inline ptx::TensorMap source_map(const Problem& problem, const ptx::TensorMap& otherwise) {
  const ptx::TensorMapSpec spec = source_spec(problem.c, problem.shape.m, problem.shape.n, problem.c_pitch);
  const bool has_map =
      problem.epilogue.beta != 0 || (problem.c != nullptr && ptx::violated_rule(spec).empty());
  return has_map ? ptx::make_tensor_map(spec) : otherwise;
}

/// The map of an auxiliary tensor that is no mask (step 32); where there is none, `otherwise`.
inline ptx::TensorMap auxiliary_map(const Problem& problem, const ptx::TensorMap& otherwise) {
  const Auxiliary auxiliary = problem.epilogue.auxiliary;
  if (is_mask(auxiliary) || !(is_read(auxiliary) || is_written(auxiliary))) return otherwise;
  return ptx::make_tensor_map(source_spec(static_cast<const bf16*>(problem.auxiliary), problem.shape.m,
                                          problem.shape.n, problem.auxiliary_pitch));
}

/// The map of a D of half as many columns as the product (step 32): boxes of 64 x 32, 64-byte rows, 64-byte
/// swizzle.
inline ptx::TensorMap gated_map(const Problem& problem) {
  return ptx::make_tensor_map(
      ptx::matrix_spec(problem.d, problem.shape.m, problem.shape.n / 2, 64, 32, ptx::Swizzle::k64B));
}

/// The map of packed weights [n][k] (step 45): a box is what a tile of `rows` rows has of 64 of K.
inline ptx::TensorMap weight_map(const void* weights, Type type, int n, int k, int rows) {
  const int lines = weight_block_bytes(type) / kWeightLine;
  auto spec = ptx::matrix_spec(weights, n / kWeightRows * (k / kWeightK) * lines, kWeightLine,
                               rows / kWeightRows * lines, kWeightLine, ptx::Swizzle::kNone);
  spec.element = ptx::TensorElement::kUint8;
  spec.stride_bytes[1] = kWeightLine;
  return ptx::make_tensor_map(spec);
}

/// The same for boxes of a group: `panels` times 64 of K.
inline ptx::TensorMap weight_group_map(const void* weights, Type type, int n, int k, int rows, int panels) {
  const auto lines = static_cast<unsigned>(weight_block_bytes(type) / kWeightLine);
  const unsigned all_lines = static_cast<unsigned>(n / kWeightRows) * lines;
  return ptx::make_tensor_map(
      {.base = weights,
       .element = ptx::TensorElement::kUint8,
       .rank = 3,
       .extent = {kWeightLine, all_lines, static_cast<unsigned>(k / kWeightK)},
       .stride_bytes = {0, kWeightLine, std::uint64_t{all_lines} * kWeightLine},
       .box = {kWeightLine, static_cast<unsigned>(rows / kWeightRows) * lines, static_cast<unsigned>(panels)},
       .l2_promotion = ptx::L2Promotion::k256B});
}

/// The map of activations [m][k] in boxes of `rows` rows and `panels` times 64 of K, each a swizzled tile.
inline ptx::TensorMap panel_map(const void* activations, int m, int k, int rows, int panels,
                                Type type = Type::kBf16) {
  constexpr unsigned kPanelK = 64;
  return ptx::make_tensor_map(
      {.base = activations,
       .element = tensor_element(type),
       .rank = 3,
       .extent = {kPanelK, static_cast<unsigned>(m), static_cast<unsigned>(k) / kPanelK},
       .stride_bytes = {0, std::uint64_t{2} * static_cast<unsigned>(k), std::uint64_t{2} * kPanelK},
       .box = {kPanelK, static_cast<unsigned>(rows), static_cast<unsigned>(panels)},
       .swizzle = ptx::Swizzle::k128B});
}

/// The map of the scales of weights, [k / group][lines][n], read in boxes of a group and `rows` rows.
inline ptx::TensorMap weight_scale_map(const bf16* scales, int n, int groups, int rows, int lines = 1) {
  return ptx::make_tensor_map(ptx::matrix_spec(scales, groups * lines, n, lines, rows, ptx::Swizzle::kNone));
}

}  // namespace gemm
