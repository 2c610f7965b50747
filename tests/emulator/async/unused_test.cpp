// Rows of a stage that nothing loads (ptx/unused.cuh): they may be read, they hold NaNs, and the barrier that
// signals the loads beside them signals them, too.
#include "ptx/unused.cuh"

#include <cstdint>
#include <vector>

#include "emulator/hopper_test.h"

using namespace emulator_test;

namespace unused_test {

using ptx::Swizzle;

constexpr int kRows = 16;
constexpr int kRowBytes = 128;

struct alignas(1024) Stage {
  bf16 rows[kRows][64];
  std::uint64_t full;
};

enum Fault { kNone, kNotFilled, kFilledTooHigh, kNoWait };

/// Loads the first `loaded` rows of a stage by TMA, leaves the rest unused, and reads all of it.
__global__ void stage_with_unused_rows(ptx::TensorMap map, int loaded, int fault, bf16* out) {
  auto& stage = ptx::dynamic_shared<Stage>();
  make_barrier(&stage.full);
  __syncthreads();
  if (threadIdx.x == 0) {
    const int from = fault == kFilledTooHigh ? loaded - 1 : loaded;
    if (fault != kNotFilled) ptx::fill_unused(stage.rows + from, (kRows - from) * kRowBytes, &stage.full);
    ptx::mbarrier_arrive_expect_tx(&stage.full, static_cast<std::uint32_t>(loaded * kRowBytes));
    ptx::cp_async_bulk_tensor_2d(stage.rows, &map, 0, 0, &stage.full);
  }
  if (fault != kNoWait) wait(&stage.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * 64; i += 32)
    ptx::st_global(out + i, ptx::ld_shared(&stage.rows[0][0] + i));
}

struct Result {
  Outcome outcome;
  std::vector<bf16> out;
};

Result load(int loaded, int fault) {
  const DeviceArray<bf16> matrix(arange(static_cast<std::size_t>(loaded) * 64), "matrix");
  const DeviceArray<bf16> out(std::vector<bf16>(kRows * 64), "out");
  const auto map =
      ptx::make_tensor_map(ptx::matrix_spec(matrix.get(), loaded, 64, loaded, 64, Swizzle::kNone));
  Result result;
  result.outcome = run(stage_with_unused_rows, one_cta(32, sizeof(Stage)), map, loaded, fault, out.get());
  result.out = out.host();
  return result;
}

TEST_CASE("fill_unused: rows that nothing loads hold NaNs, the others what was loaded") {
  for (const int loaded : {1, 7, 15, kRows}) {
    under_all_schedules([&] {
      const Result result = load(loaded, kNone);
      INFO(loaded << " rows\n" << result.outcome.report);
      REQUIRE(result.outcome.rule == "passed");
      const std::vector<bf16> expected = arange(static_cast<std::size_t>(loaded) * 64);
      int wrong = 0;
      for (std::size_t i = 0; i < result.out.size(); ++i) {
        const float value = gemm::to_float(result.out[i]);
        wrong += i < expected.size() ? value != gemm::to_float(expected[i]) : value == value;
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("fill_unused: without it the rows were never written") {
  CHECK_BREAKS("shared-uninitialised", load(7, kNotFilled).outcome);
}

TEST_CASE("fill_unused: it writes like a copy, so a load of the same row is a race") {
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited"}), load(7, kFilledTooHigh).outcome);
}

TEST_CASE("fill_unused: the rows are there when the barrier says so, and not before") {
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited", "shared-uninitialised"}),
                      load(7, kNoWait).outcome);
}

}  // namespace unused_test
