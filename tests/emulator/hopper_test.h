// What the tests of Hopper's engines share: tiles, tensor maps, and outcomes that depend on the schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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
#define CHECK_BREAKS_ONE_OF(rules, ...)                                \
  emulator_test::under_schedules(emulator_test::kSeedsOfOneRule, [&] { \
    const emulator_test::Outcome outcome = __VA_ARGS__;                \
    INFO(outcome.report);                                              \
    CHECK(std::set<std::string>(rules).count(outcome.rule) == 1);      \
  })

using Rules = std::set<std::string>;

/// The reports of a rule under all schedules, each of which must hold the text. Other rules are none of its
/// business: how many schedules broke this one.
template <typename Launch>
int reports_that_say(const std::string& rule, const std::string& text, Launch launch) {
  int count = 0;
  under_all_schedules([&] {
    const Outcome outcome = launch();
    if (outcome.rule != rule) return;
    ++count;
    INFO(outcome.report);
    CHECK(contains(outcome.report, text));
  });
  return count;
}

/// The same where no other rule may be broken: how many reports there are, each of that rule and with the
/// text.
template <typename Launch>
int all_reports_say(const std::string& rule, const std::string& text, Launch launch) {
  int count = 0;
  under_all_schedules([&] {
    const Outcome outcome = launch();
    if (outcome.rule == "passed") return;
    ++count;
    INFO(outcome.report);
    CHECK(outcome.rule == rule);
    CHECK(contains(outcome.report, text));
  });
  return count;
}

/// Under how many schedules that rule is broken and the report has all these texts. No report has one of
/// those that it must lack.
template <typename Launch>
int schedules_that_say(const std::string& rule, const std::vector<std::string>& says,
                       const std::vector<std::string>& lacks, Launch launch) {
  int count = 0;
  under_all_schedules([&] {
    const Outcome outcome = launch();
    check_text(outcome.report, {}, lacks);
    count += outcome.rule == rule && std::all_of(says.begin(), says.end(), [&](const std::string& text) {
               return contains(outcome.report, text);
             });
  });
  return count;
}

/// The broken kernel breaks this rule under some schedule, and whenever it does the report has the text.
#define CHECK_SAYS(rule, text, ...) \
  CHECK(emulator_test::reports_that_say(rule, text, [&] { return __VA_ARGS__; }) > 0)

/// The same of a kernel that breaks no other rule.
#define CHECK_ONLY_SAYS(rule, text, ...) \
  CHECK(emulator_test::all_reports_say(rule, text, [&] { return __VA_ARGS__; }) > 0)

/// Waits for the phase of this parity.
inline void wait(std::uint64_t* barrier, std::uint32_t parity,
                 emulator::Where where = emulator::Where::here()) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity, where)) {
  }
}

/// Thread 0 of each CTA makes a barrier that copies signal, too. A barrier of the threads comes behind it.
inline __device__ void make_barrier(std::uint64_t* barrier, std::uint32_t count = 1,
                                    emulator::Where where = emulator::Where::here()) {
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(barrier, count, where);
  ptx::fence_mbarrier_init_release_cluster(where);
}

inline __device__ void cluster_sync(emulator::Where where = emulator::Where::here()) {
  ptx::barrier_cluster_arrive(where);
  ptx::barrier_cluster_wait(where);
}

/// All threads of the CTA write ones to a tile that a bulk store may read then.
inline __device__ void fill_tile(bf16 (&tile)[64][64], emulator::Where where = emulator::Where::here()) {
  for (int i = static_cast<int>(threadIdx.x); i < 64 * 64; i += static_cast<int>(blockDim.x))
    ptx::st_shared(&tile[i / 64][i % 64], gemm::to_bf16(1), where);
  ptx::fence_proxy_async_shared_cta(where);
  __syncthreads(where);
}

/// The accumulators of a warpgroup, as the 64 rows of D that they are.
template <int kN, typename Sum>
__device__ void store_accumulators(Sum* out, const Sum (&d)[kN / 2],
                                   emulator::Where where = emulator::Where::here()) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int row = thread / 32 * 16 + thread % 32 / 4;
  for (int j = 0; j < kN / 8; ++j) {
    for (int i = 0; i < 4; ++i)
      ptx::st_global(out + (row + i / 2 * 8) * kN + 8 * j + thread % 4 * 2 + i % 2, d[4 * j + i], where);
  }
}

/// What reports know of a problem: its sizes, and tiles of 64 x 32 x 16.
inline emulator::Options problem(int n, int k) {
  emulator::Options options = emulator::options();
  options.n = n;
  options.k = k;
  options.tile_m = 64;
  options.tile_n = 32;
  options.k_tile = 16;
  return options;
}

/// Small integers, different enough that a misplaced element shows.
inline std::vector<bf16> arange(std::size_t count, int first = 0) {
  std::vector<bf16> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = gemm::to_bf16(static_cast<float>((static_cast<int>(i * 7 + i / 61) + first) % 17 - 8));
  }
  return values;
}

/// How many elements of D are not those of A times B transposed, whose rows have k elements each; D may be
/// there `copies` times, one below the other. A product is computed once: the schedules of a test have the
/// same operands, and without optimisation this takes longer than to emulate the kernel.
inline int count_wrong(const std::vector<float>& d, const std::vector<bf16>& a, const std::vector<bf16>& b,
                       std::size_t k, std::size_t copies = 1) {
  struct Product {
    std::size_t k;
    std::vector<bf16> a, b;
    std::vector<float> d;
  };
  static std::vector<Product> known;
  const auto same = [](const std::vector<bf16>& x, const std::vector<bf16>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(bf16)) == 0;
  };
  auto found = std::find_if(known.begin(), known.end(), [&](const Product& product) {
    return product.k == k && same(product.a, a) && same(product.b, b);
  });
  if (found == known.end()) {
    const auto floats = [](const std::vector<bf16>& values) {
      std::vector<float> all;
      for (const bf16 value : values) all.push_back(gemm::to_float(value));
      return all;
    };
    const std::vector<float> rows = floats(a);     // [m][k]
    const std::vector<float> columns = floats(b);  // [n][k]
    std::vector<float> expected;                   // [m][n]
    for (const float* row = rows.data(); row != rows.data() + rows.size(); row += k) {
      for (const float* column = columns.data(); column != columns.data() + columns.size(); column += k) {
        float sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += row[l] * column[l];
        expected.push_back(sum);
      }
    }
    found = known.insert(known.end(), {k, a, b, std::move(expected)});
  }
  REQUIRE(d.size() == copies * found->d.size());
  int wrong = 0;
  for (std::size_t i = 0; i < d.size(); ++i) wrong += d[i] != found->d[i % found->d.size()];
  return wrong;
}

}  // namespace emulator_test
