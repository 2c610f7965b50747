// Step 53: counts in device memory, of every kind, under many schedules; counts that change between launches
// of one plan, and counts that no host has checked; what it refuses.
#include <algorithm>
#include <string>
#include <vector>

#include "gemm/problem/check_problem.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/device_buffer.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

void verify_counts(const gemm::Variant& variant, const std::string& text, int m, int n = 264, int k = 72,
                   int launches = 1) {
  INFO(text);
  const harness::ProblemForm form{.groups = harness::parse_groups(text, m),
                                  .capacity = harness::parse_capacity(text)};
  verify_form(variant, {m, n, k}, form, harness::Pattern::kExact, 5, launches);
}

/// Launches a plan with these counts in device memory, which the host is told nothing of, and checks D
/// against the groups that they must mean.
void verify_device_counts(const gemm::Variant& variant, const std::vector<int>& counts, int capacity,
                          const std::vector<std::int64_t>& meant) {
  const int m = capacity * static_cast<int>(counts.size());
  const harness::ProblemForm form{.groups = harness::place_masked_groups(meant, capacity, m),
                                  .capacity = capacity};
  harness::Workload workload({m, 264, 136}, harness::Pattern::kExact, 7, form);
  const harness::DeviceBuffer on_device(counts.size() * sizeof(int), "counts of the test");
  harness::copy_to_device(on_device.bytes(), counts.data(), counts.size() * sizeof(int));
  gemm::Problem problem = workload.problem();
  problem.groups.clear();
  problem.counts = reinterpret_cast<const int*>(on_device.bytes());
  workload.poison();
  gemm::prepare(variant, problem)(nullptr);
  const harness::CheckResult result = workload.check(variant.tile);
  INFO(variant.name << "\n" << result.report);
  CHECK(result.ok);
}

}  // namespace

TEST_CASE("counts on each side of tiles and of their halves, one row, none, full and empty rooms",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_counts(variant, "127,128,129,1/130", 520);
    verify_counts(variant, "63,64,65,191,192,193/193", 6 * 193);
    verify_counts(variant, "0,1,0,0,130,0/130", 6 * 130);
    verify_counts(variant, "64,64,64/64", 192);
    verify_counts(variant, "1,1,1,1,1,1/1", 6);
    verify_counts(variant, "0,0,0/9", 27);
    verify_counts(variant, "128/256", 256, 512, 64);
  }
}

TEST_CASE("as many groups as a look finds, one more, and more than two looks, with counts on the device",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int groups : {31, 32, 33, 65}) {
      for (const std::string sizes : {"empty", "zipf"})
        verify_counts(variant, std::to_string(groups) + ":" + sizes + ":3:150/70", groups * 70, 40);
    }
  }
}

TEST_CASE("k-tiles around the number of stages, where a warpgroup has no rows", "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int k_tiles : k_tiles_around_stages(variant))
      verify_counts(variant, "20,64,128,5/128", 512, 264, 64 * k_tiles - 8);
  }
}

TEST_CASE("counts under ten seeds, earliest and latest, on one SM and on several", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = step_under_test().variants.front();
  under_ten_seeds(4, [&](std::uint64_t seed) {
    verify_counts(variant, "5:zipf:" + std::to_string(seed) + ":200/150", 750, 264, 200);
    verify_counts(variant, "33:empty:" + std::to_string(seed) + ":40/9", 297, 40, 72);
  });
}

TEST_CASE("one plan launched again, with other inputs and other counts", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants)
    verify_counts(variant, "0,200,1,64,130/200", 1000, 264, 136, 4);
}

TEST_CASE("counts that nobody has checked touch no other group's rows", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_device_counts(variant, {3, 71, -1, 70, 2147483647}, 70, {3, 70, 0, 70, 70});
    verify_device_counts(variant, {-2147483647 - 1, 0, 5}, 128, {0, 0, 5});
  }
}

TEST_CASE("a bare --check has counts for more than two looks, empty ones, full ones, and changes them",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    const std::vector<harness::CheckCase> cases = harness::plan_check(step, variant, 1, false);
    const auto has = [&](auto wanted) { return std::any_of(cases.begin(), cases.end(), wanted); };
    using Case = harness::CheckCase;
    CHECK(has([](const Case& one) { return one.groups.size() > 64; }));
    CHECK(has([](const Case& one) { return one.groups.empty(); }));
    CHECK(has([&](const Case& one) { return one.capacity > variant.tile.m && one.launches > 1; }));
    CHECK(has([](const Case& one) {
      return std::any_of(one.groups.begin(), one.groups.end(),
                         [&](const gemm::GroupRows& rows) { return rows.count() == one.capacity; });
    }));
    CHECK(has([](const Case& one) {
      return std::any_of(one.groups.begin(), one.groups.end(),
                         [](const gemm::GroupRows& rows) { return rows.count() == 0; });
    }));
    for (const Case& one : cases) {
      if (!one.groups.empty())
        CHECK(gemm::violated_capacity_rule(one.groups, one.capacity, one.shape).empty());
    }
  }
  harness::control_emulator({});
}

TEST_CASE("groups that do not fit their rooms are refused before anything runs, in a sentence each",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = step_under_test().variants.front();
  const harness::ProblemForm form{.groups = {{0, 50}, {50, 100}}, .capacity = 50};
  harness::Workload workload({100, 40, 72}, harness::Pattern::kExact, 1, form);
  const gemm::Problem right = workload.problem();
  CHECK(refusal(variant, right).empty());
  gemm::Problem problem = right;
  problem.groups = {{0, 51}, {50, 60}};
  CHECK(refusal(variant, problem) ==
        "group 0 has 51 rows, and room for 50: a count must be 0 to the capacity");
  problem.groups = {{0, 50}, {50, 49}};
  CHECK(refusal(variant, problem) ==
        "group 1 has -1 rows, and room for 50: a count must be 0 to the capacity");
  problem.groups = {{0, 50}, {51, 60}};
  CHECK(refusal(variant, problem) ==
        "group 1 begins at row 51, and its room at row 50: group g must begin at row g times the capacity");
  problem.groups = {{0, 50}};
  CHECK(refusal(variant, problem) ==
        "there are 1 groups, and A has room for 2: M must be the number of groups times the capacity");
  problem = right;
  problem.capacity = 30;
  problem.groups.clear();
  CHECK(refusal(variant, problem) ==
        "groups have room for 30 rows each, and A has 100: M must be a multiple of the capacity");
  problem.capacity = -50;
  CHECK(refusal(variant, problem) == "groups have room for -50 rows each: the capacity must be at least 1");
  problem = right;
  problem.counts = nullptr;
  CHECK(refusal(variant, problem).find("the address of the counts is null") != std::string::npos);
  problem = right;
  problem.capacity = 0;
  CHECK(refusal(variant, problem).find("step 52 takes groups that follow one another") != std::string::npos);
}
