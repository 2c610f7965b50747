// A bias for each column that no thread loads: one bulk copy brings a tile's, and an mbarrier counts its
// bytes.
#pragma once

#include <cstdint>

#include "nodes.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/tma.cuh"

namespace gemm::step_31 {

// Lesson: the copy may still be under way when the tile has been multiplied, and a barrier of the store loop
// says nothing about it: each thread waits for the bytes. The store loop's barriers do the rest. The first
// one shows all threads that the mbarrier is initialised. The last one, and the proxy fence before it, stand
// between the reads of this tile and the copy for the next.
// ANCHOR: bulk_column_bias
template <int kN>
struct BulkColumnBias : ColumnBias {
  static constexpr int kShared = kN + 8;  // 16 bytes after the biases: an mbarrier and 8 unused
  std::uint32_t copies = 0;
  bool is_awaited = false;

  static __device__ __forceinline__ std::uint64_t* arrived(const Place& at) {
    return reinterpret_cast<std::uint64_t*>(at.shared + kN);
  }
  __device__ __forceinline__ void begin(const Place& at) {
    if (at.thread() == 0) {
      if (copies == 0) {
        ptx::mbarrier_init(arrived(at), 1);
        ptx::fence_mbarrier_init_release_cluster();
      }
      const int columns = min(kN, at.shape.n - at.corner.n);
      const auto bytes = static_cast<std::uint32_t>(columns * static_cast<int>(sizeof(bf16)));
      ptx::mbarrier_arrive_expect_tx(arrived(at), bytes);
      ptx::cp_async_bulk(at.shared, at.given.bias + at.corner.n, bytes, arrived(at));
    }
    ++copies;
    is_awaited = true;
  }
  __device__ void begin_loop(const Place&) {}
  __device__ __forceinline__ void previsit(const Place& at) {
    if (is_awaited) ptx::mbarrier_wait_parity(arrived(at), (copies - 1) % 2, {"consumer", "bias", 0, 0});
    is_awaited = false;
    for (int unit = 0; unit < 8; ++unit) {
      const int column = at.column_of(unit);
      pairs[unit] = at.corner.n + column < at.shape.n ? ptx::ld_shared(at.shared_pair(column)) : 0;
    }
  }
};
// ANCHOR_END: bulk_column_bias

}  // namespace gemm::step_31
