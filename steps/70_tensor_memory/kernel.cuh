// Step 70: the accumulator lives in tensor memory, and one thread issues the multiplications.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_70 {

/// The CTA multiplies a 128 x kN tile, kK at a time. Its accumulator is kN columns of tensor memory; row i of
/// the tile is lane i. The k-tile in shared memory is the one of the Hopper steps (WgmmaTiles).
template <int kTileN, int kTileK, int kCtas>
struct TensorTiling {
  static constexpr int kM = 128;
  static constexpr int kN = kTileN;
  static constexpr int kK = kTileK;
  static constexpr int kCtasPerSm = kCtas;
  static constexpr int kThreads = 128;
  static constexpr int kPanelK = 64;  // a panel is as deep as one swizzle span of 128 bytes
  static constexpr int kPanels = kK / kPanelK;
  // An allocation is a power of 2 of columns.
  static constexpr std::uint32_t kColumns = std::bit_ceil(static_cast<unsigned>(kN));
  // Lesson: what every wgmma says in its opcode (shape, types, majors), tcgen05.mma is told by 32 bits.
  static constexpr std::uint32_t kInstruction = ptx::encode(ptx::InstructionDescriptor{.m = kM, .n = kN});
  static_assert(ptx::instruction_descriptor_fault(kInstruction) == nullptr, "a shape that .kind::f16 has");
  static_assert(kN % 32 == 0 && kK % kPanelK == 0, "the epilogue takes 32 columns at a time");
  static_assert(kColumns * kCtas <= 512, "the CTAs of an SM share its 512 columns");
};

template <typename T>
struct Shared {
  WgmmaTiles<T> tiles;
  std::uint64_t full;           // mbarrier: the bytes of the k-tile have arrived
  std::uint64_t done;           // mbarrier: the multiplications of the k-tile are done
  std::uint32_t tensor_memory;  // where the accumulator is: tcgen05.alloc writes it here
};

/// Issues the multiplication of one k-tile into the accumulator at `d`. One thread of the CTA calls it.
template <typename T>
__device__ __forceinline__ void multiply(const WgmmaTiles<T>& tiles, std::uint32_t d, bool first) {
  const std::uint64_t a =
      ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.a), kPanelSwizzle<T::kPanelK>);
  const std::uint64_t b =
      ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.b), kPanelSwizzle<T::kPanelK>);
#pragma unroll
  for (int k = 0; k < T::kK; k += 16) {
    // 16 elements of K are 32 bytes of the swizzled row; a panel is kM (or kN) rows of 128 bytes.
    const int panel = k / T::kPanelK;
    const int in_row = k % T::kPanelK;
    ptx::tcgen05_mma_f16_ss(d, ptx::advanced(a, 2 * (panel * T::kM * T::kPanelK + in_row)),
                            ptx::advanced(b, 2 * (panel * T::kN * T::kPanelK + in_row)), T::kInstruction,
                            !first || k > 0);
  }
}

// Lesson: tensor memory has 128 lanes, and warp w reaches lanes 32 w to 32 w + 31. So a thread gets a whole
// row of the tile, 32 columns at a time, and writes 16 bytes at a time.
template <typename T>
__device__ __forceinline__ void store(const Gemm& gemm, std::uint32_t d, int tile_row, int tile_column) {
  const int row = tile_row + static_cast<int>(threadIdx.x);
  // ANCHOR: read_accumulators
  const std::uint32_t lanes = ptx::tensor_memory_address(d, threadIdx.x / 32 * 32, 0);
#pragma unroll 1
  for (int column = 0; column < T::kN; column += 32) {
    float values[32];
    ptx::tcgen05_ld_32x32b_x32(values, lanes + static_cast<std::uint32_t>(column));
    ptx::tcgen05_wait_ld();  // until here, the registers belong to the load

    // ANCHOR_END: read_accumulators
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
      const int d_column = tile_column + column + i;
      if (row >= gemm.shape.m || d_column >= gemm.shape.n) continue;
      const uint4 eight = {ptx::cvt_rn_bf16x2_f32(values[i], values[i + 1]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 2], values[i + 3]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 4], values[i + 5]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 6], values[i + 7])};
      ptx::st_global(reinterpret_cast<uint4*>(gemm.d + offset(row, d_column, gemm.shape.n)), eight);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    tensor_memory_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                         const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.done, 1);  // one arrival per phase: that of tcgen05.commit
    ptx::fence_mbarrier_init_release_cluster();
  }
  // Lesson: tensor memory is allocated while the kernel runs, by one whole warp. The CTAs of an SM share it:
  // the instruction waits until the columns are there.
  if (warp == 0) {
    __syncwarp();  // thread 0 was busy elsewhere
    ptx::tcgen05_alloc(&shared.tensor_memory, T::kColumns);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);

  // Lesson: elect_sync tells the compiler that one lane goes on, so that it issues UTCHMMA and UTMALDG once.
  // With threadIdx.x == 0 as the condition it would put a loop over the lanes around each of them.
  // ANCHOR: issuer
  if (warp == 0 && ptx::elect_sync()) {
    // ANCHOR: k_tiles
    std::uint32_t parity = 0;  // parity of the phase that completes next at both barriers
    for (int i = 0; i < k_tiles; ++i) {
      load_tiles<T>(shared.tiles, &shared.full, &a_map, &b_map, tile_row, tile_column, i * T::kK);
      ptx::mbarrier_wait_parity(&shared.full, parity, {"issuer", "full", 0, i});
      // Lesson: the wait orders this thread, not the multiplications that it issues. The fence orders those.
      ptx::tcgen05_fence_after_thread_sync();
      multiply<T>(shared.tiles, d, i == 0);
      // Lesson: no instruction waits for a multiplication. commit has an mbarrier count one arrival when all
      // that this thread has issued is done; then the k-tile has been read, too.
      ptx::tcgen05_commit(&shared.done);
      ptx::mbarrier_wait_parity(&shared.done, parity, {"issuer", "done", 0, i});
      parity ^= 1;
      // ANCHOR_END: k_tiles
    }
    // ANCHOR: hand_over
    ptx::tcgen05_fence_before_thread_sync();
    // ANCHOR_END: issuer
  }
  __syncthreads();  // now every thread comes after the last phase of `done`, for which the issuer waited
  ptx::tcgen05_fence_after_thread_sync();
  store<T>(gemm, d, tile_row, tile_column);
  // ANCHOR_END: hand_over
  __syncthreads();  // every warp has read its lanes
  if (warp == 0) ptx::tcgen05_dealloc(d, T::kColumns);
}

template <int kTileN, int kTileK, int kCtas>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, kTileK, kCtas>;
  constexpr double kCopies = 2.0 * (T::kM + T::kN) / (T::kM * T::kN);
  return variant_of<tensor_memory_kernel<T>, TileCtas<T, Shared<T>, T::kThreads, T::kCtasPerSm>>(
      {.name = name,
       .summary = summary,
       .traffic = {.shared_bytes_per_fma = kCopies + 2.0 / T::kN + 2.0 / T::kM,
                   .global_bytes_per_fma = kCopies}},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

inline const Step kStep{
    .name = "70_tensor_memory",
    .title = "the accumulator in tensor memory, and one thread that issues the multiplications",
    .builds_on = "09_tma",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<128, 64, 4>("128x128", "32 KB, 128 columns, four CTAs per SM"),
                 variant<256, 64, 2>("128x256", "48 KB, 256 columns, two CTAs per SM"),
                 variant<128, 128, 3>("128x128x128", "k-tile of 128: half the round trips, 64 KB"),
                 variant<64, 64, 4>("128x64", "24 KB, 64 columns")}};

}  // namespace gemm::step_70
