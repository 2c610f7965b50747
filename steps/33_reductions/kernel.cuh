// Step 33: an epilogue reduces. Sums over rows and columns, and the largest magnitude, leave beside D.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/activation.cuh"
#include "gemm/epilogue/narrow_store.cuh"
#include "gemm/epilogue/source_nodes.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/epilogue/tree_nodes.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ping_pong.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/subtile_loader.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "nodes.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "summing_ctas.cuh"

namespace gemm::step_33 {

inline constexpr int kConsumers = 2;

/// Step 32's store loop. A node may look at whole rows before they are stored.
template <typename T, typename Visitor>
__device__ __forceinline__ void visit_and_store(WarpgroupTile<T>& warpgroup, StoreBuffers& buffers,
                                                const ptx::TensorMap* d_map, Visitor& visitor, Place& at) {
  const int warp = warp_index();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane % 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);
  int buffer = 0;
  at.subtile = 0;
#pragma unroll
  // ANCHOR: blocks
  for (at.row = 0; at.row < T::kM; at.row += 64) {
    auto& accumulators = warpgroup.accumulators[at.row / 64];
    visitor.each([&](auto& node) { node.first_visit(at, accumulators); });
#pragma unroll
    for (at.column = 0; at.column < T::kN; at.column += 64) {
      // ANCHOR_END: blocks
      bf16(*d)[64] = at.d = buffers.d[buffer];
      visitor.each([&](auto& node) { node.begin_loop(at); });
      if (stores_tile()) ptx::cp_async_bulk_wait_group_read<1>();
      ptx::bar_sync(barrier, 128);
      visitor.each([&](auto& node) { node.previsit(at); });
#pragma unroll
      for (int unit = 0; unit < 8; unit += 2) {
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &accumulators[(at.column / 8 + unit) * 4 + i * 2];
          float x[2] = {pair[0], pair[1]};
          visitor.visit(x, unit + i / 2, i % 2);
          pairs[i] = ptx::cvt_rn_bf16x2_f32(x[0], x[1]);
        }
        const int place = ((unit + lane / 16) ^ row % 8) * 8;
        // The same address: beside C's it costs no register of its own.
        bf16* const to = Visitor::kSource ? Place::fragments(d, unit) : &d[row][place];
        if constexpr (!Visitor::kNarrows) ptx::stmatrix_x4(to, pairs);
      }
      visitor.each([&](auto& node) { node.reduce(d); });
      visitor.each([&](auto& node) { node.postreduce(at); });
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      if (stores_tile()) {
        ptx::cp_async_bulk_tensor_2d_store(d_map, at.corner.n + at.column, at.corner.m + at.row, d);
        visitor.each([&](auto& node) { node.tma_store(at); });
        ptx::cp_async_bulk_commit_group();
      }
      visitor.each([&](auto& node) { node.end_loop(at); });
      buffer ^= 1;
      ++at.subtile;
      if (Visitor::kLoads) at.read.advance();
    }
  }
  visitor.each([&](auto& node) { node.end(at); });
}

/// No tree: store_tile.
struct Plain : Tree<> {};

template <typename T, int kStages, typename Visitor>
struct Shared {
  using Loaded = std::conditional_t<Visitor::kLoads, LoadedSubtiles<kLoadBuffers>, NoBuffers>;
  Ring<T, kStages> ring;
  StoreBuffers d[kConsumers];
  [[no_unique_address]] Loaded loaded;
  OrderedBarrierStorage<kConsumers> order;
  struct {
    TileSums sums;
    alignas(4) bf16 visitor[std::max(Visitor::kShared, 1)];
  } own[kConsumers];
};

template <typename T, int kStages, typename Visitor>
__global__ void __launch_bounds__(Roles<T, kConsumers>::kThreads, 1)
    reduction_kernel(Shape shape, ReductionArguments given, const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map,
                     const __grid_constant__ ptx::TensorMap tensor_map,
                     const __grid_constant__ ptx::TensorMap d_map,
                     const __grid_constant__ ptx::TensorMap c_map) {
  using S = Shared<T, kStages, Visitor>;
  auto& shared = ptx::dynamic_shared<S>();
  static_assert(sizeof(S) == sizeof(S::ring) + sizeof(S::d) + kBytesOf<typename S::Loaded> +
                                 (sizeof(S::order) + sizeof(S::own) + 1023) / 1024 * 1024,
                "the host and the device disagree about padding");
  using Loader = SubtileLoader<T, kLoadBuffers>;
  static_assert(T::kM == kTileRows && T::kN == kTileColumns, "the nodes know how large a tile is");
  const CtaTiles<T> tiles(shape, {RasterOrder::kGrouped, 16});
  const int k_tiles = ceil_div(shape.k, T::kK);
  const auto consume = [&](int me) {
    WarpgroupTile<T> warpgroup;
    PingPongConsumer<T, kStages> consumer(shared.ring, shared.order, me, k_tiles);
    Visitor visitor;
    auto& own = shared.own[me];
    Place at{{{given, shape, own.visitor}, given, nullptr}, given, own.sums, &tensor_map};
    if constexpr (Visitor::kLoads) at.loaded = &shared.loaded;
    // The first tile belongs to the other consumer.
    if (Visitor::kLoads && me == 1) at.read.advance(Loader::kSubtiles);
    for (int index = tiles.first + me * tiles.step; index < tiles.count(); index += kConsumers * tiles.step) {
      at.corner = tiles.corner(index);
      visitor.each([&](auto& node) { node.begin(at); });
      consumer.multiply(warpgroup);
      consumer.order.wait(kEpilogue, 0, k_tiles - 1);
      if constexpr (std::is_same_v<Visitor, Plain>)
        store_tile<T>(warpgroup, shared.d[me], &d_map, at.corner.m, at.corner.n);
      else
        visit_and_store<T>(warpgroup, shared.d[me], &d_map, visitor, at);
      consumer.order.arrive(kEpilogue);
      if (Visitor::kLoads) at.read.advance(Loader::kSubtiles);  // past the other consumer's subtiles
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  };
  if constexpr (Visitor::kLoads)
    run_ping_pong<T>(shared, tiles, k_tiles, &a_map, &b_map, consume,
                     Loader{shared.loaded, tiles, Visitor::kSource ? &c_map : &tensor_map,
                            min(k_tiles, kStages), !Visitor::kSource || given.beta != 0});
  else
    run_ping_pong<T>(shared, tiles, k_tiles, &a_map, &b_map, consume);
}

template <typename Visitor, Epilogue kEpilogue = Epilogue{}, Combine kCombine = Combine::kOrdered>
Variant variant(const char* name, const char* summary) {
  using T = WgmmaTiling<kTileRows, kTileColumns, 64, 1>;
  constexpr int kStages = 4;
  using Grid = SummingCtas<T, Shared<T, kStages, Visitor>, Roles<T, kConsumers>::kThreads,
                           kEpilogue.reduction, kCombine>;
  EpilogueSupport support = only(kEpilogue, kEpilogue.has_more());
  support.source = Visitor::kSource;
  return variant_of<reduction_kernel<T, kStages, Visitor>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .epilogues = support,
       .types = {.d = Visitor::kNarrows ? Type::kE4m3 : Type::kBf16}},
      [](const Problem& problem, const auto& plan) {
        auto [a_map, b_map, d_map] = tile_maps<T>(problem);
        if (Visitor::kNarrows) d_map = narrow_store_map(problem.d, problem.shape.m, problem.shape.n);
        return std::tuple(problem.shape, Grid::arguments(problem, plan), a_map, b_map,
                          auxiliary_map(problem, d_map), d_map, source_map(problem, d_map));
      });
}

using enum Reduction;
using DGelu = Branch<times, LoadTensor, Activate<gelu_tanh_slope>>;
template <typename... Nodes>
using BiasRelu = Tree<Scale, SharedColumnBias<kTileColumns>, Activate<relu>, Nodes...>;
template <typename... Nodes>
using SourceGelu =
    Tree<Scale, AddSource, SharedColumnBias<kTileColumns>, StoreOverSource, Activate<gelu_tanh>, Nodes...>;
/// What the trees are: their epilogues.
constexpr Epilogue drelu(Reduction reduction) {
  return {.auxiliary = Auxiliary::kMaskBackward, .reduction = reduction};
}
constexpr Epilogue bias_relu(Reduction reduction) {
  return {.bias = Bias::kColumn, .activation = Activation::kRelu, .reduction = reduction};
}
inline constexpr Epilogue kDGelu{.activation = Activation::kGelu,
                                 .auxiliary = Auxiliary::kPreActivationBackward,
                                 .reduction = kColumnSums};
inline constexpr Epilogue kBiasAmax{.bias = Bias::kColumn, .reduction = kAmax};
inline constexpr Epilogue kGeluAmax{.bias = Bias::kColumn,
                                    .activation = Activation::kGelu,
                                    .auxiliary = Auxiliary::kPreActivation,
                                    .reduction = kAmax};
inline constexpr auto kAtomic = Combine::kAtomic;

inline const Step kStep{
    .name = "33_reductions",
    .title = "an epilogue sums over rows and columns, by atomics or in a fixed order",
    .builds_on = "32_aux_tree",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .epilogue = {.beta = 1, .auxiliary = Auxiliary::kMaskBackward, .reduction = kColumnSums},
    .variants = {
        variant<Tree<Scale, KeepMasked, ColumnSums<Ordered>>, drelu(kColumnSums)>(
            "drelu_bgrad", "ReLU's gradient and the bias's, in a fixed order"),
        variant<Tree<Scale, KeepMasked, ColumnSums<Atomic>>, drelu(kColumnSums), kAtomic>(
            "drelu_bgrad_atomic", "the same by atomics"),
        variant<Tree<Scale, DGelu, ColumnSums<Ordered>>, kDGelu>("dgelu_bgrad",
                                                                 "GELU's gradient and the bias's"),
        variant<BiasRelu<ColumnSums<Ordered>>, bias_relu(kColumnSums)>("column_sums",
                                                                       "bias, ReLU, sums over rows"),
        variant<BiasRelu<ColumnSums<Atomic>>, bias_relu(kColumnSums), kAtomic>("column_sums_atomic",
                                                                               "the same by atomics"),
        variant<BiasRelu<RowSums<Ordered>>, bias_relu(kRowSums)>("row_sums", "bias, ReLU, sums over columns"),
        variant<BiasRelu<RowSums<Atomic>>, bias_relu(kRowSums), kAtomic>("row_sums_atomic",
                                                                         "the same by atomics"),
        variant<Tree<Scale, SharedColumnBias<kTileColumns>, Amax>, kBiasAmax>("amax",
                                                                              "bias, the largest magnitude"),
        variant<Tree<Scale, SharedColumnBias<kTileColumns>, Amax, StoreE4m3>, kBiasAmax>(
            "amax_e4m3", "the same, D in e4m3 with a scale"),
        variant<SourceGelu<Amax>, kGeluAmax>("source_gelu_amax",
                                             "beta C, bias, pre-activation out, GELU, the largest magnitude"),
        variant<SourceGelu<Amax, StoreE4m3>, kGeluAmax>("source_gelu_amax_e4m3",
                                                        "the same, D in e4m3 with a scale"),
        variant<Tree<TopKSoftmax>, Epilogue{.reduction = kTopKSoftmax}>(
            "top_k", "softmax of the largest k of a row, which one tile holds"),
        variant<Tree<EmptyNode>>("identity", "a tree that does nothing"),
        variant<Plain>("plain", "no tree: step 15's store")}};

}  // namespace gemm::step_33
