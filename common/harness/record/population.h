// Random legal shapes, and what a race over them adds up to: how a kernel does on shapes that nobody looked
// at while it was tuned.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/record/record.h"

namespace harness {

/// `count` shapes, the same ones for the same seed: M from 1 to 16384, N and K multiples of 8 from 64 to
/// 16384, all log-uniform, half of N and K multiples of 64, 2 GFLOP to 3 TFLOP of work.
std::vector<gemm::Shape> population_shapes(int count, std::uint64_t seed);

/// The name of its suite.
inline constexpr const char* kGrid = "grid";
/// The sizes that M, N and K take in the grid of CUDA-L2 (arXiv 2512.02551).
inline constexpr std::array<int, 10> kGridSizes{64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384};
/// All shapes of the grid.
inline constexpr int kGridShapes = 1000;
/// `count` different shapes of the grid, at most all of them, in an order that the seed decides.
std::vector<gemm::Shape> grid_shapes(int count, std::uint64_t seed);

/// The public table of DeepGEMM (github.com/deepseek-ai/DeepGEMM): M of 64, 128 and 4096 with six N x K.
const std::vector<gemm::Shape>& deepgemm_shapes();

/// Of numbers, one a shape.
struct Distribution {
  double geometric_mean = 0;
  double lowest_tenth = 0;  // a tenth of the shapes is below
  double lowest = 0;
  double highest_tenth = 0;  // a tenth of the shapes is above
  double highest = 0;
  std::size_t count = 0;
};
/// Throws std::invalid_argument when there are none, or one is not positive.
Distribution distribution(std::vector<double> values);

/// Bounds between classes of work, in FLOP.
inline constexpr std::array<double, 4> kWorkClasses{1e9, 1e10, 1e11, 1e12};

/// A step's variant that chooses by shape, over all shapes of a record that it and cuBLASLt ran.
struct PopulationSummary {
  Distribution speed;              // relative to cuBLASLt best
  Distribution best;               // the same of the step's fastest variant
  Distribution regret;             // time over that of the step's fastest variant
  Distribution off_sectors;        // speed, where K or N is an odd multiple of 8
  Distribution tuned;              // speed of the variant that --autotune would remember
  Distribution handed_over;        // speed of another step where it ran, and of the choice elsewhere
  Distribution handed_over_small;  // the same below 10 GFLOP
  std::array<Distribution, kWorkClasses.size() + 1> by_work;  // speed: below each bound, and above the last
};
PopulationSummary summarize_population(const Record& record, const std::string& step,
                                       const std::string& variant);

/// For the terminal.
std::string human_table(const PopulationSummary& summary);

}  // namespace harness
