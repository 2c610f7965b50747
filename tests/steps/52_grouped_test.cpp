// Step 52: groups of every kind, under many schedules; what it refuses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gemm/problem/check_problem.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/groups.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

int rows_of(const std::string& sizes) {
  int rows = 0;
  std::size_t begin = 0;
  while (begin < sizes.size()) {
    rows += std::stoi(sizes.substr(begin));
    begin = std::min(sizes.find(',', begin), sizes.size() - 1) + 1;
  }
  return rows;
}

void verify_groups(const gemm::Variant& variant, const gemm::Shape& shape,
                   const std::vector<gemm::GroupRows>& groups, int launches = 1) {
  INFO(harness::to_string(groups));
  verify_form(variant, shape, {.groups = groups}, harness::Pattern::kExact, 5, launches);
}

/// Those that take groups of any sizes: a strided batch has one.
std::vector<gemm::Variant> variants_for_any_size() {
  std::vector<gemm::Variant> variants = step_under_test().variants;
  std::erase_if(variants, [](const auto& one) { return one.groups == gemm::GroupForm::kStrided; });
  return variants;
}

/// The sizes one behind the other, and with guard rows between them.
void verify_sizes(const gemm::Variant& variant, const std::string& sizes, int n = 264, int k = 72) {
  const int rows = rows_of(sizes);
  verify_groups(variant, {rows, n, k}, harness::parse_groups(sizes, rows));
  const auto gaps = static_cast<int>(std::count(sizes.begin(), sizes.end(), ','));
  const int more = rows + 3 * gaps;
  verify_groups(variant, {more, n, k}, harness::parse_groups(sizes + "+3", more));
}

}  // namespace

TEST_CASE("group sizes on each side of tiles and of their halves, one row, none, all in one",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : variants_for_any_size()) {
    verify_sizes(variant, "127,128,129,1");
    verify_sizes(variant, "63,64,65,191,192,193");
    verify_sizes(variant, "255,256,257");
    verify_sizes(variant, "0,1,0,0,130,0");
    verify_sizes(variant, "0,0,0,140,0");
    verify_sizes(variant, "1,1,1,1,1,1");
    verify_sizes(variant, "1");
  }
}

TEST_CASE("as many groups as a look finds, one more, and more than two looks", "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : variants_for_any_size()) {
    for (const int groups : {31, 32, 33, 64, 65, 97}) {
      for (const auto sizes : {harness::GroupSizes::kEqual, harness::GroupSizes::kEmpty,
                               harness::GroupSizes::kZipf, harness::GroupSizes::kOne}) {
        const int rows = 150;
        verify_groups(variant, {rows, 40, 72},
                      harness::place_groups(harness::draw_groups(groups, rows, sizes, 3), 0, rows));
      }
    }
  }
}

TEST_CASE("32 empty groups and more in front of the first row, and behind the last", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : variants_for_any_size()) {
    for (const int before : {31, 32, 33, 70}) {
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(before), 0);
      sizes.push_back(130);
      sizes.resize(sizes.size() + 40, 0);
      verify_groups(variant, {130, 40, 72}, harness::place_groups(sizes, 0, 130));
    }
  }
}

TEST_CASE("groups without any row leave D as it is", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : variants_for_any_size())
    verify_groups(variant, {9, 40, 72}, harness::place_groups({0, 0, 0, 0}, 3, 9));
}

TEST_CASE("groups under ten seeds, earliest and latest, on one SM and on several", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = step_under_test().variants.front();
  under_ten_seeds(4, [&](std::uint64_t seed) {
    verify_groups(variant, {400, 520, 200}, harness::parse_groups("7:zipf:" + std::to_string(seed), 400));
    verify_groups(variant, {300, 40, 72},
                  harness::parse_groups("68:empty:" + std::to_string(seed) + "+1", 300));
  });
}

TEST_CASE("a bare --check has more groups than two looks, empty ones, guard rows, and none", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    const std::vector<harness::CheckCase> cases = harness::plan_check(step, variant, 1, false);
    const auto has = [&](auto wanted) {
      return std::any_of(cases.begin(), cases.end(),
                         [&](const harness::CheckCase& one) { return wanted(one.groups); });
    };
    using Groups = std::vector<gemm::GroupRows>;
    CHECK(has([](const Groups& groups) { return groups.size() > 64; }));
    CHECK(has([](const Groups& groups) { return groups.size() > 32 && groups.size() <= 64; }));
    CHECK(has([](const Groups& groups) { return groups.empty(); }));
    CHECK(has([](const Groups& groups) { return groups.size() > 1 && groups[1].begin > groups[0].end; }));
    const bool has_empty = has([](const Groups& groups) {
      return std::any_of(groups.begin(), groups.end(), [](const auto& rows) { return rows.count() == 0; });
    });
    CHECK(has_empty == (variant.groups != gemm::GroupForm::kStrided));
    for (const harness::CheckCase& one : cases)
      CHECK(gemm::violated_group_rule(one.groups, one.shape).empty());
  }
  harness::control_emulator({});
}

TEST_CASE("one plan launched again, with other inputs", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : variants_for_any_size())
    verify_groups(variant, {300, 264, 136}, harness::parse_groups("9:uniform+2", 300), 3);
}

TEST_CASE("groups that are not rows of A in ascending order are refused before anything runs", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = step_under_test().variants.front();
  harness::Workload workload({100, 40, 72}, harness::Pattern::kExact, 1, {.groups = {{0, 100}}});
  gemm::Problem problem = workload.problem();
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  const std::vector<std::vector<gemm::GroupRows>> refused{
      {{0, 50}, {49, 100}}, {{0, 101}}, {{-1, 100}}, {{50, 40}}};
  for (const std::vector<gemm::GroupRows>& groups : refused) {
    problem.groups = groups;
    CHECK_THROWS_AS(gemm::prepare(variant, problem), std::invalid_argument);
  }
  problem.groups = {{0, 100}};
  problem.b += 1;  // 2 bytes: no address of a tensor map
  CHECK_THROWS(gemm::prepare(variant, problem));
}

TEST_CASE("a strided batch, of products on each side of a tile, beside each other and with rows between them",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = harness::find_variant(step_under_test(), "strided");
  for (const int rows : {1, 64, 127, 128, 129}) {
    for (const int batch : {1, 2, 5}) {
      for (const int between : {0, 3}) {
        const int m = batch * rows + (batch - 1) * between;
        verify_groups(variant, {m, 264, 136},
                      harness::place_groups(std::vector<std::int64_t>(static_cast<std::size_t>(batch), rows),
                                            between, m),
                      2);
      }
    }
  }
}

TEST_CASE("products of other sizes or at other distances are no strided batch", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = harness::find_variant(step_under_test(), "strided");
  harness::Workload workload({100, 40, 72}, harness::Pattern::kExact, 1, {.groups = {{0, 50}, {50, 100}}});
  gemm::Problem problem = workload.problem();
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  using Groups = std::vector<gemm::GroupRows>;
  for (const auto& [groups, says] :
       {std::pair<Groups, std::string>{{{0, 50}, {50, 99}}, "group 1 has 49 rows, but group 0 has 50"},
        {{{0, 0}, {0, 0}}, "group 0 has 0 rows"},
        {{{0, 30}, {30, 60}, {61, 91}}, "group 2 begins 31 rows after the group before"}}) {
    problem.groups = groups;
    try {
      gemm::prepare(variant, problem);
      FAIL("it was taken");
    } catch (const std::invalid_argument& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(says) != std::string::npos);
    }
  }
}
