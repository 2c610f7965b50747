// What a variant of step 55 is built of: its tile and stages, what is in shared memory beside them, and what
// the producer tells the consumers.
#pragma once

#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/promoting_reader.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/tile/byte_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_55 {

/// A tile of kRows x kColumns. Each warpgroup has 64 rows of it; in a tile of 64 rows, each has 128 columns.
/// A is loaded in boxes of kRowsOfBox rows, and only those that have rows of the group.
template <int kRows, int kColumns, int kRingStages, Phase kOrder = Phase::kAny, int kRowsOfBox = kRows>
struct Fp8Groups {
  static constexpr int kDown = kRows / 64;
  static constexpr int kAcross = kDown == 1 ? kColumns / 128 : 1;
  static constexpr int kConsumers = kDown * kAcross;  // warpgroups; T knows only those below each other
  static constexpr int kBoxRows = kRowsOfBox;
  using T = ByteTiling<kRows, kColumns, kDown>;
  using R = Roles<T, kConsumers>;
  static constexpr int kStages = kRingStages;
  static constexpr Phase kPhase = kOrder;
  static constexpr int kWidth = kColumns / kAcross;  // columns of a warpgroup
  static constexpr int kBuffers = kWidth / 64;
  using Reader = PromotingReader<T, kStages, kWidth, kPhase>;
};

// Lesson: A's scales are [k / 128][m], so M is the innermost coordinate of their map, and it must be a
// multiple of four scales (16 bytes). A group begins anywhere. So a box begins up to three rows before the
// tile, and has four more.
template <typename T>
inline constexpr int kScaleRows = T::kM + 4;

/// A work tile as the consumers need it.
struct alignas(16) ConsumerTile {
  int row;  // the first one, in A and in D
  int end;  // where its group's rows end; 0: there is no tile
  int column;
  int group;
};
__device__ __forceinline__ ConsumerTile consumer_tile(const GroupTile& tile, int group) {
  return {tile.row, tile.end, tile.column, group};
}

template <typename V, typename T = typename V::T>
struct Shared {
  Ring<T, V::kStages> ring;
  struct alignas(128) Scales {
    float rows[kScaleRows<T>];  // [m], from a row on whose number is a multiple of 4
  };
  Scales scales_a[V::kStages];
  alignas(1024) unsigned char d[V::kConsumers][V::kBuffers][64][kRowBytes];  // [warpgroup][buffer][m]
  ConsumerTile following[V::kStages];  // [stage]: beside the last k-tile of a tile, the tile after it
};

/// Rows of A that no box brings are multiplied, too. Nobody stores what comes of them, so D is right whatever
/// they hold. They are zeros all the same: elsewhere, a read of memory that nobody has written is a mistake,
/// and the emulator reports it.
template <int kStages, typename Tiles>
__device__ __forceinline__ void fill_with_zeros(Tiles (&stages)[kStages], int threads) {
  for (auto& stage : stages) {
    constexpr int kVectors = sizeof stage.a / sizeof(uint4);
    for (int i = static_cast<int>(threadIdx.x); i < kVectors; i += threads)
      ptx::st_shared(reinterpret_cast<uint4*>(&stage.a) + i, make_uint4(0, 0, 0, 0));
  }
  ptx::fence_proxy_async_shared_cta();  // before the tensor cores read the zeros and TMA overwrites them
}

/// The scales of a group's B. Each group begins with a block of its own, even where N ends inside one.
__device__ __forceinline__ BlockScales scales_of_group(const BlockScales& given, int group) {
  return {given.values + group * (ceil_div(given.n, kScaleBlock) * given.pitch), given.pitch, given.n};
}

}  // namespace gemm::step_55
