// Step 31: the store loop says when, a visitor says what: scale, bias and activation as nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bulk_bias.cuh"
#include "gemm/epilogue/activation.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/cooperative.cuh"
#include "gemm/pipeline/ping_pong.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "nodes.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_31 {

inline constexpr int kConsumers = 2;

__device__ __forceinline__ float leaky_relu(float x) {
  return x < 0 ? kLeakySlope * x : x;
}

// Lesson: the tile's biases are loaded once, before it is multiplied, and wait in shared memory. Barriers
// that the store loop has anyway protect them: the first one stands between these writes and the reads, and
// the last one between the reads and the writes for the next tile.
// ANCHOR: shared_column_bias
template <int kN>
struct SharedColumnBias : ColumnBias {
  static constexpr int kShared = kN;
  __device__ __forceinline__ void begin(const Place& at) {
    const int column = at.thread() * 2;
    if (column < kN) ptx::st_shared(at.shared_pair(column), column_biases(at, column));
  }
  __device__ void begin_loop(const Place&) {}
  __device__ __forceinline__ void previsit(const Place& at) {
    for (int unit = 0; unit < 8; ++unit) pairs[unit] = ptx::ld_shared(at.shared_pair(at.column_of(unit)));
  }
};
// ANCHOR_END: shared_column_bias

/// Step 15's store_tile, which tells the visitor of every moment.
template <typename T, typename Visitor>
__device__ __forceinline__ void visit_and_store(const WarpgroupTile<T>& warpgroup, StoreBuffers& buffers,
                                                const ptx::TensorMap* d_map, Visitor& visitor, Place& at) {
  const int warp = warp_index();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane % 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);
  int buffer = 0;
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
    at.row = warpgroup.row + block * 64;
#pragma unroll
    for (at.column = 0; at.column < T::kN; at.column += 64) {
      visitor.each([&](auto& node) { node.begin_loop(at); });
      if (stores_tile()) ptx::cp_async_bulk_wait_group_read<1>();
      // ANCHOR: visit
      ptx::bar_sync(barrier, 128);
      visitor.each([&](auto& node) { node.previsit(at); });
#pragma unroll
      for (int unit = 0; unit < 8; unit += 2) {
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &warpgroup.accumulators[block][(at.column / 8 + unit) * 4 + i * 2];
          float x[2] = {pair[0], pair[1]};
          visitor.each([&](auto& node) { node.visit(x, unit + i / 2, i % 2); });
          pairs[i] = ptx::cvt_rn_bf16x2_f32(x[0], x[1]);
        }
        // ANCHOR: store_pairs
        const int place = ((unit + lane / 16) ^ row % 8) * 8;
        ptx::stmatrix_x4(&buffers.d[buffer][row][place], pairs);
        // ANCHOR_END: store_pairs
        // ANCHOR_END: visit
      }
      visitor.each([&](auto& node) { node.reduce(buffers.d[buffer]); });
      visitor.each([&](auto& node) { node.postreduce(at); });
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      if (stores_tile()) {
        ptx::cp_async_bulk_tensor_2d_store(d_map, at.corner.n + at.column, at.corner.m + at.row,
                                           buffers.d[buffer]);
        visitor.each([&](auto& node) { node.tma_store(at); });
        ptx::cp_async_bulk_commit_group();
      }
      visitor.each([&](auto& node) { node.end_loop(at); });
      buffer ^= 1;
    }
  }
  visitor.each([&](auto& node) { node.end(at); });
}

/// No visitor: store_tile.
struct Plain : Chain<> {};

/// With a tiling of one warpgroup each consumer has tiles of its own, in turn; with two, both have each tile.
template <typename T, int kStages>
using Consumer =
    std::conditional_t<T::kWarpgroups == 1, PingPongConsumer<T, kStages>, CooperativeConsumer<T, kStages>>;

template <typename T, int kStages, typename Visitor>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[kConsumers];
  OrderedBarrierStorage<Consumer<T, kStages>::kTurns> order;
  alignas(16) bf16 visitor[kConsumers][std::max(Visitor::kShared, 1)];
};

template <typename T, int kStages, typename Visitor>
__global__ void __launch_bounds__(Roles<T, kConsumers>::kThreads, 1)
    visitor_kernel(Shape shape, VisitorArguments given, const __grid_constant__ ptx::TensorMap a_map,
                   const __grid_constant__ ptx::TensorMap b_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, Visitor>>();
  using C = Consumer<T, kStages>;
  const CtaTiles<T> tiles(shape, {RasterOrder::kGrouped, 16});
  const int k_tiles = ceil_div(shape.k, T::kK);
  run_ping_pong<T>(shared, tiles, k_tiles, &a_map, &b_map, [&](int me) {
    WarpgroupTile<T> warpgroup;
    C consumer(shared.ring, shared.order, me, k_tiles);
    Visitor visitor;
    Place at{given, shape, shared.visitor[me]};
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
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  });
}

/// A copy without a tensor map takes multiples of 16 bytes; N is a multiple of 8.
inline void require_bulk_alignment(const bf16* bias) {
  if (const auto off = reinterpret_cast<std::uintptr_t>(bias) % 16; off != 0)
    throw std::invalid_argument("the bias begins " + std::to_string(off) +
                                " bytes after a multiple of 16: for a bulk copy, its address must be one");
}

using PingPong = WgmmaTiling<128, 192, 64, 1>;     // each consumer has a tile of its own
using Cooperative = WgmmaTiling<128, 256, 64, 2>;  // both have 64 rows of one

template <typename Visitor, Bias kBias = Bias::kNone, Activation kActivation = Activation::kNone,
          typename T = PingPong>
Variant variant(const char* name, const char* summary) {
  constexpr int kStages = 4;
  using Grid = PersistentCtas<T, Shared<T, kStages, Visitor>, Roles<T, kConsumers>::kThreads>;
  return variant_of<visitor_kernel<T, kStages, Visitor>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       // A kernel with a bias scales, too.
       .epilogues = only({.bias = kBias, .activation = kActivation}, kBias != Bias::kNone)},
      [](const Problem& problem) {
        if (Visitor::kShared > T::kN) require_bulk_alignment(problem.bias);
        const VisitorArguments given{problem.epilogue.alpha, problem.bias};
        return with_tile_maps<T>(problem, problem.shape, given);
      });
}

using InRegisters = Chain<Scale, ColumnBias, Activate<relu>>;
template <typename... Nodes>
using WithBias = Chain<Scale, SharedColumnBias<PingPong::kN>, Nodes...>;
using CooperativeGelu = Chain<Scale, SharedColumnBias<Cooperative::kN>, Activate<gelu_tanh>>;
using enum Activation;

inline const Step kStep{
    .name = "31_visitors",
    .title = "the store loop says when, a visitor says what: scale, bias, activation",
    .builds_on = "30_source_tile",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .epilogue = {.bias = Bias::kColumn, .activation = kRelu},
    .variants = {
        variant<WithBias<Activate<relu>>, Bias::kColumn, kRelu>("bias_relu", "ReLU, biases in shared memory"),
        variant<InRegisters, Bias::kColumn, kRelu>("bias_in_registers", "ReLU, each thread loads its biases"),
        variant<Chain<Scale, BulkColumnBias<PingPong::kN>, Activate<relu>>, Bias::kColumn, kRelu>(
            "bias_by_bulk_copy", "ReLU, a bulk copy brings the biases"),
        variant<WithBias<>, Bias::kColumn>("column_bias", "a bias for each column"),
        variant<Chain<Scale, RowBias>, Bias::kRow>("row_bias", "a bias for each row"),
        variant<WithBias<Activate<leaky_relu>>, Bias::kColumn, kLeakyRelu>("bias_leaky_relu", "LeakyReLU"),
        variant<WithBias<Activate<gelu_tanh>>, Bias::kColumn, kGelu>("bias_gelu", "GELU, with tanh"),
        variant<CooperativeGelu, Bias::kColumn, kGelu, Cooperative>("bias_gelu_cooperative",
                                                                    "the same, both consumers on one tile"),
        variant<WithBias<Activate<gelu_erf>>, Bias::kColumn, kGeluErf>("bias_gelu_erf", "GELU, with erf"),
        variant<WithBias<Activate<silu>>, Bias::kColumn, kSilu>("bias_silu", "SiLU"),
        variant<Chain<EmptyNode>>("identity", "a visitor that does nothing"),
        variant<Plain>("plain", "no visitor: step 15's store")}};

}  // namespace gemm::step_31
