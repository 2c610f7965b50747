// Step 22's own shapes: a tape and whole tiles behind it, meetings, few rows, pairs of tiles, posts that are
// used again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "22_peak/choice.h"
#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "launches.h"

namespace {

using gemm::step_22::Configuration;
using gemm::step_22::kConfigurations;
using harness::Completion;

const gemm::Step& peak() {
  return step_under_test();
}

const gemm::Variant& variant_of(const Configuration& configuration) {
  return harness::find_variant(peak(), configuration.name);
}

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {
    {1, Completion::kRandom}, {2, Completion::kRandom}, {1, Completion::kEarliest}, {1, Completion::kLatest}};

void under(const Schedule& schedule, int sms) {
  harness::control_emulator(
      {.schedule_seed = schedule.seed, .completion = schedule.completion, .sm_count = sms});
}

/// K of so many k-tiles of which the last one is not whole; rows start on sectors of the L2, or do not.
int k_of(const Configuration& configuration, int k_tiles, bool on_sectors) {
  return k_tiles * configuration.tile.k - (on_sectors ? 32 : 24);
}

/// All of a tile matters when sums are passed on: `tiles` tiles below each other, nearly whole in M and N.
gemm::Shape whole_tiles_of(const Configuration& configuration, int tiles, int k_tiles, bool on_sectors) {
  const auto [m, n, k] = configuration.tile;
  return {tiles * m - 5, n - 8, k_of(configuration, k_tiles, on_sectors)};
}

/// How the sums that others left come to whoever finishes a tile, in this plan.
struct Passing {
  int fetched = 0;  // tiles whose sums the producer fetches through the ring
  int added = 0;    // tiles whose sums consumers add by themselves
  int most_slots = 0;
  bool before_others = false;  // more pieces follow one whose sums are fetched
};

Passing passing(const Configuration& configuration, const gemm::Decomposition& all) {
  Passing found;
  for (int worker = 0; worker < all.workers; ++worker) {
    gemm::TileScheduler work(all, worker);
    gemm::WorkTile piece;
    gemm::WorkTile following;
    for (bool more = work.next(piece); more; piece = following) {
      more = work.next(following);
      if (piece.slot >= 0) continue;
      const int slots = gemm::peers_of(all, piece, worker).count();
      if (slots == 0) continue;
      const bool fetches = configuration.teams == 1 || !more;
      ++(fetches ? found.fetched : found.added);
      found.most_slots = std::max(found.most_slots, slots);
      if (fetches && more) found.before_others = true;
    }
  }
  return found;
}

struct Case {
  gemm::Shape shape;
  int sms = 0;
  gemm::Decomposition plan;
};

template <typename Suits>
Case shortest(const Configuration& configuration, int least_sms, int most_sms, bool on_sectors,
              const Suits& suits) {
  Case best;
  int fewest = 0;
  for (int sms = least_sms; sms <= most_sms; ++sms) {
    for (int tiles = 1; tiles < 3 * sms; ++tiles) {
      for (int k_tiles = 1; k_tiles < 200; ++k_tiles) {
        if (fewest > 0 && tiles * k_tiles >= fewest) break;
        const gemm::Shape shape = whole_tiles_of(configuration, tiles, k_tiles, on_sectors);
        const gemm::Decomposition all = gemm::step_22::predict(configuration, shape, sms).decomposition;
        if (all.stream_k_tiles == 0 || !suits(all, passing(configuration, all))) continue;
        best = {shape, sms, all};
        fewest = tiles * k_tiles;
        break;
      }
    }
  }
  return best;
}

/// Of the cases that suits(plan, how it passes sums) accepts, the one with the fewest k-tiles; none has shape
/// 0 x 0 x 0. Rows do not start on sectors, unless the model makes such a plan only where they do.
template <typename Suits>
Case shortest(const Configuration& configuration, int least_sms, int most_sms, const Suits& suits) {
  const Case ragged = shortest(configuration, least_sms, most_sms, false, suits);
  return ragged.shape.m > 0 ? ragged : shortest(configuration, least_sms, most_sms, true, suits);
}

/// Verifies the case twice under each of these schedules.
void verify_case(const Configuration& configuration, const Case& chosen,
                 const std::vector<Schedule>& schedules) {
  const gemm::Variant& variant = variant_of(configuration);
  INFO(configuration.name << " on " << chosen.sms << " SMs, " << chosen.plan.stream_k_tiles << " of "
                          << chosen.plan.tiles << " tiles as a tape");
  REQUIRE(chosen.shape.m > 0);
  for (const Schedule& schedule : schedules) {
    under(schedule, chosen.sms);
    // The plan is that of the model: a slot for each worker, of a tile's sums and a flag for each warpgroup.
    const int consumers = static_cast<int>(variant.launch_shape(chosen.shape).block.x) / 128 - 1;
    const int flags = consumers / configuration.teams;
    REQUIRE(variant.workspace_bytes(chosen.shape) ==
            std::int64_t{chosen.sms} * 4 * (configuration.tile.m * configuration.tile.n + flags));
    verify_twice(variant, chosen.shape);
  }
}

bool passes_sums(const Configuration& configuration) {
  return configuration.passes_sums();
}

}  // namespace

TEST_CASE("who passes sums, and who does not", "[host]") {
  CHECK(std::count_if(kConfigurations.begin(), kConfigurations.end(), passes_sums) == 5);
  for (const Configuration& configuration : kConfigurations) {
    INFO(configuration.name);
    const Case any = shortest(configuration, 2, 6, [](const auto&, const Passing&) { return true; });
    CHECK((any.shape.m > 0) == configuration.passes_sums());
  }
}

TEST_CASE("a tape alone, whose sums come through the ring, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  int round = 0;
  for (const Configuration& configuration : kConfigurations) {
    if (!configuration.passes_sums()) continue;
    // From 1 slot for a tile to more than there are stages.
    const int stages = variant_of(configuration).stages;
    for (const int slots : {1, 2, 3, stages + 1}) {
      const Case chosen =
          shortest(configuration, slots + 1, slots + 1, [&](const gemm::Decomposition& all, Passing found) {
            return all.stream_k_tiles == all.tiles && found.most_slots == slots;
          });
      REQUIRE(chosen.shape.m > 0);
      const Passing found = passing(configuration, chosen.plan);
      CHECK(found.fetched > 0);
      CHECK(found.added == 0);
      verify_case(configuration, chosen, {kSchedules[round % 4], kSchedules[(round + 2) % 4]});
      ++round;
    }
  }
  harness::control_emulator({});
}

TEST_CASE("a tape of several tiles, whose pieces both leave and fetch, twice", "[emulator]") {
  if (skip_without_emulator()) return;
  int round = 0;
  for (const Configuration& configuration : kConfigurations) {
    if (!configuration.passes_sums()) continue;
    // A worker has the beginning of one tile and the end of another one.
    const Case chosen = shortest(configuration, 3, 6, [](const gemm::Decomposition& all, Passing found) {
      return all.stream_k_tiles == all.tiles && all.tiles > 1 && all.tiles < all.workers &&
             all.workers % all.tiles != 0 && found.fetched > 1;
    });
    CHECK(passing(configuration, chosen.plan).added == 0);
    verify_case(configuration, chosen, {kSchedules[round % 4], kSchedules[(round + 2) % 4]});
    ++round;
  }
  harness::control_emulator({});
}

TEST_CASE("a tape and whole tiles behind it, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  int round = 0;
  for (const Configuration& configuration : kConfigurations) {
    if (!configuration.passes_sums()) continue;
    for (const int slots : {1, 2}) {
      const Case chosen = shortest(configuration, 2, 5, [&](const gemm::Decomposition& all, Passing found) {
        return all.stream_k_tiles < all.tiles && found.most_slots == slots;
      });
      REQUIRE(chosen.shape.m > 0);
      const Passing found = passing(configuration, chosen.plan);
      // One team finds them in the ring, in front of the next tile's k-tiles; of two teams the one adds them
      // while the other one multiplies.
      CHECK((found.fetched > 0) == (configuration.teams == 1));
      CHECK(found.before_others == (configuration.teams == 1));
      CHECK((found.added > 0) == (configuration.teams == 2));
      verify_case(configuration, chosen, {kSchedules[round % 2], kSchedules[2 + round % 2]});
      ++round;
    }
  }
  harness::control_emulator({});
}

TEST_CASE("sums fetched and added under every schedule, in five launches of one plan", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"64x64x128", "128x128_ping_pong"}) {
    const auto is_it = [&](const Configuration& one) { return one.name == std::string(name); };
    const Configuration& configuration = *std::find_if(kConfigurations.begin(), kConfigurations.end(), is_it);
    for (const bool whole_tiles : {false, true}) {
      const Case chosen = shortest(configuration, 2, 4, [&](const gemm::Decomposition& all, Passing found) {
        return (all.stream_k_tiles < all.tiles) == whole_tiles && found.most_slots > 1;
      });
      for (const Schedule& schedule : kSchedules) {
        under(schedule, chosen.sms);
        INFO(name << ", " << chosen.sms << " SMs");
        verify_launches(variant_of(configuration), chosen.shape, 5);
      }
    }
  }
  harness::control_emulator({});
}

TEST_CASE("one tile, fewer than SMs, one more than a wave, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (int sms = 1; sms <= 6; ++sms) {
    for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
      const gemm::Variant& variant = variant_of(kConfigurations[i]);
      const int which = (sms + static_cast<int>(i)) % 3;
      under({static_cast<std::uint64_t>(sms), Completion::kRandom}, sms);
      INFO(sms << " SMs");
      if (which == 0) verify_twice(variant, shape_of(variant, 1, sms));
      if (which == 1) verify_twice(variant, shape_of(variant, std::max(1, sms - 1), 2));
      if (which == 2) verify_twice(variant, shape_of(variant, sms + 1, 1 + sms % 2));
    }
  }
  harness::control_emulator({});
}

TEST_CASE("CTAs with different numbers of meetings, under every schedule, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const Configuration& configuration : kConfigurations) {
    if (configuration.period == 0) continue;
    const gemm::Variant& variant = variant_of(configuration);
    // One CTA does two tiles, the other one: 34 and 17 k-tiles.
    const gemm::Shape shape = shape_of(variant, 3, configuration.period + 1);
    for (const Schedule& schedule : kSchedules) {
      under(schedule, 2);
      REQUIRE(variant.workspace_bytes(shape) == 2 * sizeof(std::uint32_t));
      verify_twice(variant, shape);
    }
    // A CTA that has nothing to do, and one that is alone.
    under(kSchedules[0], 2);
    verify_twice(variant, shape_of(variant, 1, 2 * configuration.period + 1));
    under(kSchedules[0], 1);
    verify_twice(variant, shape_of(variant, 1, configuration.period + 2));
  }
  harness::control_emulator({});
}

TEST_CASE("pairs of tiles on pairs of SMs, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = harness::find_variant(peak(), "128x256_2x1");
  const int stages = variant.stages;
  int round = 0;
  for (const int sms : {2, 3, 4}) {
    const int clusters = sms / 2;
    // One tile; an odd number of rows of tiles, of which the last pair has one outside D; several rounds.
    for (const int tiles : {1, 2, 3, 2 * clusters + 1, 6 * clusters}) {
      for (const int k_tiles : {1, stages - 1, stages, stages + 1, 2 * stages + 1}) {
        if (round++ % 3 != 0) continue;  // each number of k-tiles meets each number of tiles, on some SMs
        under(kSchedules[round % 4], sms);
        gemm::Shape shape = shape_of(variant, tiles, k_tiles);
        shape.n = variant.tile.n - 8;  // of both shares of B
        INFO(sms << " SMs, " << tiles << " tiles, " << k_tiles << " k-tiles");
        const gemm::ptx::LaunchShape launch = variant.launch_shape(shape);
        REQUIRE(launch.cluster.x == 2);
        REQUIRE(static_cast<int>(launch.grid.x) == 2 * clusters);  // one of three SMs has nothing to do
        REQUIRE(variant.workspace_bytes(shape) == 0);
        const int pairs = (tiles + 1) / 2;
        REQUIRE(variant.busiest_tiles(shape) == Approx((pairs + clusters - 1) / clusters));
        verify_twice(variant, shape);
      }
    }
  }
  // Rows that do start on sectors: chosen for others, but right for all. Two columns of tiles.
  for (const Schedule& schedule : kSchedules) {
    under(schedule, 2);
    verify_twice(variant, {2 * variant.tile.m + 3, variant.tile.n + 8, (stages + 1) * variant.tile.k});
  }
  harness::control_emulator({});
}

TEST_CASE("few rows, of which the rest is zero", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"64x128", "64x64x128"}) {
    const gemm::Variant& variant = harness::find_variant(peak(), name);
    for (const int rows : {1, 7, 8, 16, 63, 64}) {
      for (const Schedule& schedule : kSchedules) {
        under(schedule, 2);
        // More k-tiles than stages: the cleared rows stay clear. Five tiles on two SMs.
        verify_twice(variant, {rows, 4 * variant.tile.n + 24, variant.tile.k * 4 + 8});
      }
    }
    under(kSchedules[0], 1);
    verify_twice(variant, {5, 40, variant.tile.k * (variant.stages + 2) - 8});
  }
  harness::control_emulator({});
}

TEST_CASE("few rows, and sums that come through the ring before the next k-tiles", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const Configuration& configuration : kConfigurations) {
    if (configuration.tile.m > 64) continue;
    // A tile of K that three workers share, then three whole tiles: side by side, of five rows. Where rows do
    // not start on sectors the model has no such plan for tiles with so few.
    constexpr int kSms = 3;
    constexpr int kTiles = kSms + 1;
    gemm::Shape shape;
    gemm::Decomposition plan;
    for (int k_tiles = 1; k_tiles < 200 && (plan.stream_k_tiles == 0 || plan.stream_k_tiles == kTiles);
         ++k_tiles) {
      shape = {5, kTiles * configuration.tile.n - 8, k_of(configuration, k_tiles, true)};
      plan = gemm::step_22::predict(configuration, shape, kSms).decomposition;
    }
    REQUIRE(passing(configuration, plan).before_others);
    for (const Schedule& schedule : kSchedules) {
      under(schedule, kSms);
      INFO(configuration.name);
      verify_twice(variant_of(configuration), shape);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("posts and store buffers are used again, under every schedule", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const Configuration& configuration : kConfigurations) {
    const gemm::Variant& variant = variant_of(configuration);
    for (const Schedule& schedule : kSchedules) {
      // Three times as many tiles as posts, or pairs of them, whole in M so that no store is clipped away.
      under(schedule, 1);
      const int rows = 12 * configuration.cluster - 1;
      verify_twice(variant, {rows * variant.tile.m + 3, variant.tile.n <= 64 ? 72 : 40, variant.tile.k});
    }
  }
  harness::control_emulator({});
}

TEST_CASE("auto runs what the model chooses", "[emulator]") {
  if (skip_without_emulator()) return;
  harness::control_emulator({.sm_count = 3});
  const gemm::Variant& automatic = peak().variants.front();
  REQUIRE(automatic.name == "auto");
  REQUIRE(automatic.choose != nullptr);
  std::vector<std::string> met;
  for (const gemm::Shape& shape :
       {gemm::Shape{5, 136, 264}, {700, 1000, 72}, {300, 520, 1000}, {160, 136, 392}}) {
    const gemm::Choice choice = automatic.choose(shape);
    const auto number = static_cast<std::size_t>(gemm::step_22::choose(shape, 3));
    CHECK(choice.variant == kConfigurations[number].name);
    CHECK(choice.why == gemm::step_22::explain(shape, 3));
    const gemm::Variant& chosen = harness::find_variant(peak(), choice.variant);
    CHECK(automatic.launch_shape(shape).block.x == chosen.launch_shape(shape).block.x);
    CHECK(automatic.launch_shape(shape).grid.x == chosen.launch_shape(shape).grid.x);
    CHECK(automatic.launch_shape(shape).cluster.x == chosen.launch_shape(shape).cluster.x);
    CHECK(automatic.launch_shape(shape).shared_bytes == chosen.launch_shape(shape).shared_bytes);
    CHECK(automatic.workspace_bytes(shape) == chosen.workspace_bytes(shape));
    CHECK(automatic.busiest_tiles(shape) == chosen.busiest_tiles(shape));
    verify_twice(automatic, shape);
    met.push_back(choice.variant);
  }
  std::sort(met.begin(), met.end());
  CHECK(std::count(met.begin(), met.end(), "128x256_2x1") == 1);
  CHECK(std::unique(met.begin(), met.end()) - met.begin() > 2);  // otherwise this shows little
  harness::control_emulator({});
}

TEST_CASE("the configurations of the model are the variants, in this order", "[host]") {
  REQUIRE(peak().variants.size() == kConfigurations.size() + 1);
  for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
    const gemm::Variant& variant = peak().variants[i + 1];
    CHECK(variant.name == kConfigurations[i].name);
    CHECK(variant.choose == nullptr);
    CHECK(static_cast<int>(variant.launch_shape({}).cluster.count()) == kConfigurations[i].cluster);
  }
}
