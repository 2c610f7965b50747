// Step 54: groups anywhere in memory, under many schedules; a table that changes between launches of one
// plan; buffers of their own; what it refuses.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/device_buffer.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

bool needs_known(const gemm::Variant& variant) {
  return variant.groups == gemm::GroupForm::kPlacedKnown;
}

using gemm::PlacedGroup;
void verify_placed(const gemm::Variant& variant, const std::string& text, int m, int n = 264, int k = 72,
                   int launches = 1) {
  INFO(text);
  const harness::ProblemForm form{.groups = harness::parse_groups(text, m),
                                  .placement = harness::parse_placement(text),
                                  .device_only = launches > 1};
  verify_form(variant, {m, n, k}, form, harness::Pattern::kExact, 5, launches);
}

/// One group in three allocations of its own.
struct OwnBuffers {
  OwnBuffers(int rows, int n, int k, int first)
      : shape{rows, n, k},
        a(static_cast<std::size_t>(rows * k) * 2, "own A"),
        b(static_cast<std::size_t>(n * k) * 2, "own B"),
        d(static_cast<std::size_t>(rows * n) * 2, "own D") {
    for (int i = 0; i < rows * k; ++i)
      host_a.push_back(gemm::to_bf16(static_cast<float>((i * 5 + first) % 7)));
    for (int i = 0; i < n * k; ++i) host_b.push_back(gemm::to_bf16(static_cast<float>((i * 3 + first) % 5)));
    harness::copy_to_device(a.bytes(), host_a.data(), host_a.size() * 2);
    harness::copy_to_device(b.bytes(), host_b.data(), host_b.size() * 2);
    harness::fill_device(d.bytes(), 0xff, static_cast<std::size_t>(rows * n) * 2);
  }
  PlacedGroup placed() const {
    return {a.elements(), b.elements(), d.elements(), shape.m, shape.k, shape.k, shape.n};
  }
  int wrong() const {
    const auto [m, n, k] = shape;
    std::vector<gemm::bf16> got(static_cast<std::size_t>(m * n));
    harness::copy_to_host(got.data(), d.bytes(), got.size() * 2);
    int count = 0;
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int i = 0; i < k; ++i)
          sum += gemm::to_float(host_a[static_cast<std::size_t>(row * k + i)]) *
                 gemm::to_float(host_b[static_cast<std::size_t>(column * k + i)]);
        count += got[static_cast<std::size_t>(row * n + column)].bits != gemm::to_bf16(sum).bits;
      }
    }
    return count;
  }

  gemm::Shape shape;
  harness::DeviceBuffer a, b, d;
  std::vector<gemm::bf16> host_a, host_b;
};

gemm::Problem problem_of(const harness::DeviceBuffer& table, const std::vector<PlacedGroup>& groups, int n,
                         int k, bool known) {
  harness::copy_to_device(table.bytes(), groups.data(), groups.size() * sizeof(PlacedGroup));
  gemm::Problem problem;
  problem.shape = {1, n, k};
  problem.placed = reinterpret_cast<const PlacedGroup*>(table.bytes());
  problem.placed_count = static_cast<int>(groups.size());
  if (known) problem.known = groups;
  return problem;
}

}  // namespace

TEST_CASE("groups anywhere on each side of tiles and of their halves, one row, none, all in one",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_placed(variant, "127,128,129,1@1", 385);
    verify_placed(variant, "63,64,65,191@2", 383);
    verify_placed(variant, "0,1,0,0,130,0@3", 131);
    verify_placed(variant, "1,1,1,1,1,1@4", 6);
    verify_placed(variant, "0,0,0+3@5", 6);
    verify_placed(variant, "130@6", 130);
    verify_placed(variant, "127,128,129,1", 385);
  }
}

TEST_CASE("as many groups anywhere as a look finds, one more, and more than two looks", "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int groups : {31, 32, 33, 65})
      verify_placed(variant, std::to_string(groups) + ":empty:3@7", 150, 40);
  }
}

TEST_CASE("k-tiles around the number of stages, where each tile is in another group", "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int k_tiles : k_tiles_around_stages(variant))
      verify_placed(variant, "20,64,128,5,33,17,90@8", 357, 40, 64 * k_tiles - 8);
  }
}

TEST_CASE("groups anywhere under ten seeds, earliest and latest, on one SM and on several",
          "[emulator][slow]") {
  if (skip_without_emulator()) return;
  under_ten_seeds(3, [&](std::uint64_t seed) {
    const std::string text = ":" + std::to_string(seed) + "@" + std::to_string(seed);
    verify_placed(variant_named("three_maps"), "7:zipf" + text, 300, 264, 136);
    verify_placed(variant_named("three_maps"), "12:uniform" + text, 60, 40, 40);
    verify_placed(variant_named("two_maps"), "6:zipf" + text, 90, 40, 72);
    verify_placed(variant_named("one_map"), "5:zipf" + text, 90, 40, 72);
  });
}

TEST_CASE("one plan launched again, with the groups elsewhere and known to the device alone", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!needs_known(variant)) verify_placed(variant, "0,200,1,64,130@9", 395, 264, 136, 4);
  }
}

TEST_CASE(
    "groups in allocations of their own, and a negative number of rows that no host has checked is none",
    "[device]") {
  if (skip_where_step_cannot_run()) return;
  constexpr int kN = 40;
  constexpr int kK = 136;
  for (const gemm::Variant& variant : step_under_test().variants) {
    INFO(variant.name);
    const OwnBuffers one(130, kN, kK, 1);
    const OwnBuffers two(7, kN, kK, 2);
    const OwnBuffers three(64, kN, kK, 3);
    PlacedGroup none;
    none.rows = needs_known(variant) ? 0 : -5;
    const std::vector<PlacedGroup> groups{three.placed(), none, one.placed(), two.placed()};
    const harness::DeviceBuffer table(groups.size() * sizeof(PlacedGroup), "table");
    gemm::prepare(variant, problem_of(table, groups, kN, kK, needs_known(variant)))(nullptr);
    harness::synchronize();
    CHECK(one.wrong() == 0);
    CHECK(two.wrong() == 0);
    CHECK(three.wrong() == 0);
  }
}

TEST_CASE("a bare --check has groups anywhere, more than two looks of them, and moves them", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    const std::vector<harness::CheckCase> cases = harness::plan_check(step, variant, 1, false);
    const auto has = [&](auto wanted) { return std::any_of(cases.begin(), cases.end(), wanted); };
    using Case = harness::CheckCase;
    CHECK(has([](const Case& one) { return one.placement != 0 && one.groups.size() > 32; }));
    CHECK(has([](const Case& one) { return one.placement == 0 && one.groups.size() > 64; }));
    CHECK(has([](const Case& one) { return one.groups.empty(); }));
    CHECK(has([](const Case& one) { return one.device_only && one.launches > 1; }) == !needs_known(variant));
  }
  harness::control_emulator({});
}

TEST_CASE("groups that no tensor map can describe are refused before anything runs, in a sentence each",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = variant_named("three_maps");
  constexpr int kN = 40;
  constexpr int kK = 72;
  const OwnBuffers own(16, kN, kK, 1);
  const harness::DeviceBuffer table(2 * sizeof(PlacedGroup), "table");
  const std::vector<PlacedGroup> right{own.placed(), own.placed()};
  const auto with = [&](auto change) {
    std::vector<PlacedGroup> groups = right;
    groups[1].rows = 8;
    change(groups[1]);
    return refusal(variant, problem_of(table, groups, kN, kK, true));
  };
  CHECK(with([](PlacedGroup&) {}).empty());
  CHECK(with([](PlacedGroup& group) { group.rows = -3; }) ==
        "group 1 has -3 rows: a group must have at least 0");
  CHECK(with([](PlacedGroup& group) { group.rows = 2147483647; }) ==
        "group 1 has 2147483647 rows: a group must have at most 1073741824");
  CHECK(with([](PlacedGroup& group) { group.a += 4; }) ==
        "A of group 1 begins 8 bytes after a multiple of 16: its address must be a multiple of 16");
  CHECK(with([](PlacedGroup& group) { group.d += 1; }) ==
        "D of group 1 begins 2 bytes after a multiple of 16: its address must be a multiple of 16");
  CHECK(with([](PlacedGroup& group) { group.b = nullptr; }) ==
        "the address of B of group 1 is null, but the group has rows");
  CHECK(with([](PlacedGroup& group) { group.a_pitch = 64; }) ==
        "a row of A of group 1 begins 64 elements after the previous row, but has K = 72: the pitch must be "
        "at least K");
  CHECK(with([](PlacedGroup& group) { group.d_pitch = 44; }) ==
        "a row of D of group 1 begins 44 elements after the previous row: the pitch must be a multiple of 8, "
        "which is 16 bytes");
  CHECK(with([](PlacedGroup& group) { group = {}; }).empty());  // nobody looks at the addresses of no rows
  gemm::Problem problem = problem_of(table, right, kN, kK, true);
  problem.known.pop_back();
  CHECK(refusal(variant, problem) ==
        "the host knows 1 groups, but the table has 2: it must know either all of them or none");
  problem = problem_of(table, right, kN, kK, false);
  CHECK(refusal(variant_named("host_maps"), problem).find("the host does not know the groups") !=
        std::string::npos);
  problem.placed_count = -1;
  CHECK(refusal(variant, problem) == "the table has -1 groups that lie anywhere: it must have at least 1");
  problem = problem_of(table, right, kN, kK, true);
  problem.groups = {{0, 1}};
  CHECK(refusal(variant, problem).find("the problem says both") != std::string::npos);
  gemm::Variant other = variant;
  other.groups = gemm::GroupForm::kRows;
  CHECK(refusal(other, problem_of(table, right, kN, kK, true)).find("step 54 takes such groups") !=
        std::string::npos);
}

TEST_CASE("groups with an N and a K of their own, anywhere in memory, on one SM and on several",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = harness::find_variant(step_under_test(), "own_sizes");
  for (const int sms : {1, 3}) {
    harness::control_emulator({.sm_count = sms});
    for (const char* seed : {"1x", "2x", "3x"}) {
      verify_placed(variant, std::string("100,0,70,64,66@") + seed, 300, 520, 264);
      verify_placed(variant, std::string("40:uniform@") + seed, 300, 264, 136, 2);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("an N or a K of a group that is no multiple of 8 or larger than the problem's is refused",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = harness::find_variant(step_under_test(), "own_sizes");
  harness::Workload workload({100, 40, 72}, harness::Pattern::kExact, 1,
                             {.groups = {{0, 100}}, .placement = 1});
  gemm::Problem problem = workload.problem();
  for (const gemm::GroupSize size : {gemm::GroupSize{36, 72}, {48, 72}, {40, 80}, {40, 68}, {40, -8}}) {
    problem.known.front().own = size;
    CHECK_THROWS_AS(gemm::prepare(variant, problem), std::invalid_argument);
  }
  problem.known.front().own = {32, 64};
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  CHECK_THROWS_AS(gemm::prepare(step_under_test().variants.front(), problem), std::invalid_argument);
}
