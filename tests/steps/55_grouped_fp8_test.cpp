// Step 55: groups of every kind with scales of blocks, under many schedules; what is not a number stays where
// it belongs.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/groups.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

bool is_masked(const gemm::Variant& variant) {
  return variant.groups == gemm::GroupForm::kMasked;
}

void verify_groups(const gemm::Variant& variant, const gemm::Shape& shape,
                   const std::vector<gemm::GroupRows>& groups, int capacity = 0,
                   Pattern pattern = Pattern::kExact, int launches = 1) {
  INFO(variant.name << ", " << harness::to_string(groups));
  harness::ProblemForm form{.types = variant.types, .groups = groups};
  form.capacity = capacity;
  verify_form(variant, shape, form, pattern, 5, launches);
}

/// The sizes one after another, or each in a room of as many rows as the largest has and some more.
void verify_sizes(const gemm::Variant& variant, const std::vector<std::int64_t>& sizes, int n = 264,
                  int k = 272, Pattern pattern = Pattern::kExact) {
  if (is_masked(variant)) {
    const int capacity = static_cast<int>(*std::max_element(sizes.begin(), sizes.end())) + 5;
    const int rows = capacity * static_cast<int>(sizes.size());
    verify_groups(variant, {rows, n, k}, harness::place_masked_groups(sizes, capacity, rows), capacity,
                  pattern, 2);
    return;
  }
  constexpr int kGuardRows = 3;
  int rows = kGuardRows * (static_cast<int>(sizes.size()) - 1);
  for (const std::int64_t size : sizes) rows += static_cast<int>(size);
  verify_groups(variant, {rows, n, k}, harness::place_groups(sizes, kGuardRows, rows), 0, pattern);
}

}  // namespace

TEST_CASE("group sizes on each side of tiles and of their boxes, one row, none, all in one",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_sizes(variant, {127, 128, 129, 1}, 136, 144);
    verify_sizes(variant, {63, 64, 65, 15, 16, 17}, 136, 144);
    verify_sizes(variant, {0, 1, 0, 0, 130, 0});
    verify_sizes(variant, {1});
  }
}

TEST_CASE("a group begins at each place of a vector of scales", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // With three guard rows, groups begin at 0, 4, 9, 15, 18: each remainder of a division by 4.
  for (const gemm::Variant& variant : step_under_test().variants) verify_sizes(variant, {1, 2, 3, 0, 5});
}

TEST_CASE("N ends inside a block of scales, and the next group's scales begin with a block", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int n : {8, 128, 136, 392}) verify_sizes(variant, {20, 30, 10}, n, 144);
  }
}

TEST_CASE("lanes are filled again after 32 blocks of K, in each group", "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int k : {4096, 4112}) verify_sizes(variant, {5, 9, 2}, 40, k);
  }
}

TEST_CASE("groups without any row leave D as it is", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) verify_sizes(variant, {0, 0, 0, 0});
}

TEST_CASE("random scales and numbers stay inside the bound, and what is not a number stays in its group",
          "[device][slow]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern :
         {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange, Pattern::kSpecial})
      verify_sizes(variant, {40, 70, 3}, 136, 528, pattern);
  }
}

TEST_CASE("groups under ten seeds, earliest and latest", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"contiguous", "contiguous_192"}) {
    under_ten_seeds(4, [&](std::uint64_t seed) {
      verify_groups(variant_named(name), {200, 264, 272},
                    harness::parse_groups("5:zipf:" + std::to_string(seed), 200));
    });
  }
  under_ten_seeds(4, [&](std::uint64_t seed) {
    verify_groups(variant_named("masked_few"), {200, 264, 272},
                  harness::parse_groups("5:empty:" + std::to_string(seed) + ":100/40", 200), 40,
                  Pattern::kExact, 2);
  });
}
