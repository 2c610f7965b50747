// What step 46 taught: the loop of a warpgroup that promotes begins in the middle of a k-tile's work, so that
// each promotion is followed directly by the next part.
#pragma once

#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/scaled_parts.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/wgmma.cuh"

namespace gemm {

// Step 46's warpgroup multiplies all columns of the tile; here it may have some of them.

/// A consumer warpgroup's way through a ring of k-tiles with A's scales beside them: 64 rows x kWidth columns
/// of the tile, from (row, column) of it on.
template <typename T, int kStages, int kWidth, Phase kPhase>
struct PromotingReader {
  using Blocks = LaneScales<kWidth>;
  static constexpr int kColumns = part_columns(kWidth);  // columns of a part
  static constexpr int kParts = kWidth / kColumns;       // parts in a k-tile
  static_assert(kWidth % kColumns == 0, "parts are equally wide");

  Ring<T, kStages>& ring;
  int row;
  int column;
  int thread_row = row + warp_index() % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;  // and 8 below
  IssueOrder<kPhase> order{};
  PipelineState<kStages> read{0, 0};
  Blocks scales_b{};
  float scales_a[2]{};               // those of this thread's two rows
  float sums[kWidth / 2];            // binary32: 64 rows x kWidth
  float accumulators[kColumns / 2];  // the tensor cores', 14 bits: 64 rows x kColumns

  __device__ __forceinline__ void issue(int part, int stage) {
    order.wait();
    issue_part(accumulators, ring.stage[stage], row, column + part * kColumns);
    order.pass();
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (float& sum : sums) sum = 0;
  }

  /// Finishes a k-tile whose first part has been issued. `first`: the column of a block of B in which this
  /// warpgroup's columns begin. `meanwhile`: what a thread does while the last part is multiplied; it
  /// advances and waits. `next`: what follows the last promotion. Both are known where this is called, so
  /// that no wgmma is behind a condition.
  template <typename Meanwhile, typename Next>
  __device__ __forceinline__ void finish_k_tile(int k_tile, int first, const Meanwhile& meanwhile,
                                                const Next& next) {
    const PipelineState<kStages> at = read;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      float scales[Blocks::kBlocks][2];
      scale_part<kColumns>(scales, scales_a, part * kColumns, scales_b, k_tile);
      if (part + 1 == kParts) {
        ptx::fence_proxy_async_shared_cta();  // scales were read; the next copy overwrites them
        meanwhile();
      }
      ptx::wgmma_wait_group<0>();
      ptx::wgmma_fence_operand(accumulators);
      if (part + 1 == kParts) {
        __syncwarp();  // every lane has read what is in the stage, and beside it
        if (threadIdx.x % 32 == 0) ring.consumer_release(at);
      }
      promote<Blocks>(sums, accumulators, scales, part * kColumns, first);
      if (part + 1 < kParts)
        issue(part + 1, at.stage);
      else
        next();
    }
  }
};

}  // namespace gemm
