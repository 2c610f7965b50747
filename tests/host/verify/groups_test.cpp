// Groups of rows: how they are drawn and placed, what is refused, and whether the verifier sees what a kernel
// can do to a neighbour.
#include "harness/verify/groups.h"

#include <numeric>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/problem/check_problem.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/workload.h"
#include "rejected.h"

namespace {

using gemm::GroupRows;
using harness::GroupSizes;

constexpr gemm::TileShape kGroupTile{16, 16, 16};

std::string refusal(const std::string& text, int m) {
  try {
    harness::parse_groups(text, m);
    return "";
  } catch (const harness::Error& error) {
    return error.what();
  }
}

std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

TEST_CASE("groups: every distribution gives away every row, and the same ones for the same seed") {
  for (const GroupSizes distribution :
       {GroupSizes::kEqual, GroupSizes::kUniform, GroupSizes::kZipf, GroupSizes::kEmpty, GroupSizes::kOne}) {
    for (const int groups : {1, 2, 7, 40, 129}) {
      for (const int rows : {0, 1, 6, 1000, 65536}) {
        for (const std::uint64_t seed : {1u, 2u, 77u}) {
          CAPTURE(static_cast<int>(distribution), groups, rows, seed);
          const std::vector<std::int64_t> sizes = harness::draw_groups(groups, rows, distribution, seed);
          REQUIRE(sizes.size() == static_cast<std::size_t>(groups));
          CHECK(sum_of(sizes) == rows);
          CHECK(*std::min_element(sizes.begin(), sizes.end()) >= 0);
          CHECK(sizes == harness::draw_groups(groups, rows, distribution, seed));
        }
      }
    }
  }
}

TEST_CASE("groups: the distributions are what they are called") {
  const auto draw = [](GroupSizes distribution) {
    std::vector<std::int64_t> sizes = harness::draw_groups(64, 65536, distribution, 5);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  };
  CHECK(draw(GroupSizes::kEqual) == std::vector<std::int64_t>(64, 1024));
  const std::vector<std::int64_t> zipf = draw(GroupSizes::kZipf);
  // 1 + 1/2 + ... + 1/64 is 4.7439.
  CHECK(std::abs(static_cast<double>(zipf[63]) - 65536 / 4.7439) < 2);
  CHECK(std::abs(static_cast<double>(zipf[62]) - 65536 / 4.7439 / 2) < 2);
  const std::vector<std::int64_t> empty = draw(GroupSizes::kEmpty);
  CHECK(std::count(empty.begin(), empty.end(), 0) == 32);
  const std::vector<std::int64_t> uniform = draw(GroupSizes::kUniform);
  CHECK(uniform.front() < 200);
  CHECK(uniform.back() > 1700);
  CHECK(uniform.back() < 2500);
  const std::vector<std::int64_t> one = draw(GroupSizes::kOne);
  CHECK(one[62] == 0);
  CHECK(harness::draw_groups(64, 100, GroupSizes::kZipf, 1) !=
        harness::draw_groups(64, 100, GroupSizes::kZipf, 2));
}

TEST_CASE("groups: what the flag says") {
  CHECK(harness::parse_groups("", 5).empty());
  CHECK(harness::parse_groups("3,0,2", 5) == std::vector<GroupRows>{{0, 3}, {3, 3}, {3, 5}});
  CHECK(harness::parse_groups("3,0,2+1", 7) == std::vector<GroupRows>{{0, 3}, {4, 4}, {5, 7}});
  CHECK(harness::parse_groups("5", 5) == std::vector<GroupRows>{{0, 5}});
  CHECK(harness::parse_groups("2:equal", 5) == harness::parse_groups("2:equal:1", 5));
  CHECK(harness::parse_groups("3:equal+2", 10).back() == GroupRows{8, 10});
  CHECK(harness::to_string(harness::parse_groups("3,0,2", 5)) == "3 groups of 0 to 3 rows, 1 of them empty");
  CHECK(harness::to_string(harness::parse_groups("5", 5)) == "1 group of 5 to 5 rows");
}

TEST_CASE("groups: what is refused, in a sentence each") {
  CHECK(refusal("3,-5,7", 5) == "group 1 has -5 rows: a group must have at least 0");
  CHECK(refusal("3,2147483648", 5) ==
        "group 1 ends after row 262144: all groups together may have at most that many rows");
  CHECK(refusal("262144,262144", 5).find("group 1 ends after row 262144") == 0);
  CHECK(refusal("3,99999999999999999999", 5) ==
        "the number 99999999999999999999 in 3,99999999999999999999 is too large");
  CHECK(refusal("3,3", 5) ==
        "the groups have 6 rows, but M is 5: M must be the number of rows of all groups");
  CHECK(refusal("3,3+1", 5) ==
        "the groups have 7 rows with the guard rows between them, but M is 5: M must be the number of rows "
        "of all groups");
  CHECK(refusal("3,x", 5).find("'3,x' does not describe groups") == 0);
  CHECK(refusal("3,,2", 5).find("'3,,2' does not describe groups") == 0);
  CHECK(refusal("4:zip", 5).find("unknown distribution 'zip'; did you mean 'zipf'?") == 0);
  CHECK(refusal("0:zipf", 5) == "the number of groups in 0:zipf must be from 1 to 65536");
  CHECK(refusal("9:zipf+1", 5) == "9 groups with 1 guard rows between them do not fit into 5 rows");
  CHECK(contains(refusal("4:zipf:1:1", 5), "does not describe groups"));
  CHECK(refusal("3,2+-1", 5).find("the number of guard rows") == 0);
}

TEST_CASE("groups: counts and a capacity") {
  CHECK(harness::parse_capacity("3,0,2") == 0);
  CHECK(harness::parse_capacity("3,0,2/4") == 4);
  CHECK(harness::parse_groups("3,0,4/4", 12) == std::vector<GroupRows>{{0, 3}, {4, 4}, {8, 12}});
  CHECK(harness::parse_groups("3:equal/4", 12) == std::vector<GroupRows>{{0, 2}, {4, 6}, {8, 10}});
  CHECK(harness::parse_groups("3:equal:1:9/4", 12) == std::vector<GroupRows>{{0, 3}, {4, 7}, {8, 11}});
  // What is above the capacity is left out.
  CHECK(sum_of({harness::parse_groups("3:one:1:12/4", 12)[0].count(),
                harness::parse_groups("3:one:1:12/4", 12)[1].count(),
                harness::parse_groups("3:one:1:12/4", 12)[2].count()}) == 4);
  CHECK(refusal("3,5/4", 8) == "group 1 has 5 rows, but room for 4: a count must be from 0 to the capacity");
  CHECK(refusal("3,-1/4", 8) ==
        "group 1 has -1 rows, but room for 4: a count must be from 0 to the capacity");
  CHECK(refusal("3,1/4", 9) ==
        "2 groups have room for 4 rows each, which is 8 rows in all, but M is 9: M must be the number of "
        "rows for which there is room");
  CHECK(refusal("3,1/0", 8) == "the capacity in 3,1/0 must be from 1 to 262144");
  CHECK(refusal("3,1/x", 8).find("'3,1/x' does not describe groups") == 0);
  CHECK(contains(refusal("3,1+1/4", 8), "gives guard rows and a capacity"));
  CHECK(contains(refusal("2:zipf:1:5:6/4", 8), "does not describe groups"));
}

TEST_CASE("groups: anywhere, as the seed behind an @ says") {
  CHECK(harness::parse_placement("3,0,2") == 0);
  CHECK(harness::parse_placement("3,0,2+1@7") == 7);
  CHECK(harness::parse_placement("3,0,2+1@7x") == (7 | harness::kOwnSizesPlaced));
  CHECK(harness::parse_groups("3,0,2+1@7", 7) == harness::parse_groups("3,0,2+1", 7));
  CHECK(harness::parse_groups("4:zipf:2@1", 9) == harness::parse_groups("4:zipf:2", 9));
  CHECK(refusal("3,2@0", 5) == "the seed after the @ in 3,2@0 must be at least 1");
  CHECK(refusal("3,2@x", 5).find("'3,2@x' does not describe groups") == 0);
  CHECK(contains(refusal("3,1/4@2", 8), "gives a placement and a capacity"));
}

TEST_CASE("groups: anywhere they lie apart, and what is written beside them is found") {
  const gemm::Shape shape{12, 16, 24};
  const std::vector<GroupRows> groups{{0, 5}, {5, 5}, {7, 12}};
  harness::Workload workload(shape, harness::Pattern::kExact, 3, {.groups = groups, .placement = 2});
  const gemm::Problem problem = workload.problem();
  REQUIRE(problem.placed_count == 3);
  REQUIRE(problem.known.size() == 3);
  CHECK(problem.a == nullptr);
  CHECK(problem.groups.empty());
  CHECK(problem.known[1].rows == 0);
  CHECK(gemm::violated_placement_rule(problem.known, shape).empty());
  // What a kernel would do, by the host.
  workload.poison();
  const auto solve = [&] {
    for (const gemm::PlacedGroup& group : problem.known) {
      for (int row = 0; row < group.rows; ++row) {
        for (int column = 0; column < shape.n; ++column) {
          float sum = 0;
          for (int k = 0; k < shape.k; ++k) {
            gemm::bf16 a;
            gemm::bf16 b;
            harness::copy_to_host(&a, group.a + gemm::offset(row, k, group.a_pitch), sizeof a);
            harness::copy_to_host(&b, group.b + gemm::offset(column, k, group.b_pitch), sizeof b);
            sum += gemm::to_float(a) * gemm::to_float(b);
          }
          const gemm::bf16 value = gemm::to_bf16(sum);
          harness::copy_to_device(group.d + gemm::offset(row, column, group.d_pitch), &value, sizeof value);
        }
      }
    }
  };
  solve();
  CHECK(workload.check(kGroupTile).report == "");
  // With another pitch of one operand, by the group.
  const auto report_with = [&](bool of_a, const auto& pitch) {
    workload.poison();
    for (const gemm::PlacedGroup& group : problem.known) {
      for (int row = 0; row < group.rows; ++row) {
        for (int column = 0; column < shape.n; ++column) {
          float sum = 0;
          for (int k = 0; k < shape.k; ++k) {
            gemm::bf16 a;
            gemm::bf16 b;
            const int pitch_a = of_a ? pitch(group) : group.a_pitch;
            const int pitch_b = of_a ? group.b_pitch : pitch(group);
            harness::copy_to_host(&a, group.a + gemm::offset(row, k, pitch_a), sizeof a);
            harness::copy_to_host(&b, group.b + gemm::offset(column, k, pitch_b), sizeof b);
            sum += gemm::to_float(a) * gemm::to_float(b);
          }
          const gemm::bf16 value = gemm::to_bf16(sum);
          harness::copy_to_device(group.d + gemm::offset(row, column, group.d_pitch), &value, sizeof value);
        }
      }
    }
    return workload.check(kGroupTile).report;
  };
  const std::string of_b = report_with(false, [](const gemm::PlacedGroup& group) { return group.a_pitch; });
  check_text(of_b, {"Fits: B of group", "read as if its rows were as far apart as those of A"},
             {"No simple mistake"});
  CHECK(contains(report_with(true, [](const gemm::PlacedGroup& group) { return group.d_pitch; }),
                 "as far apart as those of D"));
  CHECK_FALSE(contains(report_with(true, [](const gemm::PlacedGroup& group) { return group.a_pitch + 40; }),
                       "as far apart as"));
  const gemm::bf16 value = gemm::to_bf16(1);
  const auto damaged = [&](gemm::bf16* at) {
    workload.poison();
    solve();
    harness::copy_to_device(at, &value, sizeof value);
    return workload.check(kGroupTile);
  };
  const gemm::PlacedGroup& last = problem.known[2];
  const harness::CheckResult behind = damaged(last.d + gemm::offset(last.rows, 3, last.d_pitch));
  CHECK(behind.failed == std::vector<std::string>{harness::kGuardRows});
  CHECK(contains(behind.report,
                 "1 element of D outside all groups was written; the first would be row 5, column 3 of group "
                 "2, which has 5 rows of 16 columns"));
  CHECK(damaged(problem.known[0].d - 1).failed == std::vector<std::string>{harness::kGuardRows});
  CHECK_FALSE(contains(behind.report, "up to the next multiple"));
  workload.poison();
  solve();
  for (const gemm::PlacedGroup& group : problem.known) {
    for (int row = group.rows; row < gemm::ceil_div(group.rows, 8) * 8; ++row)
      harness::copy_to_device(group.d + gemm::offset(row, 0, group.d_pitch), &value, sizeof value);
  }
  check_text(workload.check(kGroupTile).report,
             {"rows up to the next multiple of 8 were written, because nothing clips the boxes of 8 rows"});
  CHECK(damaged(const_cast<gemm::bf16*>(last.a) + 2).failed == std::vector<std::string>{harness::kInputA});
}

TEST_CASE("groups: a problem's groups ascend, and lie in A") {
  const gemm::Shape shape{100, 8, 8};
  const auto rule = [&](const std::vector<GroupRows>& groups) {
    return gemm::violated_group_rule(groups, shape);
  };
  CHECK(rule({}).empty());
  CHECK(rule({{0, 10}, {10, 10}, {12, 100}}).empty());
  CHECK(rule({{0, 10}, {-1, 5}}) == "group 1 begins at row -1: rows are counted from 0");
  CHECK(rule({{0, 10}, {20, 15}}) ==
        "group 1 begins at row 20 and ends at row 15: a group must have at least 0 rows");
  CHECK(rule({{0, 10}, {9, 15}}) ==
        "group 1 begins at row 9, but group 0 ends at row 10: offsets must ascend");
  CHECK(rule({{0, 10}, {10, 101}}) ==
        "group 1 ends at row 101, but A has 100: M must be the number of rows of all groups");
  CHECK(
      gemm::violated_group_rule(std::vector<GroupRows>(5), {100, 1 << 30, 8}).find("B has 5 x 1073741824") ==
      0);
}

TEST_CASE("groups: a variant that takes none refuses them") {
  gemm::Variant variant;
  variant.name = "plain";
  variant.prepare = [](const gemm::Gemm&) -> gemm::Launcher { return [](gemm::ptx::Stream) {}; };
  gemm::Problem problem;
  problem.shape = {4, 8, 8};
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  problem.groups = {{0, 4}};
  CHECK_THROWS_AS(gemm::prepare(variant, problem), std::invalid_argument);
  variant.groups = gemm::GroupForm::kRows;
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  problem.groups = {{0, 5}};
  CHECK_THROWS_AS(gemm::prepare(variant, problem), std::invalid_argument);
}

TEST_CASE("groups: the reference of a group is that of a problem of its own") {
  const gemm::Shape shape{23, 16, 24};
  const std::vector<GroupRows> groups{{0, 7}, {7, 7}, {9, 23}};
  for (const harness::Pattern pattern : {harness::Pattern::kExact, harness::Pattern::kNormal}) {
    const harness::RunImage image = harness::correct_image(shape, pattern, 3, groups);
    REQUIRE(image.b.size() == 3u * 16 * 24);
    for (int row = 0; row < shape.m; ++row) {
      const int group = row < 7 ? 0 : row < 9 ? -1 : 2;
      CHECK(image.rules().group_of(row) == group);
      for (int column = 0; column < shape.n; ++column) {
        double sum = 0;
        for (int k = 0; k < shape.k && group >= 0; ++k)
          sum += static_cast<double>(gemm::to_float(image.a[static_cast<std::size_t>(row * 24 + k)])) *
                 static_cast<double>(
                     gemm::to_float(image.b[static_cast<std::size_t>((group * 16 + column) * 24 + k)]));
        const gemm::bf16 got = image.d[static_cast<std::size_t>(row * 16 + column)];
        CHECK(got.bits == (group < 0 ? harness::kPoison : gemm::to_bf16(static_cast<float>(sum))).bits);
      }
    }
    const harness::CheckResult result =
        harness::verify(image, harness::host_acceptance(shape, pattern, 3, groups), kGroupTile);
    CHECK(result.report == "");
  }
}

TEST_CASE("groups: every injected fault is rejected, for the right reason") {
  const gemm::Shape shape{60, 24, 72};
  const std::vector<GroupRows> groups = harness::grouped_fault_groups(shape);
  REQUIRE(gemm::violated_group_rule(groups, shape).empty());
  for (const harness::Pattern pattern : {harness::Pattern::kExact, harness::Pattern::kNormal}) {
    const harness::RunImage correct = harness::correct_image(shape, pattern, 3, groups);
    const harness::Acceptance acceptance = harness::host_acceptance(shape, pattern, 3, groups);
    CHECK(harness::verify(correct, acceptance, kGroupTile).ok);
    const auto verify = [&](const harness::RunImage& image) {
      return harness::verify(image, acceptance, kGroupTile);
    };
    check_rejected(harness::group_faults(), pattern, correct, verify, kGroupTile);
  }
}

TEST_CASE("groups: the report says that all of them take the B of one") {
  const gemm::Shape shape{60, 24, 72};
  const std::vector<GroupRows> groups{{0, 20}, {20, 30}, {30, 45}, {45, 60}};
  const harness::RunImage correct = harness::correct_image(shape, harness::Pattern::kExact, 3, groups);
  const harness::Acceptance acceptance = harness::host_acceptance(shape, harness::Pattern::kExact, 3, groups);
  const auto report_with = [&](const auto& group_of_b) {
    harness::RunImage image = correct;
    for (int group = 0; group < 4; ++group) {
      for (int row = groups[static_cast<std::size_t>(group)].begin;
           row < groups[static_cast<std::size_t>(group)].end; ++row) {
        for (int column = 0; column < shape.n; ++column) {
          float sum = 0;
          for (int k = 0; k < shape.k; ++k)
            sum +=
                gemm::to_float(image.a[static_cast<std::size_t>(row * shape.k + k)]) *
                gemm::to_float(
                    image.b[static_cast<std::size_t>((group_of_b(group) * shape.n + column) * shape.k + k)]);
          image.d[static_cast<std::size_t>(row * shape.n + column)] = gemm::to_bf16(sum);
        }
      }
    }
    return harness::verify(image, acceptance, kGroupTile).report;
  };
  CHECK(report_with([](int group) { return group; }).empty());
  const std::string first = report_with([](int) { return 0; });
  check_text(first, {"the rows of all these groups are A times the B of group 0, although they belong to "
                     "different groups"});
  const std::string next = report_with([](int group) { return (group + 1) % 4; });
  check_text(next, {}, {"the rows of all these groups"});
}

TEST_CASE("groups: the report says which of them were never written") {
  const gemm::Shape shape{60, 24, 72};
  const std::vector<GroupRows> groups{{0, 20}, {20, 20}, {20, 30}, {30, 30}, {30, 45}, {45, 60}};
  const harness::RunImage correct = harness::correct_image(shape, harness::Pattern::kExact, 3, groups);
  const harness::Acceptance acceptance = harness::host_acceptance(shape, harness::Pattern::kExact, 3, groups);
  const auto report_without = [&](int begin, int end) {
    harness::RunImage image = correct;
    std::fill(image.d.begin() + begin * shape.n, image.d.begin() + end * shape.n, harness::kPoison);
    return harness::verify(image, acceptance, kGroupTile).report;
  };
  INFO(report_without(20, 45));
  CHECK(contains(report_without(20, 45), "No row of groups 2 to 4 was stored, and every row of the others."));
  CHECK(contains(report_without(45, 60), "No row of group 5 was stored"));
  CHECK_FALSE(contains(report_without(20, 25), "No row of group"));
  CHECK(contains(report_without(20, 35), "No row of group 2 was stored."));
}

TEST_CASE("groups: the report says that parts of groups were rounded down, and which groups are wrong") {
  const gemm::Shape shape{60, 24, 72};
  const std::vector<GroupRows> groups{{0, 20}, {20, 20}, {20, 30}, {30, 30}, {30, 46}, {46, 60}};
  const harness::RunImage correct = harness::correct_image(shape, harness::Pattern::kExact, 3, groups);
  const harness::Acceptance acceptance = harness::host_acceptance(shape, harness::Pattern::kExact, 3, groups);
  const auto report_with = [&](const std::vector<GroupRows>& rows, gemm::bf16 value) {
    harness::RunImage image = correct;
    for (const GroupRows& some : rows)
      std::fill(image.d.begin() + some.begin * shape.n, image.d.begin() + some.end * shape.n, value);
    return harness::verify(image, acceptance, kGroupTile).report;
  };
  check_text(report_with({{16, 20}, {28, 30}, {54, 60}}, harness::kPoison),
             {"those that do not fill a part of 8 rows: 4 of the 20 rows of group 0, 2 of the 10 rows of "
              "group 2, 6 of the 14 rows of group 5. The number of parts is rounded down"});
  // Not the ends of all groups.
  CHECK_FALSE(contains(report_with({{16, 20}, {28, 30}}, harness::kPoison), "rounded down"));
  check_text(report_with({{20, 60}}, gemm::bf16{0}),
             {"By groups: wrong in 2, 4 to 5, where every wrong element is 0, right in 0."});
  CHECK(contains(report_with({{46, 60}}, gemm::to_bf16(3)), "By groups: wrong in 5, right in 0, 2, 4."));
  CHECK_FALSE(contains(report_with({{0, 60}}, gemm::bf16{0}), "By groups"));
}

}  // namespace
