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
