// Step 78: nvfp4. Elements of 4 bits, two in a byte; a ue4m3 scale for every 16 elements of K, which the
// tensor cores apply; and a binary32 scale for each tensor, which the epilogue applies. D is bf16, or
// quantised to what A is.
#pragma once

#include <bit>
#include <cstdint>
#include <tuple>

#include "gemm/epilogue/quantised_store.cuh"
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
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tcgen05_mma_scaled.cuh"
#include "ptx/tcgen05_scaled_descriptor.h"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_78 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kIssuerWarp = 4;
inline constexpr int kLoaderWarp = 5;
inline constexpr int kThreads = 192;

/// A k-tile is 128 bytes of a row, which are 256 elements and four instructions. An instruction multiplies 64
/// elements, and their scales are a piece for 128 rows.
inline constexpr int kTileK = 256;
inline constexpr int kPieces = kTileK / 64;  // along K

/// Where everything is in tensor memory: kAccumulators accumulators, and behind them for each stage of the
/// ring and each instruction a piece of A's scales and those of B's.
template <typename T, int kStages, int kAccumulators>
struct Columns {
  static constexpr int kPiecesB = T::kN / kPieceRows;
  static constexpr std::uint32_t kInstruction = kPieceColumns * (1 + kPiecesB);
  static constexpr std::uint32_t kStage = kPieces * kInstruction;
  static constexpr std::uint32_t kFirstScale = kAccumulators * T::kN;
  static constexpr std::uint32_t kAll = std::bit_ceil(kFirstScale + kStages * kStage);
  static_assert(T::kN % kPieceRows == 0, "a tile begins and ends where pieces do");
  static_assert(kAll <= 512, "an SM has 512 columns");
};

/// The pieces of a k-tile.
template <int kPiecesB>
struct Scales {
  alignas(128) unsigned char a[kPieces][kPieceBytes];            // [k]
  alignas(128) unsigned char b[kPiecesB][kPieces][kPieceBytes];  // [row][k]
};

template <typename T, int kStages, int kAccumulators>
struct Shared {
  Ring<T, kStages> ring;
  Accumulators<T, kAccumulators> accumulators;
  Scales<Columns<T, kStages, kAccumulators>::kPiecesB> scales[kStages];
};

// Lesson: a k-tile has four pieces of scales along K, and at the end of K there may be fewer. A tensor map
// knows where K ends, and TMA fills the rest with zeros, which scale zeros. So one copy for each operand is
// enough.
template <int kPiecesB>
struct LoadScales {
  static constexpr std::uint32_t kBytes = sizeof(Scales<kPiecesB>);
  Scales<kPiecesB>* scales;
  std::uint64_t* full;
  const ptx::TensorMap* a_map;
  const ptx::TensorMap* b_map;

  __device__ __forceinline__ void operator()(int stage, const TilePosition& tile, int k_tile) const {
    // ANCHOR: load_scales
    ptx::cp_async_bulk_tensor_3d(scales[stage].a, a_map, 0, k_tile * kPieces, tile.m, &full[stage]);
    ptx::cp_async_bulk_tensor_3d(scales[stage].b, b_map, 0, k_tile * kPieces, tile.n * kPiecesB,
                                 &full[stage]);
    // ANCHOR_END: load_scales
  }
};

/// Issues the copies of a k-tile's scales to the columns at `columns`, and its multiplication: four
/// instructions, each 64 elements of K deep.
template <typename T, int kPiecesB>
__device__ __forceinline__ void multiply_scaled(const WgmmaTiles<T>& tiles, const Scales<kPiecesB>& scales,
                                                std::uint32_t d, std::uint32_t columns, bool first) {
  constexpr auto kKind = ptx::ScaledKind::kMxf4Nvf4x4;
  constexpr std::uint32_t kInstruction =
      ptx::encode(kKind, ptx::ScaledInstruction{.m = T::kM, .n = T::kN, .scales = ptx::ScaleType::kUe4m3});
  static_assert(ptx::scaled_instruction_fault(kKind, kInstruction) == nullptr);
  const std::uint64_t a = ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.a), ptx::Swizzle::k128B);
  const std::uint64_t b = ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.b), ptx::Swizzle::k128B);
#pragma unroll
  // ANCHOR: multiply_scaled
  for (int k = 0; k < kPieces; ++k) {
    // Lesson: an instruction reads all four bytes of a row's word, so there is no ID to advance. The next 64
    // elements have their scales in other columns.
    const auto step = static_cast<std::uint32_t>(k);
    const std::uint32_t scales_a = columns + step * kPieceColumns * (1 + kPiecesB);
    const std::uint32_t scales_b = scales_a + kPieceColumns;
    copy_scale_piece(scales_a, scales.a[k]);
#pragma unroll
    for (int piece = 0; piece < kPiecesB; ++piece)
      copy_scale_piece(scales_b + static_cast<std::uint32_t>(piece) * kPieceColumns, scales.b[piece][k]);
    ptx::tcgen05_mma_mxf4nvf4_ss<4>(d, ptx::advanced(a, 32 * step), ptx::advanced(b, 32 * step), kInstruction,
                                    scales_a, scales_b, !first || k > 0);
  }
  // ANCHOR_END: multiply_scaled
}

template <typename T, int kStages, int kAccumulators, bool kQuantises>
__global__ void __launch_bounds__(kThreads, 1)
    nvfp4_kernel(Gemm gemm, std::uint8_t* d_scales, const float* tensor_scales,
                 const __grid_constant__ ptx::TensorMap a_map, const __grid_constant__ ptx::TensorMap b_map,
                 const __grid_constant__ ptx::TensorMap a_scale_map,
                 const __grid_constant__ ptx::TensorMap b_scale_map) {
  using Place = Columns<T, kStages, kAccumulators>;
  constexpr Raster kRaster{RasterOrder::kGrouped, 16};  // a constant, so the compiler knows it
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kAccumulators>>();
  Ring<T, kStages>& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  const TileGrid tiles = tile_grid<T>(gemm.shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, kTileK);
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
    // ANCHOR: loader
    // Lesson: to TMA, a row is K / 2 bytes. It need not know that there are two elements in each.
    const Shape in_bytes{gemm.shape.m, gemm.shape.n, gemm.shape.k / 2};
    const PipelineState<kStages> end = produce_typed_tiles<T, e2m1x2>(
        ring, in_bytes, kRaster, &a_map, &b_map,
        LoadScales<Place::kPiecesB>{shared.scales, ring.full, &a_scale_map, &b_scale_map});
    // ANCHOR_END: loader
    ring.producer_tail(end, k_tiles);  // the last commits' arrivals must find this CTA
  } else if (warp == kIssuerWarp && ptx::elect_sync()) {
    PipelineState<kStages> read{0, 0};
    PipelineState<kAccumulators> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      accumulators.acquire(fill);
      const std::uint32_t d = base + static_cast<std::uint32_t>(fill.stage * T::kN);
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        ptx::tcgen05_fence_after_thread_sync();
        const std::uint32_t columns =
            base + Place::kFirstScale + static_cast<std::uint32_t>(read.stage) * Place::kStage;
        multiply_scaled<T>(ring.stage[read.stage], shared.scales[read.stage], d, columns, i == 0);
        ptx::tcgen05_commit(&ring.empty[read.stage]);
        read.advance();
      }
      ptx::tcgen05_commit(&accumulators.full[fill.stage]);
      fill.advance();
    }
  } else if (warp < kEpilogueWarps) {
    // ANCHOR: epilogue
    PipelineState<kAccumulators> read{0, 0};
    const float scale =
        ptx::ld_global(tensor_scales) * ptx::ld_global(tensor_scales + 1) * ptx::ld_global(tensor_scales + 2);
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, kRaster);
      accumulators.wait(read, k_tiles - 1);
      const std::uint32_t d = base + static_cast<std::uint32_t>(read.stage * T::kN);
      if constexpr (kQuantises) {
        QuantisedStore{d_scales}.store<T>(gemm, d, tile.m * T::kM, tile.n * T::kN, scale);
      } else {
        store<T>(gemm, d, tile.m * T::kM, tile.n * T::kN, scale);
      }
      accumulators.release(read);
      read.advance();
    }
    // ANCHOR_END: epilogue
  }
  __syncwarp();     // one lane of two warps was busy elsewhere
  __syncthreads();  // every warp has read its lanes, and nothing is in flight
  if (warp == 0) ptx::tcgen05_dealloc(base, Place::kAll);
}

template <int kTileN, int kStages, int kAccumulators, Type kD = Type::kBf16>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, 1>;  // tiles in shared memory are counted in bf16: 64 are 128 bytes
  using Grid = PersistentCtas<T, Shared<T, kStages, kAccumulators>, kThreads, OneCta, 1>;
  return variant_of<nvfp4_kernel<T, kStages, kAccumulators, kD == Type::kE2m1>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = {T::kM, T::kN, kTileK},
       .stages = kStages,
       .traffic = tensor_tile_traffic<T>(1, 0.5),
       .types = {.a = Type::kE2m1, .b = Type::kE2m1, .d = kD, .scaling = Scaling::kNv}},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        const int blocks = ceil_div(k, kNvBlock);
        constexpr int kPiecesB = Columns<T, kStages, kAccumulators>::kPiecesB;
        return std::tuple(static_cast<const Gemm&>(problem), problem.mx_scales_d, problem.scales,
                          typed_map(problem.a, Type::kE2m1, m, k, T::kM),
                          typed_map(problem.b, Type::kE2m1, n, k, T::kN),
                          scale_piece_map(problem.mx_scales_a, m, blocks, kPieces, 1),
                          scale_piece_map(problem.mx_scales_b, n, blocks, kPieces, kPiecesB));
      });
}

inline const Step kStep{
    .name = "78_nvfp4",
    .title = "nvfp4: 4-bit elements, a ue4m3 scale for 16 of them, and a scale for each tensor",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 32},
    .variants = {variant<128, 6, 2>("128x128", "two accumulators of 128 columns and 192 of scales"),
                 variant<256, 4, 1>("128x256", "one accumulator of 256 columns and 192 of scales"),
                 variant<128, 6, 2, Type::kE2m1>("128x128_quantised",
                                                 "the epilogue makes an operand of the next product")}};

}  // namespace gemm::step_78
