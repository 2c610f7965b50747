// What the tests of Hopper's engines share: tiles, tensor maps, and outcomes that depend on the schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "emulator_test.h"
#include "gemm/problem/bf16.h"
#include "ptx/cluster.cuh"
#include "ptx/convert.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace emulator_test {

using gemm::bf16;

/// A broken kernel whose fault shows differently under different schedules: always one of these rules.
#define CHECK_BREAKS_ONE_OF(rules, ...)                           \
  emulator_test::under_all_schedules([&] {                        \
    const emulator_test::Outcome outcome = __VA_ARGS__;           \
    INFO(outcome.report);                                         \
    CHECK(std::set<std::string>(rules).count(outcome.rule) == 1); \
  })

using Rules = std::set<std::string>;

/// Waits for the phase of this parity.
inline void wait(std::uint64_t* barrier, std::uint32_t parity,
                 emulator::Where where = emulator::Where::here()) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity, where)) {
  }
}

/// Small integers, different enough that a misplaced element shows.
inline std::vector<bf16> arange(std::size_t count, int first = 0) {
  std::vector<bf16> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = gemm::to_bf16(static_cast<float>((static_cast<int>(i * 7 + i / 61) + first) % 17 - 8));
  }
  return values;
}

}  // namespace emulator_test
