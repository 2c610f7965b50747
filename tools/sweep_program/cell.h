// The cells of the sweep: a tile of M x 128 with k-tiles of K, and as many stages as there is room for. What
// fits is arithmetic on sizes and needs neither compiler nor GPU.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gemm/problem/step.h"

namespace sweep {

inline constexpr int kTileN = 128;
inline constexpr std::array<int, 5> kTileM{64, 128, 192, 256, 320};
inline constexpr std::array<int, 5> kTileK{32, 64, 128, 192, 256};  // 2, 4, 8, 12, 16 instructions deep
inline constexpr int kInstructionK = 16;

/// Consumer warpgroups of a tile M rows high: one for every 64 rows. 256 rows have two of 128, as in step 15:
/// the store buffers of four would take the room of a stage.
constexpr int warpgroups_of(int m) {
  return m == 256 ? 2 : m / 64;
}

// ---- Shared memory ----

inline constexpr int kSharedLimit =
    227 * 1024;  // CUDA C++ Programming Guide, compute capability 9.0: per CTA

/// One k-tile of A and B, bf16.
constexpr int stage_bytes(int m, int k) {
  return 2 * (m + kTileN) * k;
}
/// Two subtiles of 64 x 64 of D on their way out, for each consumer warpgroup.
constexpr int store_buffer_bytes(int m) {
  return warpgroups_of(m) * 2 * 64 * 64 * 2;
}
/// Stages, their two barriers each, and the store buffers, which start on a multiple of 1024 bytes.
constexpr int shared_bytes(int m, int k, int stages) {
  const int barriers = (stages * 2 * 8 + 1023) / 1024 * 1024;
  return stages * stage_bytes(m, k) + barriers + store_buffer_bytes(m);
}
constexpr int most_stages(int m, int k) {
  int stages = 0;
  while (shared_bytes(m, k, stages + 1) <= kSharedLimit) ++stages;
  return stages;
}

/// Which numbers of stages are timed: every one up to 8, 12, and the most that fit.
constexpr bool is_timed(int m, int k, int stages) {
  return stages >= 2 && stages <= most_stages(m, k) &&
         (stages <= 8 || stages == 12 || stages == most_stages(m, k));
}

// ---- Registers ----

inline constexpr int kRegisters = 65536;  // of an SM
/// With fewer, ptxas refuses an m64n128k16 (64 accumulators a thread): "C7602: Insufficient registers (80)
/// ... Try to compile with register target of 90 or higher", CUDA 13.0.
inline constexpr int kFewestRegisters = 90;

constexpr int threads_of(int m) {
  return 128 * (warpgroups_of(m) + 1);
}
/// What each thread has when the kernel starts: the register file divided evenly, in units of 8.
constexpr int registers_at_start(int m) {
  return std::min(255, kRegisters / threads_of(m) / 8 * 8);
}

// ---- Both ----

/// Why a cell does not fit.
struct Limit {
  std::string what;  // "shared memory" or "registers"
  std::string why;   // the arithmetic, a sentence
};

struct Cell {
  int m = 0;
  int k = 0;
  int warpgroups = 0;
  int most_stages = 0;
  std::vector<Limit> limits;            // empty: it fits
  std::vector<gemm::Variant> variants;  // one for each number of stages that is timed
};

constexpr bool registers_suffice(int m) {
  return registers_at_start(m) >= kFewestRegisters;
}
constexpr bool fits(int m, int k) {
  return registers_suffice(m) && most_stages(m, k) >= 2;
}

/// The cell without its kernels.
Cell describe(int m, int k);

/// "256x128x64", and with stages "256x128x64_stages4".
std::string tile_name(int m, int k);
std::string variant_name(int m, int k, int stages);

/// All cells with their kernels, M slowest. Generated: every cell is compiled on its own.
std::vector<Cell> all_cells();

}  // namespace sweep
