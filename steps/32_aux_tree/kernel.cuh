// Step 32: an epilogue is a tree of nodes, and a node may have a tensor of its own, read or written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/activation.cuh"
#include "gemm/epilogue/source_nodes.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/cooperative.cuh"
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

namespace gemm::step_32 {

inline constexpr int kConsumers = 2;

/// Step 31's store loop. A gated D is half as wide.
template <typename T, typename Visitor, typename P>
__device__ __forceinline__ void visit_and_store(const WarpgroupTile<T>& warpgroup, StoreBuffers& buffers,
                                                const ptx::TensorMap* d_map, Visitor& visitor, P& at) {
  const int warp = warp_index();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane % 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);
  int buffer = 0;
  at.subtile = 0;
#pragma unroll
  // ANCHOR: blocks
  for (int block = 0; block < T::kBlocks; ++block) {
    at.row = warpgroup.row + block * 64;
#pragma unroll
    for (at.column = 0; at.column < T::kN; at.column += 64) {
      // ANCHOR_END: blocks
      bf16(*d)[64] = buffers.d[buffer];
      at.buffer = buffer;
      visitor.each([&](auto& node) { node.begin_loop(at); });
      if (stores_tile()) ptx::cp_async_bulk_wait_group_read<1>();
      ptx::bar_sync(barrier, 128);
      visitor.each([&](auto& node) { node.previsit(at); });
#pragma unroll
      for (int unit = 0; unit < 8; unit += 2) {
        float gated[4];
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &warpgroup.accumulators[block][(at.column / 8 + unit) * 4 + i * 2];
          float x[2] = {pair[0], pair[1]};
          visitor.visit(x, unit + i / 2, i % 2);
          gated[i] = x[0];
          pairs[i] = ptx::cvt_rn_bf16x2_f32(x[0], x[1]);
        }
        // ANCHOR: store_pairs
        const int place = ((unit + lane / 16) ^ row % 8) * 8;
        if constexpr (Visitor::kGates)
          store_gated(d[0], gated, unit);
        else
          ptx::stmatrix_x4(&d[row][place], pairs);
        // ANCHOR_END: store_pairs
      }
      visitor.each([&](auto& node) { node.reduce(d); });
      visitor.each([&](auto& node) { node.postreduce(at); });
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      // ANCHOR: store_subtile
      if (stores_tile()) {
        const int column = at.corner.n + at.column;
        ptx::cp_async_bulk_tensor_2d_store(d_map, Visitor::kGates ? column / 2 : column, at.corner.m + at.row,
                                           d);
        visitor.each([&](auto& node) { node.tma_store(at); });
        ptx::cp_async_bulk_commit_group();
      }
      // ANCHOR_END: store_subtile
      visitor.each([&](auto& node) { node.end_loop(at); });
      buffer ^= 1;
      ++at.subtile;
      for (int i = 0; Visitor::kLoads && i < T::kWarpgroups; ++i) at.read.advance();
    }
  }
  visitor.each([&](auto& node) { node.end(at); });
}

/// No tree: store_tile.
struct Plain : Tree<> {};

/// Subtiles that the loader has room for. Of a cooperative kernel each consumer uses every second one.
template <typename T>
inline constexpr int kLoadBuffers = T::kWarpgroups == 1 ? 4 : 6;

template <typename T, int kStages, typename Visitor>
struct Shared {
  using Loaded = std::conditional_t<Visitor::kLoads, LoadedSubtiles<kLoadBuffers<T>>, NoBuffers>;
  using Stored = std::conditional_t<Visitor::kStores, StoreBuffers[kConsumers], NoBuffers>;
  Ring<T, kStages> ring;
  StoreBuffers d[kConsumers];
  [[no_unique_address]] Loaded loaded;
  [[no_unique_address]] Stored stored;
  [[no_unique_address]] typename EitherConsumer<T, kStages>::Storage order;
  bf16 visitor[kConsumers][std::max(Visitor::kShared, 1)];
};

template <typename T, int kStages, typename Visitor>
__global__ void __launch_bounds__(Roles<T, kConsumers>::kThreads, 1)
    tree_kernel(Shape shape, TreeArguments given, const __grid_constant__ ptx::TensorMap a_map,
                const __grid_constant__ ptx::TensorMap b_map,
                const __grid_constant__ ptx::TensorMap tensor_map,
                const __grid_constant__ ptx::TensorMap d_map, const __grid_constant__ ptx::TensorMap c_map) {
  using S = Shared<T, kStages, Visitor>;
  auto& shared = ptx::dynamic_shared<S>();
  static_assert(sizeof(S) == sizeof(S::ring) + sizeof(S::d) + kBytesOf<typename S::Loaded> +
                                 kBytesOf<typename S::Stored> + 1024,
                "the host and the device disagree about padding");
  using C = EitherConsumer<T, kStages>;
  using Loader = SubtileLoader<T, kLoadBuffers<T>>;
  const CtaTiles<T> tiles(shape, {RasterOrder::kGrouped, 16});
  const int k_tiles = ceil_div(shape.k, T::kK);
  const auto consume = [&](int me) {
    WarpgroupTile<T> warpgroup;
    C consumer(shared.ring, shared.order, me, k_tiles);
    Visitor visitor;
    PlaceOf<kLoadBuffers<T>, T::kWarpgroups> at{
        {given, shape, shared.visitor[me]}, given, &tensor_map, nullptr, nullptr};
    if constexpr (Visitor::kLoads) at.loaded = &shared.loaded;
    if constexpr (Visitor::kStores) at.stored = &shared.stored[me];
    // The first tile, or the first subtile, belongs to the other consumer.
    if (Visitor::kLoads && me == 1) at.read.advance(C::kTurns == 1 ? 1 : Loader::kSubtiles);
    for (int index = tiles.first + me % C::kTurns * tiles.step; index < tiles.count();
         index += C::kTurns * tiles.step) {
      at.corner = tiles.corner(index);
      visitor.each([&](auto& node) { node.begin(at); });
      consumer.multiply(warpgroup);
      consumer.order.wait(kEpilogue, 0, k_tiles - 1);
      if constexpr (std::is_same_v<Visitor, Plain>)
        store_tile<T>(warpgroup, shared.d[me], &d_map, at.corner.m, at.corner.n);
      else
        visit_and_store<T>(warpgroup, shared.d[me], &d_map, visitor, at);
      consumer.order.arrive(kEpilogue);
      if (Visitor::kLoads && C::kTurns > 1) at.read.advance(Loader::kSubtiles);  // past the other consumer's
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

using PingPong = WgmmaTiling<128, 192, 64, 1>;
using Cooperative = WgmmaTiling<128, 256, 64, 2>;

template <typename Visitor, Auxiliary kAuxiliary = Auxiliary::kNone,
          Activation kActivation = Activation::kNone, typename T = PingPong, int kStages = 4>
Variant variant(const char* name, const char* summary) {
  constexpr Bias kBias = Visitor::kShared == 0 ? Bias::kNone : Bias::kColumn;
  using Grid = PersistentCtas<T, Shared<T, kStages, Visitor>, Roles<T, kConsumers>::kThreads>;
  constexpr Epilogue kEpilogue{.bias = kBias, .activation = kActivation, .auxiliary = kAuxiliary};
  EpilogueSupport support = only(kEpilogue, kAuxiliary != Auxiliary::kNone);  // with one it scales, too
  support.source = Visitor::kSource;
  return variant_of<tree_kernel<T, kStages, Visitor>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .epilogues = support},
      [](const Problem& problem) {
        auto [a_map, b_map, d_map] = tile_maps<T>(problem);
        if (kAuxiliary == Auxiliary::kGate) d_map = gated_map(problem);
        return std::tuple(problem.shape, tree_arguments(problem), a_map, b_map, auxiliary_map(problem, d_map),
                          d_map, source_map(problem, d_map));
      });
}

template <typename... Nodes>
using Biased = Tree<Scale, SharedColumnBias<192>, Nodes...>;
template <typename T, typename... Nodes>
using SourceBiased = Tree<Scale, AddSource, SharedColumnBias<T::kN>, StoreOverSource, Nodes...>;
using Residual = Branch<plus, LoadTensor>;
using GeluSlope = Branch<times, LoadTensor, Activate<gelu_tanh_slope>>;
using enum Auxiliary;

inline const Step kStep{
    .name = "32_aux_tree",
    .title = "an epilogue is a tree, and its nodes read and write tensors of their own",
    .builds_on = "31_visitors",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 16, .k_multiple = 8},  // rows of a gated D have half as many elements
    .epilogue = {.beta = 1, .bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = kResidual},
    .variants = {
        variant<Biased<Activate<relu>, Residual>, kResidual, Activation::kRelu>(
            "residual", "ReLU, and a residual after it"),
        variant<Biased<StoreTensor, Activate<gelu_tanh>>, kPreActivation, Activation::kGelu>(
            "gelu_aux", "GELU; the pre-activation goes out"),
        variant<Biased<StoreTensor, Activate<relu>>, kPreActivation, Activation::kRelu>(
            "relu_aux", "ReLU; the pre-activation goes out"),
        variant<Biased<StoreMask, Activate<relu>>, kMask, Activation::kRelu>("relu_mask",
                                                                             "ReLU; a bit mask goes out"),
        variant<Tree<Scale, KeepMasked>, kMaskBackward>("drelu", "ReLU's gradient, from the bit mask"),
        variant<Tree<Scale, GeluSlope>, kPreActivationBackward, Activation::kGelu>(
            "dgelu", "GELU's gradient, from the pre-activation"),
        variant<Biased<Gate<silu>>, kGate, Activation::kSilu>("swiglu",
                                                              "SiLU of even columns, times the odd ones"),
        variant<Biased<Gate<relu>>, kGate, Activation::kRelu>("reglu",
                                                              "ReLU of even columns, times the odd ones"),
        variant<SourceBiased<PingPong, Activate<gelu_tanh>>, kPreActivation, Activation::kGelu>(
            "source_gelu_aux", "beta C before the bias; the pre-activation goes out from where C was"),
        variant<SourceBiased<Cooperative, Activate<gelu_tanh>>, kPreActivation, Activation::kGelu,
                Cooperative, 3>("source_gelu_aux_cooperative", "the same, both consumers on one tile"),
        variant<Tree<EmptyNode>>("identity", "a tree that does nothing"),
        variant<Plain>("plain", "no tree: step 15's store")}};

}  // namespace gemm::step_32
