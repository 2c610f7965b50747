// Step 77: operands of 8 bits whose rows have a ue8m0 scale for every 32 elements of K. The scales come
// through the ring and go on to tensor memory, and the tensor cores multiply with them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/accumulators.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/typed_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/scale_piece.cuh"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_cp.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tcgen05_mma_scaled.cuh"
#include "ptx/tcgen05_scaled_descriptor.h"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_77 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kIssuerWarp = 4;
inline constexpr int kLoaderWarp = 5;
inline constexpr int kThreads = 192;

/// Where everything is in tensor memory: kAccumulators accumulators, and behind them for each stage of the
/// ring a piece of A's scales and what the tile needs of B's. A k-tile has 4 blocks, so one piece for 128
/// rows.
template <typename T, int kStages, int kAccumulators>
struct Columns {
  // A tile that begins in the middle of 128 rows of B needs a piece more.
  static constexpr int kPiecesB = ceil_div(T::kN + T::kN % kPieceRows, kPieceRows);
  static constexpr std::uint32_t kScales = kPieceColumns * (1 + kPiecesB);  // one stage
  static constexpr std::uint32_t kFirstScale = kAccumulators * T::kN;
  static constexpr std::uint32_t kAll = std::bit_ceil(kFirstScale + kStages * kScales);
  static_assert(kAll <= 512, "an SM has 512 columns");
};

template <typename T, int kStages, int kAccumulators>
struct Shared {
  Ring<T, kStages> ring;
  Accumulators<T, kAccumulators> accumulators;
  alignas(128) unsigned char scales_a[kStages][kPieceBytes];  // [stage]
  alignas(128) unsigned char scales_b[kStages][Columns<T, kStages, kAccumulators>::kPiecesB][kPieceBytes];
};

/// The scales in global memory, in pieces: [rows / 128][K / 128].
struct Scales {
  const std::uint8_t* a;
  const std::uint8_t* b;
  int k_pieces;
  int last_of_b;  // its last 128 rows

  __device__ __forceinline__ const std::uint8_t* of_a(int rows, int k_tile) const {
    return a + offset(rows, k_tile, k_pieces) * kPieceBytes;
  }
  __device__ __forceinline__ const std::uint8_t* of_b(int rows, int k_tile) const {
    return b + offset(std::min(rows, last_of_b), k_tile, k_pieces) * kPieceBytes;
  }
};

// Lesson: the scales travel with the k-tile that they scale. They lie in global memory as tensor memory wants
// them, so a bulk copy brings a piece, and its bytes count at the stage's full barrier.
template <typename T, int kStages, int kAccumulators>
struct LoadScales {
  static constexpr int kPiecesB = Columns<T, kStages, kAccumulators>::kPiecesB;
  static constexpr std::uint32_t kBytes = kPieceBytes * (1 + kPiecesB);
  Shared<T, kStages, kAccumulators>& shared;
  const Scales& scales;

  __device__ __forceinline__ void operator()(int stage, const TilePosition& tile, int k_tile) const {
    // ANCHOR: load_scales
    std::uint64_t* const full = &shared.ring.full[stage];
    ptx::cp_async_bulk(shared.scales_a[stage], scales.of_a(tile.m, k_tile), kPieceBytes, full);
#pragma unroll
    for (int piece = 0; piece < kPiecesB; ++piece)
      ptx::cp_async_bulk(shared.scales_b[stage][piece],
                         scales.of_b(tile.n * T::kN / kPieceRows + piece, k_tile), kPieceBytes, full);
    // ANCHOR_END: load_scales
  }
};

/// Issues the copy of a piece to all four quarters of the lanes.
__device__ __forceinline__ void copy_piece(std::uint32_t columns, const unsigned char* piece) {
  // ANCHOR: copy_piece
  // 8 rows of 16 bytes are 128 contiguous bytes: no swizzle, and one unit along K.
  ptx::tcgen05_cp_32x128b_warpx4(columns, ptx::tcgen05_encode({.address = ptx::shared_address(piece),
                                                               .leading_bytes = 16,  // ignored
                                                               .stride_bytes = 128}));
  // ANCHOR_END: copy_piece
}

/// Issues the multiplication of a k-tile: four instructions, each 32 elements of K deep, with the scales at
/// the two addresses.
template <typename T>
__device__ __forceinline__ void multiply_scaled(const WgmmaTiles<T>& tiles, std::uint32_t d,
                                                std::uint32_t scales_a, std::uint32_t scales_b, bool first) {
  constexpr std::uint32_t kInstruction =
      ptx::encode(ptx::ScaledKind::kMxf8f6f4, ptx::ScaledInstruction{.m = T::kM, .n = T::kN});
  static_assert(ptx::scaled_instruction_fault(ptx::ScaledKind::kMxf8f6f4, kInstruction) == nullptr);
  const std::uint64_t a = ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.a), ptx::Swizzle::k128B);
  const std::uint64_t b = ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.b), ptx::Swizzle::k128B);
#pragma unroll
  // ANCHOR: multiply_scaled
  for (int block = 0; block < 4; ++block) {
    // Lesson: the four scales of a row are the four bytes of a word. The scale factor IDs say which of them
    // scales these 32 elements; they are part of the instruction descriptor.
    const auto id = static_cast<std::uint32_t>(block);
    ptx::tcgen05_mma_mxf8f6f4_ss(d, ptx::advanced(a, 32 * id), ptx::advanced(b, 32 * id),
                                 ptx::with_scale_ids(kInstruction, id), scales_a, scales_b,
                                 !first || block > 0);
  }
  // ANCHOR_END: multiply_scaled
}

template <typename T, int kStages, int kAccumulators>
__global__ void __launch_bounds__(kThreads, 1)
    block_scaled_kernel(Gemm gemm, Scales scales, const __grid_constant__ ptx::TensorMap a_map,
                        const __grid_constant__ ptx::TensorMap b_map) {
  using Place = Columns<T, kStages, kAccumulators>;
  constexpr Raster kRaster{RasterOrder::kGrouped, 16};  // a constant, so the compiler knows it
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kAccumulators>>();
  Ring<T, kStages>& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  const TileGrid tiles = tile_grid<T>(gemm.shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, kRowBytes);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);  // one arrival releases a stage: that of tcgen05.commit
    accumulators.init(kEpilogueWarps);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (warp == 0) {
    __syncwarp();
    ptx::tcgen05_alloc(&accumulators.base, Place::kAll);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const std::uint32_t base = ptx::ld_shared(&accumulators.base);

  if (warp == kLoaderWarp && ptx::elect_sync()) {
    const PipelineState<kStages> end = produce_typed_tiles<T, e4m3>(
        ring, gemm.shape, kRaster, &a_map, &b_map, LoadScales<T, kStages, kAccumulators>{shared, scales});
    ring.producer_tail(end, k_tiles);  // the last commits' arrivals must find this CTA
  } else if (warp == kIssuerWarp && ptx::elect_sync()) {
    // ANCHOR: issuer
    PipelineState<kStages> read{0, 0};
    PipelineState<kAccumulators> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, kRaster);
      accumulators.acquire(fill);
      const std::uint32_t d = base + static_cast<std::uint32_t>(fill.stage * T::kN);
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        ptx::tcgen05_fence_after_thread_sync();
        // Lesson: a multiplication is executed behind the copies that its thread has issued before it, so
        // nothing waits in between. The other way round nothing orders them: the next scales would overwrite
        // these. So each stage has columns of its own, and the commit that releases the stage releases them.
        const std::uint32_t scales_a =
            base + Place::kFirstScale + static_cast<std::uint32_t>(read.stage) * Place::kScales;
        const std::uint32_t scales_b = scales_a + kPieceColumns;
        copy_piece(scales_a, shared.scales_a[read.stage]);
#pragma unroll
        for (int piece = 0; piece < Place::kPiecesB; ++piece)
          copy_piece(scales_b + static_cast<std::uint32_t>(piece) * kPieceColumns,
                     shared.scales_b[read.stage][piece]);
        const auto begins = static_cast<std::uint32_t>(tile.n * T::kN % kPieceRows / 32);
        multiply_scaled<T>(ring.stage[read.stage], d, scales_a, scales_b + begins, i == 0);
        ptx::tcgen05_commit(&ring.empty[read.stage]);
        read.advance();
      }
      ptx::tcgen05_commit(&accumulators.full[fill.stage]);
      fill.advance();
      // ANCHOR_END: issuer
    }
  } else if (warp < kEpilogueWarps) {
    PipelineState<kAccumulators> read{0, 0};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, kRaster);
      accumulators.wait(read, k_tiles - 1);
      store<T>(gemm, base + static_cast<std::uint32_t>(read.stage * T::kN), tile.m * T::kM, tile.n * T::kN);
      accumulators.release(read);
      read.advance();
    }
  }
  __syncwarp();     // one lane of two warps was busy elsewhere
  __syncthreads();  // every warp has read its lanes, and nothing is in flight
  if (warp == 0) ptx::tcgen05_dealloc(base, Place::kAll);
}

template <int kTileN, int kStages, int kAccumulators>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, 1>;  // tiles in shared memory are counted in bf16: 64 are 128 bytes
  using Grid = PersistentCtas<T, Shared<T, kStages, kAccumulators>, kThreads, OneCta, 1>;
  return variant_of<block_scaled_kernel<T, kStages, kAccumulators>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = kByteTile<T, e4m3>,
       .stages = kStages,
       .traffic = tensor_tile_traffic<T>(1, 1),
       .types = {.a = Type::kE4m3, .b = Type::kE4m3, .d = Type::kBf16, .scaling = Scaling::kMx}},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        const Scales scales{problem.mx_scales_a, problem.mx_scales_b, ceil_div(k, kRowBytes),
                            ceil_div(n, kPieceRows) - 1};
        return std::tuple(static_cast<const Gemm&>(problem), scales,
                          typed_map(problem.a, Type::kE4m3, m, k, T::kM),
                          typed_map(problem.b, Type::kE4m3, n, k, T::kN));
      });
}

inline const Step kStep{
    .name = "77_block_scaled",
    .title = "mxf8f6f4: a scale for 32 elements of K, in tensor memory, multiplied by the tensor cores",
    .builds_on = "73_roles_two_accumulators",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 16},
    .variants = {
        variant<128, 6, 2>("128x128", "two accumulators of 128 columns"),
        variant<192, 5, 2>("128x192", "two of 192, and every second tile begins inside a piece of scales"),
        variant<256, 4, 1>("128x256", "one accumulator: two of 256 leave no column for scales")}};

}  // namespace gemm::step_77
