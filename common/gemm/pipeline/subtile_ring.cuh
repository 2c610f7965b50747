// Step 11's ring for something else than k-tiles: 64 x 64 subtiles of a matrix that the epilogue reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/bf16.h"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/where.cuh"

namespace gemm {

/// Where a kernel has no use for a member.
struct NoBuffers {};

/// What a member takes that is not there where its type is empty ([[no_unique_address]]).
template <typename Member>
inline constexpr std::size_t kBytesOf = std::is_empty_v<Member> ? 0 : sizeof(Member);

/// kBuffers subtiles in shared memory, 128-byte rows, 128-byte swizzle, and their barriers. Rows and columns
/// outside of the matrix are zero. A copy counts all of a box's bytes, those outside included. kMore
/// further barriers lie behind them, in what would be padding: where a member lies must not depend on whether
/// a compiler reuses padding, because the host's says how large the struct is and the device's where things
/// are.
template <int kBuffers, int kMore = 0>
struct SubtileRing {
  using State = PipelineState<kBuffers>;
  using Where = ptx::Where;
  static constexpr std::uint32_t kBytes = sizeof(bf16) * 64 * 64;

  struct alignas(1024) Subtile {
    bf16 element[64][64];  // [m][n]
  };
  Subtile buffer[kBuffers];
  std::uint64_t full[kBuffers];  // the subtile has arrived; count 1, the loader
  // The buffer may be overwritten; count 1, a consumer's storing thread. The last kMore are others.
  std::uint64_t empty[kBuffers + kMore];

  __device__ __forceinline__ void init() {
    for (int i = 0; i < kBuffers; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], 1);
    }
  }
  /// `subtile`, here and below, is what reports call the wait.
  __device__ __forceinline__ void producer_acquire(State at, int subtile, Where where = Where::here()) {
    ptx::mbarrier_wait_parity(&empty[at.stage], at.phase, {"loader", "source empty", at.stage, subtile},
                              where);
  }
  /// Fills an acquired buffer with the subtile at (row, column) of the map's matrix. `reads` false: hands the
  /// buffer out with nothing in it, and the matrix is not looked at.
  __device__ __forceinline__ void load(State at, const ptx::TensorMap* map, bool reads, int row, int column) {
    if (!reads) {
      ptx::mbarrier_arrive(&full[at.stage]);
      return;
    }
    ptx::mbarrier_arrive_expect_tx(&full[at.stage], kBytes);
    ptx::cp_async_bulk_tensor_2d(buffer[at.stage].element, map, column, row, &full[at.stage]);
  }
  __device__ __forceinline__ void consumer_wait(State at, int subtile, Where where = Where::here()) {
    ptx::mbarrier_wait_parity(&full[at.stage], at.phase, {"consumer", "source full", at.stage, subtile},
                              where);
  }
  __device__ __forceinline__ void consumer_release(State at, Where where = Where::here()) {
    ptx::mbarrier_arrive(&empty[at.stage], where);
  }
};

/// consumer_release, and on to the next buffer. Without a ring there is nothing to release.
template <int kBuffers>
__device__ __forceinline__ void release_buffer(SubtileRing<kBuffers>& ring, PipelineState<kBuffers>& at) {
  ring.consumer_release(at);
  at.advance();
}
template <int kBuffers>
__device__ __forceinline__ void release_buffer(NoBuffers&, PipelineState<kBuffers>&) {}

}  // namespace gemm
