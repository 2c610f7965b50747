// Step 22's own shapes: every kind of plan that the model makes, and `auto`, which runs what it chooses.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "22_peak/chosen_plan.h"
#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/check_plan.h"
#include "launches.h"
#include "schedules.h"

namespace {

using gemm::FittedPlan;
using gemm::Prediction;
using gemm::step_22::kTiles;

gemm::Card card_of(int sms) {
  gemm::Card card = gemm::kH200;
  card.sms = sms;
  card.clusters = {};  // of any SMs
  return card;
}

struct Case {
  gemm::Shape shape;
  int sms = 0;
  std::size_t tile = 0;
  Prediction best;
};

/// Shapes of a few tiles, with odd edges, as long in K as it takes.
template <typename Suits>
Case smallest(std::size_t tile, const std::initializer_list<int>& all_sms, const Suits& suits) {
  Case best;
  double least = 0;
  for (const int sms : all_sms) {
    for (const auto& [tiles_m, tiles_n] :
         {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}, std::pair{3, 1}, std::pair{2, 2},
          std::pair{1, 4}, std::pair{5, 1}, std::pair{3, 3}, std::pair{2, 4}, std::pair{4, 4}}) {
      for (const int k : {56, 136, 264, 520, 1032, 2056, 4104, 8200, 528, 1040, 2064, 4112, 8208}) {
        const gemm::Shape shape{tiles_m * kTiles[tile].m - 5, tiles_n * kTiles[tile].n - 8, k};
        const double size = static_cast<double>(shape.m) * shape.n * shape.k;
        if (least > 0 && size >= least) continue;
        const Prediction prediction = gemm::step_22::best_plan(tile, shape, card_of(sms));
        if (prediction.us == 0 || !suits(prediction)) continue;
        best = {shape, sms, tile, prediction};
        least = size;
      }
    }
  }
  return best;
}

/// What the host launches is what the model said; and the result is right twice, under the first of these
/// schedules and in the long tier under all.
void verify_case(const Case& one, std::initializer_list<int> schedules) {
  REQUIRE(one.sms > 0);
  const gemm::Variant& variant = variant_named(kTiles[one.tile].name);
  const FittedPlan& plan = one.best.plan;
  const gemm::Decomposition& all = one.best.decomposition;
  INFO(variant.name << ", " << one.sms << " SMs: " << gemm::step_22::explain({one.best}));
  for (const int schedule : schedules) {
    if (schedule != *schedules.begin() && !in_long_tier()) break;
    under(kSchedules[schedule], one.sms);
    const gemm::ptx::LaunchShape launch = variant.launch_shape(one.shape);
    REQUIRE(static_cast<int>(launch.cluster.count()) == plan.cluster.ctas() * plan.parts);
    REQUIRE(static_cast<int>(launch.grid.count()) == all.workers * plan.cluster.ctas());
    REQUIRE(launch.co_resident == (all.stream_k_tiles > 0 || plan.lockstep > 0));
    REQUIRE((variant.workspace_bytes(one.shape) > 0) == launch.co_resident);
    const double k_tiles = gemm::ceil_div(one.shape.k, kTiles[one.tile].k);
    REQUIRE(variant.busiest_tiles(one.shape) == Approx(busiest_k_tiles(all) / k_tiles));
    verify_twice(variant, one.shape);
  }
}

/// The same for every second tile, or every one; each under other schedules.
template <typename Suits>
int verify_kind(const std::initializer_list<int>& all_sms, int every, const Suits& suits) {
  int found = 0;
  for (std::size_t tile = 0; tile < kTiles.size(); tile += static_cast<std::size_t>(every)) {
    const Case one = smallest(tile, all_sms, suits);
    if (one.sms == 0) continue;
    const int first = found++ % 4;
    verify_case(one, {first, (first + 2) % 4});
  }
  harness::control_emulator({});
  return found;
}

}  // namespace

TEST_CASE("whole tiles of every size, several for each SM, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({1, 2}, 1, [](const Prediction& best) {
          return best.decomposition.stream_k_tiles == 0 &&
                 best.decomposition.tiles > best.decomposition.workers;
        }) == std::count_if(kTiles.begin(), kTiles.end(), [](const auto& tile) { return !tile.split; }));
}

namespace {

/// For every number of CTAs that this tile's K is cut among, a small shape where that is the best plan.
std::map<int, Case> smallest_of_parts(std::size_t tile, bool transposed) {
  std::map<int, Case> cases;
  const gemm::FittedTile& size = kTiles[tile];
  for (const int sms : {1, 2, 4, 8, 9, 17}) {
    for (const auto& [tiles_m, tiles_n] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}}) {
      for (const int k_tiles : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 23, 29, 47}) {
        const int rows = tiles_m * size.m - 3;
        const int columns = tiles_n * size.n - 8;
        const gemm::Shape shape{transposed ? columns - 1 : rows, transposed ? rows / 8 * 8 : columns,
                                k_tiles * size.k - 8};
        const Prediction best = gemm::step_22::best_plan(tile, shape, card_of(sms));
        if (best.us == 0 || best.plan.transposed != transposed) continue;
        Case& known = cases[best.plan.parts];
        const auto work = [](const gemm::Shape& of) { return 1.0 * of.m * of.n * of.k; };
        if (known.sms == 0 || work(shape) < work(known.shape)) known = {shape, sms, tile, best};
      }
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("tiles whose K is cut in a cluster of every size, either way round, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  std::map<int, int> found[2];  // [transposed][parts]
  int round = 0;
  int unequal = 0;  // some CTAs have a k-tile more
  bool idle = false;
  for (std::size_t tile = 0; tile < kTiles.size(); ++tile) {
    if (!kTiles[tile].split) continue;
    for (const bool transposed : {false, true}) {
      for (const auto& [parts, one] : smallest_of_parts(tile, transposed)) {
        ++found[transposed ? 1 : 0][parts];
        if (gemm::ceil_div(one.shape.k, kTiles[tile].k) % parts != 0) ++unequal;
        // Ten units of 8 columns, two for each CTA: one CTA at least finishes nothing.
        if (parts >= 6 && tile == gemm::step_22::number_of("64x80_split")) {
          idle = true;
          verify_case(one, {0, 1, 2, 3});
        } else {
          verify_case(one, {round % 4, (round + 2) % 4});
        }
        ++round;
      }
    }
  }
  // What the model chooses among these shapes; tests/gemm/split_parts_test.cpp runs every number of
  // parts.
  for (const auto& of : found) CHECK(of.size() >= 5);
  CHECK(unequal > 5);
  CHECK(idle);
  harness::control_emulator({});
}

TEST_CASE("a bare check of a tile whose K is cut has a cluster that shares it", "[emulator]") {
  if (skip_without_emulator()) return;
  int split = 0;
  for (const gemm::FittedTile& tile : kTiles) {
    if (!tile.split) continue;
    const gemm::Variant& variant = variant_named(tile.name);
    const auto cases = harness::plan_check(step_under_test(), variant, 1, true);
    const bool shared = std::any_of(cases.begin(), cases.end(), [&](const harness::CheckCase& one) {
      under(kSchedules[0], one.sms);
      const harness::CheckFacts facts = harness::check_facts(variant, one.shape);
      return !facts.splits && facts.tiles() == 1 && facts.cluster > 1;
    });
    INFO(tile.name);
    CHECK(shared);
    ++split;
  }
  CHECK(split > 5);
  harness::control_emulator({});
}

TEST_CASE("the bare checks of some variants fetch partials, with one consumer group and with two",
          "[emulator]") {
  if (skip_without_emulator()) return;
  std::map<int, int> cut;  // [groups]
  int with_more_to_do = 0, in_the_middle = 0;
  for (const gemm::FittedTile& tile : kTiles) {
    const gemm::Variant& variant = variant_named(tile.name);
    for (const harness::CheckCase& one : harness::plan_brief_check(step_under_test(), variant, 1, false)) {
      under(kSchedules[0], one.sms);
      const harness::CheckFacts facts = harness::check_facts(variant, one.shape);
      const double busiest = variant.busiest_tiles(one.shape);
      if (!facts.splits) continue;
      INFO(tile.name << " " << harness::to_string(one.shape));
      CHECK(busiest != std::floor(busiest));
      CHECK(one.launches == 2);
      ++cut[tile.groups];
      with_more_to_do += tile.groups == 2 && facts.tiles() > 2 * facts.ctas ? 1 : 0;
      in_the_middle += facts.cluster == 1 && facts.ctas > facts.tiles() ? 1 : 0;
    }
  }
  CHECK(cut[1] > 0);
  CHECK(cut[2] > 0);
  CHECK(with_more_to_do > 0);
  CHECK(in_the_middle > 0);
  harness::control_emulator({});
}

TEST_CASE("tiles that are all cut along K, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({4, 8}, 4, [](const Prediction& best) {
          const gemm::Decomposition& all = best.decomposition;
          return all.stream_k_tiles == all.tiles && all.workers > 1;
        }) > 2);
}

TEST_CASE("stream-K tiles and whole ones behind them, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({2, 4}, 4, [](const Prediction& best) {
          const gemm::Decomposition& all = best.decomposition;
          return all.stream_k_tiles > 0 && all.stream_k_tiles < all.tiles;
        }) > 2);
}

TEST_CASE("the variant in lockstep has one where the best plan has none", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& in_lockstep = step_under_test().variants.back();
  const Case without = smallest(gemm::step_22::number_of("128x256"), {4}, [](const Prediction& best) {
    return best.plan.lockstep == 0 && best.plan.cluster.ctas() == 1;
  });
  REQUIRE(without.sms == 4);
  INFO(harness::to_string(without.shape));
  under(kSchedules[0], without.sms);
  CHECK(variant_named("128x256").workspace_bytes(without.shape) == 0);
  CHECK(in_lockstep.workspace_bytes(without.shape) > 0);  // counters
  CHECK(in_lockstep.workspace_bytes(without.shape) < 1000);
  verify_twice(in_lockstep, without.shape);
}

TEST_CASE("fewer clusters than there is room for, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({11, 17}, 4, [](const Prediction& best) { return best.plan.workers > 0; }) > 0);
}

TEST_CASE("tiles whose K is cut and that share loads, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({4, 8}, 2, [](const Prediction& best) {
          return best.plan.parts > 1 && best.plan.cluster.ctas() > 1;
        }) > 2);
}

TEST_CASE("clusters of two, four and eight, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const int ctas : {2, 4, 8}) {
    INFO("clusters of " << ctas);
    CHECK(verify_kind({ctas, 2 * ctas}, 6,
                      [&](const Prediction& best) { return best.plan.cluster.ctas() == ctas; }) > 1);
  }
}

TEST_CASE("tiles whose rows are columns of D, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  CHECK(verify_kind({1, 3}, 2, [](const Prediction& best) { return best.plan.transposed; }) > 6);
}

TEST_CASE("one row, one column, one k-tile and less, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  int round = 0;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const gemm::Shape& shape :
         {gemm::Shape{1, 8, 8}, gemm::Shape{1, 264, 72}, gemm::Shape{261, 8, 136}}) {
      under(kSchedules[round % 4], 1 + round % 3);
      verify_twice(variant, shape);
      ++round;
    }
  }
  harness::control_emulator({});
}

TEST_CASE("auto runs what the model chooses", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& automatic = step_under_test().variants.front();
  REQUIRE(automatic.name == "auto");
  REQUIRE(automatic.choose != nullptr);
  std::set<std::string> met;
  for (const int sms : {1, 3, 8}) {
    harness::control_emulator({.sm_count = sms});
    for (const gemm::Shape& shape :
         {gemm::Shape{5, 136, 264}, {700, 1000, 72}, {300, 520, 1000}, {160, 136, 392}}) {
      const gemm::Choice choice = automatic.choose(shape);
      const gemm::step_22::Plan best = gemm::step_22::choose(shape, card_of(sms));
      CHECK(choice.variant == kTiles[best.tile].name);
      CHECK(choice.why.rfind(explain(best), 0) == 0);
      CHECK((!choice.promising.empty() && choice.promising.size() <= 4));
      CHECK(choice.promising.front() == choice.variant);
      const std::set<std::string> different(choice.promising.begin(), choice.promising.end());
      CHECK(different.size() == choice.promising.size());
      const gemm::Variant& chosen = variant_named(choice.variant);
      const auto launch = automatic.launch_shape(shape);
      CHECK(launch.block.x == chosen.launch_shape(shape).block.x);
      CHECK(launch.grid.x == chosen.launch_shape(shape).grid.x);
      CHECK(launch.grid.count() == chosen.launch_shape(shape).grid.count());
      CHECK(launch.cluster.x == chosen.launch_shape(shape).cluster.x);
      CHECK(launch.shared_bytes == chosen.launch_shape(shape).shared_bytes);
      CHECK(automatic.workspace_bytes(shape) == chosen.workspace_bytes(shape));
      CHECK(automatic.busiest_tiles(shape) == chosen.busiest_tiles(shape));
      verify_twice(automatic, shape);
      met.insert(choice.variant);
    }
  }
  CHECK(met.size() > 3);  // otherwise this shows little
  harness::control_emulator({});
}

TEST_CASE("the tiles of the model are the variants, in this order", "[host]") {
  REQUIRE(step_under_test().variants.size() == kTiles.size() + 2);
  std::set<const void*> kernels;
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    const gemm::Variant& variant = step_under_test().variants[i + 1];
    CHECK(variant.name == kTiles[i].name);
    CHECK(variant.choose == nullptr);
    CHECK(variant.tile.m == kTiles[i].m);
    CHECK(variant.tile.n == kTiles[i].n);
    CHECK(variant.tile.k == kTiles[i].k);
    CHECK(variant.stages >= 3);
    const int split_threads = 128 * kTiles[i].warpgroups + 32;
    CHECK(static_cast<int>(variant.launch_shape({64, 64, 64}).block.x) ==
          (kTiles[i].split ? split_threads : 128 * (kTiles[i].groups * kTiles[i].warpgroups + 1)));
    kernels.insert(variant.kernel);
  }
  CHECK(kernels.size() == kTiles.size());
  const gemm::Variant& in_lockstep = step_under_test().variants.back();
  CHECK(in_lockstep.name == "128x256_lockstep");
  CHECK(kernels.count(in_lockstep.kernel) == 1);
  CHECK(in_lockstep.launch_shape({64, 64, 64}).co_resident);
}
