// The nodes of step 33's trees: sums over columns and rows, the largest magnitude, and the top k of a row.
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/epilogue/tree_nodes.cuh"
#include "gemm/problem/gemm.h"
#include "ptx/atomic.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_33 {

/// What the nodes of a tree read and write, reductions included.
struct ReductionArguments : TreeArguments {
  float* result;            // [n], [m] or [1]
  float* partials;          // [tiles across the sum][tiles along it][a tile's], for a fixed order
  std::uint32_t* counters;  // [tiles across it]: tiles whose partials are there; zero between launches
  int top_k;
  const float* d_scale;  // the scale of a D that is e4m3
};

inline constexpr int kTileRows = 128;
inline constexpr int kTileColumns = 192;

/// A tile's sums, in shared memory.
struct TileSums {
  alignas(8) float of_warp[4][kTileColumns];  // [warp][n]
  std::uint32_t is_last;                      // whether this CTA is the last whose sums are added
};

/// Step 32's place in D, and where a tile's sums go.
struct Place : TreePlace {
  const ReductionArguments& reductions;
  TileSums& sums;             // the consumer's own
  const ptx::TensorMap* map;  // the stored tensor's
  bf16 (*d)[64] = nullptr;    // the subtile's buffer

  __device__ __forceinline__ bool has_row(int half) const { return corner.m + row_of(half) < shape.m; }
  static __device__ __forceinline__ void sync_consumer() { ptx::bar_sync(1 + threadIdx.x / 128, 128); }
};

template <Node<Place>... Nodes>
using Tree = TreeAt<Place, Nodes...>;

/// The tile's place among those whose sums are added: they are D's at [first, first + kCount), less what lies
/// outside of it.
template <int kCount>
struct Added {
  int number;  // this tile's, below `tiles`
  int tiles;
  int first;
  int length;  // the result's

  __device__ __forceinline__ bool has(int i) const { return first + i < length; }
  /// Where the partial of tile number `tile` is. It sums 128 elements of D or more, so 32 bits are enough.
  __device__ __forceinline__ int partial(int tile, int i) const {
    return (first / kCount * tiles + tile) * kCount + i;
  }
};

/// The sums of tiles are added where they meet, in the order in which they arrive.
struct Atomic {
  template <typename OfTile>
  static __device__ __forceinline__ void put(const Place& at, const OfTile& mine, int i, float sum) {
    // ANCHOR: put_atomic
    ptx::red_add_relaxed_gpu(at.reductions.result + mine.first + i, sum);
    // ANCHOR_END: put_atomic
  }
  template <typename OfTile>
  static __device__ __forceinline__ void finish(const Place&, const OfTile&) {}
};

// Lesson: each tile writes its sums to a row of their own. The consumer that finds by a counter that it is
// the last of these tiles adds all rows, from the first to the last, whoever wrote them and when. One thread
// counts, and it counts after a barrier: its release covers what the other 127 have written. The same thread
// acquires what the other tiles released, and a second barrier passes that on.
struct Ordered {
  static constexpr int kInFlight = 64;  // loads per thread
  template <int kCount>
  static __device__ __forceinline__ void put(const Place& at, const Added<kCount>& mine, int i, float sum) {
    // ANCHOR: put_ordered
    ptx::st_global(at.reductions.partials + mine.partial(mine.number, i), sum);
    // ANCHOR_END: put_ordered
  }
  // ANCHOR: count
  template <int kCount>
  static __device__ __forceinline__ void finish(const Place& at, const Added<kCount>& mine) {
    Place::sync_consumer();
    if (stores_tile()) {
      std::uint32_t* const count = at.reductions.counters + mine.first / kCount;
      const bool last = ptx::atom_add_acq_rel_gpu(count, 1) + 1 == static_cast<std::uint32_t>(mine.tiles);
      if (last) ptx::st_relaxed_gpu(count, 0);  // for the next launch
      ptx::st_shared(&at.sums.is_last, last ? 1u : 0u);
    }
    Place::sync_consumer();
    if (ptx::ld_shared(&at.sums.is_last) == 0) return;
    // ANCHOR_END: count
    // ANCHOR: add_partials
    for (int i = Place::thread(); i < kCount && mine.has(i); i += 128) {
      const float* const partials = at.reductions.partials + mine.partial(0, i);
      float sum = 0;
      for (int first = 0; first < mine.tiles; first += kInFlight) {
        float of_tile[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j)
          of_tile[j] =
              first + j < mine.tiles ? ptx::ld_global(partials + offset(first + j, 0, kCount)) : 0.0f;
#pragma unroll
        for (const float one : of_tile) sum += one;
      }
      ptx::st_global(at.reductions.result + mine.first + i, sum);
    }
    // ANCHOR_END: add_partials
  }
};

// Lesson: eight lanes have the same 16 columns of a subtile, in different rows. A lane gives eight of its
// sums away and adds the eight that it gets, then four, then two: 14 exchanges, where each column on its own
// would take three. Within a round none waits for another, and a tile has 18 rounds. The condition chooses
// between values, not between array elements: those would need an address, and registers have none.
// ANCHOR: give_and_add
template <int kGiven>
__device__ __forceinline__ void give_and_add(float (&sums)[16]) {
  const bool keeps_second = (Place::lane() & 2 * kGiven) != 0;
#pragma unroll
  for (int i = 0; i < kGiven; ++i) {
    const float first = sums[i];
    const float second = sums[kGiven + i];
    const float given = __shfl_xor_sync(~0u, keeps_second ? first : second, 2 * kGiven);
    sums[i] = (keeps_second ? second : first) + given;
  }
}
// ANCHOR_END: give_and_add
__device__ __forceinline__ void sum_of_warp(float (&sums)[16]) {
  give_and_add<8>(sums);
  give_and_add<4>(sums);
  give_and_add<2>(sums);
}

/// Sums over the rows of D.
template <typename Combined>
struct ColumnSums : EmptyNode {
  float2* mine;        // in TileSums: two columns of the subtile, whose sums this lane has in the end
  float is_row[2];     // [half]; 1, or 0 outside of D
  bool is_first_rows;  // the tile's first 64
  float sums[16];      // over this thread's rows, [unit][column]

  __device__ __forceinline__ void begin_loop(const Place& at) {
    mine = reinterpret_cast<float2*>(&at.sums.of_warp[Place::thread() / 32][at.column]) + Place::lane();
    for (int half = 0; half < 2; ++half) is_row[half] = at.has_row(half) ? 1 : 0;
    is_first_rows = at.row == 0;
  }
  // Lesson: what lies outside of D is not zero here: below the last row the product is, and the bias is added
  // to it all the same.
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) {
      float& sum = sums[unit * 2 + i];
      sum = half == 0 ? is_row[half] * x[i] : fmaf(is_row[half], x[i], sum);
    }
  }
  __device__ __forceinline__ void reduce(bf16 (*)[64]) {
    sum_of_warp(sums);
    const float2 above = is_first_rows ? float2{0, 0} : ptx::ld_shared(mine);
    ptx::st_shared(mine, float2{above.x + sums[0], above.y + sums[1]});
  }
  __device__ __forceinline__ void end(const Place& at) {
    for (int i = Place::thread(); i < kTileColumns; i += 128) {
      float sum = 0;
      for (int warp = 0; warp < 4; ++warp) sum += ptx::ld_shared(&at.sums.of_warp[warp][i]);
      if (at.corner.n + i < at.shape.n) Combined::put(at, added(at), i, sum);
    }
    Combined::finish(at, added(at));
  }

 private:
  static __device__ __forceinline__ Added<kTileColumns> added(const Place& at) {
    return {at.corner.m / kTileRows, ceil_div(at.shape.m, kTileRows), at.corner.n, at.shape.n};
  }
};

/// Sums over the columns of D: four lanes have all columns of a row. Beyond the last column the product is 0,
/// and so is the bias that SharedColumnBias puts there. So v is 0, with an activation whose value at 0 is 0.
template <typename Combined>
struct RowSums : EmptyNode {
  float sums[2];  // [half]

  __device__ __forceinline__ void begin_loop(const Place& at) {
    if (at.column == 0) sums[0] = sums[1] = 0;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int, int half) { sums[half] += x[0] + x[1]; }
  __device__ __forceinline__ void end_loop(const Place& at) {
    if (at.column + 64 < kTileColumns) return;
    for (int half = 0; half < 2; ++half) {
      float sum = sums[half];
      for (int distance = 1; distance < 4; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
      if (Place::lane() % 4 == 0 && at.has_row(half)) Combined::put(at, added(at), at.row_of(half), sum);
    }
  }
  __device__ __forceinline__ void end(const Place& at) { Combined::finish(at, added(at)); }

 private:
  static __device__ __forceinline__ Added<kTileRows> added(const Place& at) {
    return {at.corner.n / kTileColumns, ceil_div(at.shape.n, kTileColumns), at.corner.m, at.shape.m};
  }
};

// Lesson: of numbers without a sign the larger one has the larger bits, and a NaN has larger bits than
// infinity. So the maximum is one of unsigned integers, in any order the same.
struct Amax : EmptyNode {
  float of_row[2];     // [half]
  std::uint32_t most;  // the largest in the rows of D

  __device__ __forceinline__ void begin(const Place&) { most = 0; }
  __device__ __forceinline__ void begin_loop(const Place& at) {
    if (at.column == 0) of_row[0] = of_row[1] = 0;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int, int half) {
    for (const float one : x) of_row[half] = ptx::max_nan_f32(of_row[half], fabsf(one));
  }
  __device__ __forceinline__ void end_loop(const Place& at) {
    if (at.column + 64 < kTileColumns) return;
    for (int half = 0; half < 2; ++half)
      if (at.has_row(half)) most = max(most, __float_as_uint(of_row[half]));
  }
  __device__ __forceinline__ void end(const Place& at) {
    for (int distance = 1; distance < 32; distance *= 2)
      most = max(most, __shfl_xor_sync(~0u, most, distance));
    if (Place::lane() == 0)
      ptx::red_max_relaxed_gpu(reinterpret_cast<std::uint32_t*>(at.reductions.result), most);
  }
};

/// An element of a row, and the order in which a row's elements are taken.
struct Ranked {
  float value;
  int column;
  __device__ __forceinline__ bool is_before(const Ranked& other) const {
    return value > other.value || (value == other.value && column < other.column);
  }
};

// Lesson: the tile is visited twice. The first visit looks at whole rows, k times: each time it takes the
// first of what comes after the one taken last. Nothing is sorted, and nothing is stored. What is left of a
// row is the last element taken, the largest, and a sum; with these the second visit knows of each element
// whether it is one of the k, and its share.
struct TopKSoftmax : EmptyNode {
  static constexpr float kLog2E = 1.4426950409f;
  Ranked last[2];  // [half]
  float largest[2];
  float scale[2];
  int column;  // this thread's first one in unit 0

  /// The first element of a row after `after`. The thread's element i is in column i / 2 * 8 + i % 2 from
  /// its first one: so its own are in order, and a number known at compile time says which one it is.
  template <int kCount>
  static __device__ __forceinline__ Ranked next(const float (&accumulators)[kCount], int half,
                                                const Ranked& after) {
    const int first = Place::thread() % 4 * 2;
    const int passed = after.column / 8 * 2 + max(-1, min(1, after.column % 8 - first));
    float value = -INFINITY;
    int found = kCount;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      const float one = accumulators[i / 2 * 4 + half * 2 + i % 2];
      if ((one < after.value || (one == after.value && i > passed)) && one > value) {
        value = one;
        found = i;
      }
    }
    Ranked best{value, found / 2 * 8 + found % 2 + first};
    for (int distance = 1; distance < 4; distance *= 2) {
      const Ranked other{__shfl_xor_sync(~0u, best.value, distance),
                         __shfl_xor_sync(~0u, best.column, distance)};
      if (other.is_before(best)) best = other;
    }
    return best;
  }
  template <int kCount>
  __device__ __forceinline__ void first_visit(const Place& at, float (&accumulators)[kCount]) {
    const int columns = at.shape.n - Place::thread() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      accumulators[i] = i / 4 * 8 < columns ? accumulators[i] * at.given.alpha : -INFINITY;
    float sum[2] = {0, 0};
    last[0] = last[1] = {INFINITY, -1};
    for (int taken = 0; taken < at.reductions.top_k; ++taken) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        last[half] = next(accumulators, half, last[half]);
        if (taken == 0) largest[half] = last[half].value;
        sum[half] += ptx::ex2_approx_ftz_f32((last[half].value - largest[half]) * kLog2E);
      }
    }
    for (int half = 0; half < 2; ++half) scale[half] = ptx::rcp_approx_ftz_f32(sum[half]);
  }
  __device__ __forceinline__ void begin_loop(const Place& at) {
    column = at.column_of(0);
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) {
      const Ranked one{x[i], column + unit * 8 + i};
      const bool is_taken = one.value == one.value && !last[half].is_before(one);
      x[i] = is_taken ? ptx::ex2_approx_ftz_f32((x[i] - largest[half]) * kLog2E) * scale[half] : 0;
    }
  }
};

// Lesson: the last node of a tree. What comes before it sees v; here v is scaled, rounded once to e4m3, and
// what is too large becomes +-448. A thread has two neighbours, which are two bytes now: stmatrix would want
// four. Two rows of 64 bytes pass all 32 banks, so four of a warp's eight rows would meet in the same banks;
// the swizzle, row / 2 % 4 exclusive-or the number of a unit of 16 bytes, gives them banks of their own.
struct StoreE4m3 : EmptyNode {
  static constexpr bool kNarrows = true;
  float scale;
  std::uint8_t* row;  // this thread's, in half 0
  int swizzle;        // that row's, and that of the one 8 rows below: row / 2 % 4 is the same

  template <typename Place>
  __device__ __forceinline__ void begin(const Place& at) {
    scale = ptx::ld_global(at.reductions.d_scale);
  }
  template <typename Place>
  __device__ __forceinline__ void previsit(const Place& at) {
    const int in_subtile = at.thread() / 32 * 16 + at.thread() % 32 / 4;
    const int begin = in_subtile * 64;
    row = reinterpret_cast<std::uint8_t*>(at.d) + begin + at.thread() % 4 * 2;
    swizzle = in_subtile / 2 % 4;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    const std::uint16_t pair = ptx::cvt_rn_satfinite_e4m3x2_f32(x[0] * scale, x[1] * scale);
    const int rows_before = half * 8 * 64;
    const int units_before = (unit / 2 ^ swizzle) * 16;
    const int in_place = unit % 2 * 8;
    std::uint8_t* const to = row + rows_before + units_before + in_place;
    ptx::st_shared(reinterpret_cast<std::uint16_t*>(to), pair);
  }
};

}  // namespace gemm::step_33
