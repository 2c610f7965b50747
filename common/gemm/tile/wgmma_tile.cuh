// What step 08 taught: a k-tile in 128-byte swizzled shared memory, multiplied by warpgroups with wgmma.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma.cuh"

namespace gemm {

/// The CTA multiplies a kM x kN tile, kK at a time, with kWarpgroups warpgroups of 128 threads; each owns kM
/// / kWarpgroups rows, in blocks of 64, over the whole width.
template <int kTileM, int kTileN, int kTileK, int kGroups, int kCtas = 1>
struct WgmmaTiling {
  static constexpr int kM = kTileM;
  static constexpr int kN = kTileN;
  static constexpr int kK = kTileK;
  static constexpr int kCtasPerSm = kCtas;
  static constexpr int kWarpgroups = kGroups;
  static constexpr int kThreads = 128 * kWarpgroups;
  static constexpr int kWarpgroupM = kM / kWarpgroups;
  static constexpr int kBlocks = kWarpgroupM / 64;  // m64 blocks of a warpgroup
  // Columns of one wgmma. With four warpgroups a CTA starts with 128 registers a thread, and ptxas takes no
  // instruction that needs more than that, whatever setmaxnreg says.
  static constexpr int kInstructionN = kGroups == 3 && kN > 192 ? kN / 2 : kN;
  // A panel is as deep as one swizzle span: 128 bytes, or 64 when the whole k-tile is no deeper.
  static constexpr int kPanelK = kK < 64 ? kK : 64;
  static constexpr int kPanels = kK / kPanelK;
  static_assert(kM % (64 * kWarpgroups) == 0, "a wgmma is 64 rows high");
  static_assert(kN % 8 == 0 && kN <= 256, "a wgmma is 8 to 256 columns wide");
  static_assert(kK % 64 == 0 || kK == 32, "rows of 128 or 64 bytes, the span of the swizzle");
};

/// The swizzle of rows of kPanelK elements.
template <int kPanelK>
inline constexpr ptx::Swizzle kPanelSwizzle = kPanelK == 64 ? ptx::Swizzle::k128B : ptx::Swizzle::k64B;

/// One k-tile of both operands. Every panel is a tile of its own: rows of one swizzle span, 1024-byte
/// aligned.
template <typename T>
struct alignas(1024) WgmmaTiles {
  static constexpr int kBytes = 2 * (T::kM + T::kN) * T::kK;

  bf16 a[T::kPanels][T::kM][T::kPanelK];  // [panel][m][k]
  bf16 b[T::kPanels][T::kN][T::kPanelK];  // [panel][n][k]
  static_assert(T::kM % 8 == 0 && T::kN % 8 == 0, "panels stay aligned to 8 rows, the swizzle's period");
};

/// Descriptor of a swizzled K-major tile that starts at `element` (the first row; inside it a multiple of 16
/// along K) and has rows of kPanelK elements.
template <int kPanelK>
__device__ __forceinline__ std::uint64_t tile_descriptor(const bf16* element) {
  return ptx::k_major_descriptor(ptx::shared_address(element), kPanelSwizzle<kPanelK>);
}

/// Lane 0's value, known to the compiler to be the same in all lanes: branches on it are uniform, and what is
/// computed from it lives in uniform registers, where descriptors are needed. All lanes of a warp call it.
__device__ __forceinline__ int warp_uniform(int value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

/// The number of this thread's warp in the CTA, warp-uniform.
__device__ __forceinline__ int warp_index() {
  return warp_uniform(static_cast<int>(threadIdx.x) / 32);
}

/// The part of D that one warpgroup accumulates in registers, fp32.
template <typename T>
struct WarpgroupTile {
  // ANCHOR: warpgroup_row
  int row = warp_index() / 4 % T::kWarpgroups * T::kWarpgroupM;  // in the CTA's tile
  // ANCHOR_END: warpgroup_row
  float accumulators[T::kBlocks][T::kN / 2];

  /// Issues the multiplication of one k-tile, as one wgmma group. `first`: the accumulators are overwritten.
  __device__ __forceinline__ void issue(const WgmmaTiles<T>& tiles, bool first) {
    fence_accumulators();
    ptx::wgmma_fence();
    const std::uint64_t a = tile_descriptor<T::kPanelK>(&tiles.a[0][row][0]);
    const std::uint64_t b = tile_descriptor<T::kPanelK>(&tiles.b[0][0][0]);
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
#pragma unroll
      for (int k = 0; k < T::kPanelK; k += 16) {
#pragma unroll
        for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
          for (int column = 0; column < T::kN; column += T::kInstructionN) {
            ptx::wgmma_m64nNk16_f32_bf16_ss<T::kInstructionN>(
                columns(block, column), ptx::advanced(a, 2 * ((panel * T::kM + block * 64) * T::kPanelK + k)),
                ptx::advanced(b, 2 * ((panel * T::kN + column) * T::kPanelK + k)),
                !first || panel > 0 || k > 0);
          }
        }
      }
    }
    ptx::wgmma_commit_group();
  }

  /// Waits until at most kPending groups are running. Only after wait<0>() may `accumulators` be read.
  template <int kPending>
  __device__ __forceinline__ void wait() {
    ptx::wgmma_wait_group<kPending>();
    fence_accumulators();
  }

  /// Nobody reads the accumulators any more. A `wgmma` names them as its input even where it overwrites them,
  /// so without this the compiler keeps each of them from its last use to the next tile.
  __device__ __forceinline__ void forget() {
#pragma unroll
    for (auto& block : accumulators) {
#pragma unroll
      for (float& accumulator : block) accumulator = 0;
    }
  }

  /// Rounds to bf16 and writes what lies inside D; (tile_row, tile_column) is the corner of the CTA's tile.
  __device__ __forceinline__ void store(const Gemm& gemm, int tile_row, int tile_column) const {
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kStore);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int d_row = tile_row + row + block * 64 + warp * 16 + half * 8 + lane / 4;
        if (d_row >= gemm.shape.m) continue;
#pragma unroll
        // ANCHOR: store_pairs
        for (int j = 0; j < T::kN / 8; ++j) {
          const int d_column = tile_column + j * 8 + lane % 4 * 2;
          if (d_column >= gemm.shape.n) continue;
          ptx::st_global(reinterpret_cast<std::uint32_t*>(gemm.d + offset(d_row, d_column, gemm.shape.n)),
                         ptx::cvt_rn_bf16x2_f32(accumulators[block][4 * j + 2 * half],
                                                accumulators[block][4 * j + 2 * half + 1]));
          // ANCHOR_END: store_pairs
        }
      }
    }
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kNone);
  }

 private:
  using InstructionAccumulators = float[T::kInstructionN / 2];
  __device__ __forceinline__ InstructionAccumulators& columns(int block, int column) {
    return reinterpret_cast<InstructionAccumulators&>(accumulators[block][column / 2]);
  }
  __device__ __forceinline__ void fence_accumulators() {
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) ptx::wgmma_fence_operand(accumulators[block]);
  }
};

/// Traffic of a CTA tile: operands cross shared memory once on the way in; wgmma reads A once and B once
/// every 64 rows. What the CTAs of a cluster_m x cluster_n cluster have in common is asked of L2 once.
template <typename T>
constexpr Traffic wgmma_tile_traffic(int cluster_m = 1, int cluster_n = 1) {
  const double copies = 2.0 * (T::kM + T::kN) / (T::kM * T::kN);
  return {.shared_bytes_per_fma = copies + 2.0 / T::kN + 2.0 / 64,
          .global_bytes_per_fma = (2.0 * T::kM / cluster_n + 2.0 * T::kN / cluster_m) / (T::kM * T::kN)};
}

}  // namespace gemm
