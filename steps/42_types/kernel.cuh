// Step 42: fp16, tf32, fp8 and int8 from one kernel: a k-slab is 32 bytes in every type, the accumulators
// meet their scale in registers, and what is too large for D saturates.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/typed_slab.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_42 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  unsigned char d[T::kWarpgroups][2][64][kRowBytes];  // [warpgroup][buffer][m], swizzled
};

/// Scaled and rounded to D's type, saturating: two neighbours of a row, the left one in the lower bits.
// ANCHOR: pack
template <typename D, typename S>
__device__ __forceinline__ auto pack(S low, S high, float scale) {
  const float x = scaled(low, scale);
  const float y = scaled(high, scale);
  if constexpr (std::is_same_v<D, bf16>) return ptx::cvt_rn_bf16x2_f32(x, y);
  if constexpr (std::is_same_v<D, fp16>) return ptx::cvt_rn_satfinite_f16x2_f32(x, y);
  if constexpr (std::is_same_v<D, e4m3>) return ptx::cvt_rn_satfinite_e4m3x2_f32(x, y);
  if constexpr (std::is_same_v<D, float>) return make_float2(x, y);
  if constexpr (std::is_same_v<D, int8>)
    return static_cast<std::uint16_t>(static_cast<std::uint8_t>(ptx::cvt_rni_sat_s8_f32(y)) << 8 |
                                      static_cast<std::uint8_t>(ptx::cvt_rni_sat_s8_f32(x)));
}
// ANCHOR_END: pack

/// Step 15's store, for rows of 128 bytes, which are 32 to 128 columns of D. stmatrix moves 16-bit elements;
/// others go in pairs. The 8 rows that a warp writes at once share no banks with 8 bits, and do with 32.
template <typename T, typename D, typename S>
__device__ __forceinline__ void store_tile(const S (&sums)[T::kN / 2], float scale,
                                           unsigned char (&buffers)[2][64][kRowBytes],
                                           const ptx::TensorMap* d_map, int row_of_d, int tile_column) {
  constexpr int kColumns = kRowBytes / static_cast<int>(sizeof(D));
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = warp_index() % 4 * 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp_index() / 4);
  const bool stores = threadIdx.x % 128 == 0;
  int buffer = 0;
#pragma unroll
  for (int column = 0; column < T::kN; column += kColumns) {
    if (stores) ptx::cp_async_bulk_wait_group_read<1>();
    ptx::bar_sync(barrier, 128);
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 2) {  // 16 columns
      const S* from = &sums[(column / 8 + j) * 4];
      if constexpr (sizeof(D) == 2) {
        const std::uint32_t pairs[4] = {pack<D>(from[0], from[1], scale), pack<D>(from[2], from[3], scale),
                                        pack<D>(from[4], from[5], scale), pack<D>(from[6], from[7], scale)};
        const int row = first_row + lane % 16;
        const int place = ((j + lane / 16) ^ row % 8) * 16;
        ptx::stmatrix_x4(&buffers[buffer][row][place], pairs);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int first = 2 * i;
          const auto pair = pack<D>(from[first], from[first + 1], scale);
          const int row = first_row + lane / 4 + i % 2 * 8;
          const int byte = ((j + i / 2) * 8 + lane % 4 * 2) * static_cast<int>(sizeof(D));
          auto* const to = &buffers[buffer][row][(byte / 16 ^ row % 8) * 16 + byte % 16];
          ptx::st_shared(reinterpret_cast<std::remove_const_t<decltype(pair)>*>(to), pair);
        }
      }
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(barrier, 128);
    if (stores) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, tile_column + column, row_of_d, buffers[buffer]);
      ptx::cp_async_bulk_commit_group();
    }
    buffer ^= 1;
  }
}

template <typename T, int kStages, typename A, typename B, typename D>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    types_kernel(Shape shape, Raster raster, const float* scales,
                 const __grid_constant__ ptx::TensorMap a_map, const __grid_constant__ ptx::TensorMap b_map,
                 const __grid_constant__ ptx::TensorMap d_map) {
  constexpr int kK = kRowBytes / static_cast<int>(sizeof(A));  // elements of a k-tile
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = static_cast<int>(blockIdx.x); index < tiles.count(); index += step) {
        const TilePosition tile = tile_at(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          auto& stage = ring.stage[fill.stage];
          ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], kRowBytes * (T::kM + T::kN));
          ptx::cp_async_bulk_tensor_2d(stage.a, &a_map, i * kK, tile.m * T::kM, &ring.full[fill.stage]);
          ptx::cp_async_bulk_tensor_2d(stage.b, &b_map, i * kK, tile.n * T::kN, &ring.full[fill.stage]);
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const int row = warp / 4 * 64;
    float scale = 1;
    if (scales != nullptr)
      scale = ptx::ld_global(scales) * ptx::ld_global(scales + 1) * ptx::ld_global(scales + 2);
    Sum<A> sums[T::kN / 2];
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (threadIdx.x % 128 == 0) ring.consumer_release(release);
      release.advance();
    };
    for (int index = static_cast<int>(blockIdx.x); index < tiles.count(); index += step) {
      // ANCHOR: main_loop
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        // ANCHOR: k_tile
        ptx::wgmma_fence_operand(sums);
        ptx::wgmma_fence();
        const auto& stage = ring.stage[read.stage];
        const std::uint64_t a = tile_descriptor<64>(stage.a[0][row]);
        const std::uint64_t b = tile_descriptor<64>(stage.b[0][0]);
#pragma unroll
        for (int byte = 0; byte < kRowBytes; byte += 32)
          multiply_slab<A, B, T::kN>(sums, ptx::advanced(a, byte), ptx::advanced(b, byte), i > 0 || byte > 0);
        ptx::wgmma_commit_group();
        read.advance();
        ptx::wgmma_wait_group<1>();
        ptx::wgmma_fence_operand(sums);
        if (i > 0) release_stage();
        // ANCHOR_END: k_tile
      }
      // ANCHOR_END: main_loop
      const TilePosition tile = tile_at(index, tiles, raster);
      ptx::wgmma_wait_group<0>();
      ptx::wgmma_fence_operand(sums);
      release_stage();
      store_tile<T, D>(sums, scale, shared.d[warp / 4], &d_map, tile.m * T::kM + row, tile.n * T::kN);
    }
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename A, typename B, typename D>
Variant variant(const char* name, const char* summary) {
  using T = ByteTiling<128, 256, 2>;
  constexpr int kStages = 4;
  constexpr int kGroup = std::is_same_v<A, tf32> ? 8 : 16;  // rows of tiles: measured
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<types_kernel<T, kStages, A, B, D>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = kByteTile<T, A>,
       .stages = kStages,
       .traffic = byte_tile_traffic<T, A>(),
       .types = {kTypeOf<A>, kTypeOf<B>, kTypeOf<D>}},
      [](const Problem& problem) {
        const Raster raster{RasterOrder::kGrouped, kGroup};
        return with_typed_maps<T>(problem, problem.shape, raster, problem.scales);
      });
}

inline const Step kStep{
    .name = "42_types",
    .title = "One kernel for fp16, tf32, fp8 and int8: a k-slab is 32 bytes",
    .builds_on = "15_tma_store",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 16, .k_multiple = 16},
    .variants = {
        variant<e4m3, e4m3, bf16>("e4m3", "e4m3 operands, D in bf16"),
        variant<e4m3, e5m2, bf16>("e4m3_e5m2", "B in e5m2"),
        variant<e5m2, e4m3, bf16>("e5m2_e4m3", "A in e5m2"),
        variant<e4m3, e4m3, e4m3>("e4m3_to_e4m3", "D in e4m3, too, saturating"),
        variant<int8, int8, int8>("int8", "int8 operands, exact sums, D in int8, saturating"),
        variant<fp16, fp16, fp16>("fp16", "fp16 operands and D, saturating"),
        variant<tf32, tf32, float>("tf32", "binary32 in memory, of which 13 bits are cut off; D in binary32"),
        variant<bf16, bf16, bf16>("bf16", "step 15's problem, with a scale where there is one")}};

}  // namespace gemm::step_42
