// The nodes of step 33's trees: sums over columns and rows, the largest magnitude, and the top k of a row.
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/epilogue/tree_nodes.cuh"
#include "gemm/launch/reduction_launch.cuh"
#include "gemm/problem/gemm.h"
#include "ptx/atomic.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm::step_33 {

inline constexpr int kTileRows = 128;
inline constexpr int kTileColumns = 192;

/// Of a tile, in shared memory.
struct TileSums {
  float of_warp[4][kTileColumns];  // [warp][n]
  std::uint32_t is_last;           // of those whose sums are added
};

/// Step 32's place in D, and where a tile's sums go.
struct Place : TreePlace {
  const ReductionArguments& reductions;
  TileSums& sums;           // the consumer's own
  bf16 (*d)[64] = nullptr;  // the subtile's buffer

  __device__ __forceinline__ bool has_row(int half) const { return corner.m + row_of(half) < shape.m; }
  static __device__ __forceinline__ void sync_consumer() { ptx::bar_sync(1 + threadIdx.x / 128, 128); }
};

/// The tile's place among those whose sums are added: they are D's at [first, first + kCount), less what lies
/// outside of it.
template <int kCount>
struct Added {
  int number;  // of `tiles`
  int tiles;
  int first;
  int length;  // of the result

  __device__ __forceinline__ bool has(int i) const { return first + i < length; }
  /// Of tile number `tile`; what one consumer adds lies together. Of 128 elements of D or more: 32 bits do.
  __device__ __forceinline__ int partial(int tile, int i) const {
    return (first / kCount * tiles + tile) * kCount + i;
  }
};

/// The sums of tiles are added where they meet, in the order in which they arrive.
struct Atomic {
  template <typename OfTile>
  static __device__ __forceinline__ void put(const Place& at, const OfTile& mine, int i, float sum) {
    ptx::red_add_relaxed_gpu(at.reductions.result + mine.first + i, sum);
  }
  template <typename OfTile>
  static __device__ __forceinline__ void finish(const Place&, const OfTile&) {}
};

// Lesson: each tile writes its sums to a row of their own. The consumer that finds by a counter that it is
// the last of these tiles adds all rows, from the first to the last, whoever wrote them and when. One thread
// counts, and it counts behind a barrier: its release covers what the other 127 have written. The same thread
// acquires what the other tiles released, and a second barrier passes that on.
struct Ordered {
  static constexpr int kInFlight = 64;  // loads of a thread
  template <int kCount>
  static __device__ __forceinline__ void put(const Place& at, const Added<kCount>& mine, int i, float sum) {
    ptx::st_global(at.reductions.partials + mine.partial(mine.number, i), sum);
  }
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
  }
};

// Lesson: eight lanes have the same columns in different rows. Of two units a lane has four columns: it gives
// two of them away and adds those that it gets, then one, and then there is one column left, which the lane
// that differs in the last bit has as well. Four exchanges for four columns; each on its own would take
// three.
__device__ __forceinline__ float sum_of_warp(const float (&sums)[4]) {
  const auto keep = [](bool second, float first_sum, float second_sum, int distance) {
    const float given = __shfl_xor_sync(~0u, second ? first_sum : second_sum, distance);
    return (second ? second_sum : first_sum) + given;
  };
  const bool second_unit = (Place::lane() & 16) != 0;
  const float even = keep(second_unit, sums[0], sums[2], 16);
  const float odd = keep(second_unit, sums[1], sums[3], 16);
  const float sum = keep((Place::lane() & 8) != 0, even, odd, 8);
  return sum + __shfl_xor_sync(~0u, sum, 4);
}

/// Sums over the rows of D. Where nothing is added to the product, v is 0 below the last row, and a kernel
/// that is short of registers may leave the guard out.
template <typename Combined, bool kGuardsRows = true>
struct ColumnSums : Node {
  float* mine;         // in TileSums: the column of this lane in the tile's first two units
  int column;          // of the subtile
  float is_row[2];     // [half]; 1, or 0 outside of D
  bool is_first_rows;  // of the tile
  float sums[4];       // of two units, [unit][column]

  __device__ __forceinline__ void begin_loop(const Place& at) {
    const int lane = Place::lane();
    mine = &at.sums.of_warp[Place::thread() / 32][lane / 16 * 8 + lane % 4 * 2 + lane / 8 % 2];
    column = at.column;
    for (int half = 0; half < 2; ++half) is_row[half] = at.has_row(half) ? 1 : 0;
    is_first_rows = at.row == 0;
  }
  // Lesson: what lies outside of D is not zero here: below the last row the product is, and the bias is added
  // to it all the same.
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) {
      float& sum = sums[unit % 2 * 2 + i];
      const float factor = kGuardsRows ? is_row[half] : 1;
      sum = half == 0 ? factor * x[i] : fmaf(factor, x[i], sum);
    }
    if (unit % 2 == 0 || half == 0) return;
    float* const to = mine + column + (unit - 1) * 8;
    const float sum = sum_of_warp(sums);
    if ((Place::lane() & 4) == 0) ptx::st_shared(to, is_first_rows ? sum : ptx::ld_shared(to) + sum);
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

/// Sums over the columns of D: of a row four lanes have all columns. Behind the last column the product is 0,
/// and the bias that SharedColumnBias puts there, too. So v is 0, with an activation whose value at 0 is 0.
template <typename Combined>
struct RowSums : Node {
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
struct Amax : Node {
  float of_row[2];     // [half]
  std::uint32_t most;  // of the rows in D

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
// first of what lies behind the one taken last. Nothing is sorted, and nothing is stored. What is left of a
// row is the last element taken, the largest, and a sum; with these the second visit knows of each element
// whether it is one of the k, and its share.
struct TopKSoftmax : Node {
  static constexpr float kLog2E = 1.4426950409f;
  Ranked last[2];  // [half]
  float largest[2];
  float scale[2];
  int column;  // of this thread in unit 0

  /// The first element of a row behind `after`. The thread's element i is in column i / 2 * 8 + i % 2 from
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

// Lesson: the last node of a tree. What stands before it sees v; here v is scaled, rounded once to e4m3, and
// what is too large becomes +-448. A thread has two neighbours, which are two bytes now: stmatrix would want
// four. Two rows of 64 bytes pass all 32 banks, so of a warp's eight rows four would meet in the same banks;
// the swizzle, row / 2 % 4 exclusive-or the number of a unit of 16 bytes, gives them banks of their own.
struct StoreE4m3 : Node {
  static constexpr bool kNarrows = true;
  float scale;
  std::uint8_t* row;  // of this thread, in half 0
  int swizzle;        // of that row, and of the one 8 rows below: row / 2 % 4 is the same

  template <typename Place>
  __device__ __forceinline__ void begin(const Place& at) {
    scale = ptx::ld_global(at.reductions.d_scale);
  }
  template <typename Place>
  __device__ __forceinline__ void previsit(const Place& at) {
    const int in_subtile = at.thread() / 32 * 16 + at.thread() % 32 / 4;
    row = reinterpret_cast<std::uint8_t*>(at.d) + in_subtile * 64 + at.thread() % 4 * 2;
    swizzle = in_subtile / 2 % 4;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    const std::uint16_t pair = ptx::cvt_rn_satfinite_e4m3x2_f32(x[0] * scale, x[1] * scale);
    std::uint8_t* const to = row + half * 8 * 64 + (unit / 2 ^ swizzle) * 16 + unit % 2 * 8;
    ptx::st_shared(reinterpret_cast<std::uint16_t*>(to), pair);
  }
};

}  // namespace gemm::step_33
