// What step 22 chooses for a shape, and whether what it says about it is so.
#include "22_peak/choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "decomposition_checks.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/record/suite.h"

namespace gemm::step_22 {
namespace {

constexpr int kH200 = 132;

struct Case {
  Shape shape;
  int sms;
};

/// Shapes from tiny to long, and numbers of SMs from one to more than there are.
std::vector<Case> random_cases() {
  std::mt19937 random(19);
  const auto size = [&](int least, int most) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    return static_cast<int>(least * std::pow(static_cast<double>(most) / least, share));
  };
  std::vector<Case> cases;
  for (int i = 0; i < 300; ++i)
    cases.push_back(
        {{size(1, 6000), size(1, 750) * 8, size(1, 1500) * 8}, i % 3 == 0 ? kH200 : size(1, 200)});
  for (const Shape& shape : harness::suite_burst_shapes()) {
    if (shape.m < 8192) cases.push_back({shape, kH200});  // the rest is covered one by one for minutes
  }
  return cases;
}

template <typename Check>
void for_every_plan(const Check& check) {
  for (const auto& [shape, sms] : random_cases()) {
    for (const Configuration& configuration : kConfigurations) {
      INFO(configuration.name << ", " << harness::to_string(shape) << ", " << sms << " SMs");
      check(configuration, shape, sms, predict(configuration, shape, sms));
    }
  }
}

const Configuration& configuration_of(const std::string& name) {
  return kConfigurations.at(static_cast<std::size_t>(number_of(name)));
}

const Configuration& chosen_for(const Shape& shape, int sms) {
  return kConfigurations.at(static_cast<std::size_t>(choose(shape, sms)));
}

}  // namespace

TEST_CASE("choice: every configuration has a name of its own") {
  std::set<std::string> names;
  for (const Configuration& configuration : kConfigurations) names.insert(configuration.name);
  CHECK(names.size() == kConfigurations.size());
  CHECK(names.count("auto") == 0);
}

TEST_CASE("choice: sums are not passed on by three warpgroups, nor where CTAs wait for each other") {
  std::set<std::string> without;
  for (const Configuration& configuration : kConfigurations) {
    if (!configuration.passes_sums()) without.insert(configuration.name);
    if (configuration.period > 0 || configuration.cluster > 1) CHECK_FALSE(configuration.passes_sums());
  }
  CHECK(without == std::set<std::string>{"128x256_in_step", "192x256_in_step", "128x192_ping_pong_in_step",
                                         "128x256_2x1"});
  std::set<std::string> with_tape;
  for_every_plan([&](const Configuration& configuration, const Shape&, int, const Prediction& best) {
    if (best.decomposition.stream_k_tiles > 0) with_tape.insert(configuration.name);
    if (!configuration.passes_sums()) REQUIRE(best.decomposition.slots() == 0);
  });
  CHECK(with_tape.size() == kConfigurations.size() - without.size());
}

TEST_CASE(
    "choice: sums that come through the ring are predicted to cost less than those that consumers add") {
  const auto passing = [](const Configuration& configuration, int tiles, int stream_k_tiles) {
    return predict(configuration, {4096, 4096, 6400}, Decomposition{tiles, 100, 10, stream_k_tiles, 1}, false)
        .passing_us;
  };
  const Configuration one{"one team", {128, 256, 64}, 1, 0};
  const Configuration two{"two teams", {128, 256, 64}, 2, 0};
  CHECK(passing(one, 3, 3) == Approx((kLeaveCycles + 4 * kFetchedCycles) / kClock));
  CHECK(passing(one, 13, 3) == passing(one, 3, 3));  // with one team whatever follows
  CHECK(passing(two, 3, 3) == passing(one, 3, 3));   // with two teams where nothing follows
  CHECK(passing(two, 13, 3) == Approx(kExposedPassing * (kLeaveCycles + 4 * kAddCycles) / kClock));
  CHECK(passing(one, 20, 20) == 0);  // whole waves: nobody shares a tile
}

TEST_CASE("choice: the plan of every configuration covers the shape, and nobody waits for ever") {
  int with_tape = 0;
  int with_both = 0;
  for_every_plan(
      [&](const Configuration& configuration, const Shape& shape, int sms, const Prediction& best) {
        const Decomposition& all = best.decomposition;
        REQUIRE(all.workers == configuration.workers(sms));
        // With clusters a tile of the plan is a pair; the last ones may be half outside D.
        const int rows = ceil_div(ceil_div(shape.m, configuration.tile.m), configuration.cluster);
        REQUIRE(all.tiles == rows * ceil_div(shape.n, configuration.tile.n));
        REQUIRE(all.tiles == configuration.tiles(shape));
        REQUIRE(all.k_tiles == ceil_div(shape.k, configuration.tile.k));
        REQUIRE(all.splits == 1);
        if (all.stream_k_tiles > 0) {
          ++with_tape;
          if (all.stream_k_tiles < all.tiles) ++with_both;
          REQUIRE((all.tiles - all.stream_k_tiles) % all.workers == 0);  // whole waves behind the tape
        }
        const std::string cover = mistake_in_cover(all);
        if (!cover.empty()) FAIL(to_string(all) << ": " << cover);
        for (const int first : {0, all.workers - 1}) {
          const std::string run = mistake_in_run(all, first);
          if (!run.empty()) FAIL(to_string(all) << ", worker " << first << " first: " << run);
        }
      });
  CHECK(with_tape > 20);
  CHECK(with_both > 10);
}

TEST_CASE("choice: as many meetings as the busiest worker has, and no more than one too many") {
  for_every_plan([](const Configuration&, const Shape&, int, const Prediction& best) {
    for (const int period : {2, 3, 16}) {
      const int most = (busiest(best.decomposition) + period - 1) / period;
      const int all = meetings(best.decomposition, period);
      if (all < most || all > most + 1)
        FAIL(to_string(best.decomposition)
             << ", period " << period << ": " << all << " meetings, not " << most);
    }
  });
}

TEST_CASE("choice: a time is never shorter than what limits it") {
  for_every_plan([](const Configuration& configuration, const Shape& shape, int, const Prediction& best) {
    REQUIRE(best.us > 0);
    // Meetings may be predicted to pay, by no more than kInStepGain; and so may, where power is the limit,
    // tiles that read fewer bytes than those of 128 x 256.
    const auto [m, n, k] = configuration.tile;
    const double bytes = (1.0 / m + 1.0 / n) / (1.0 / 128 + 1.0 / 256);
    const double least = (configuration.period > 0 ? kInStepGain : 1) *
                         (bytes < 1 && best.us > 0.9 * kEnergyUs ? 1 + kBytesAreEnergy * (bytes - 1) : 1);
    REQUIRE(best.us >= least * best.math_us);
    REQUIRE(best.us >= least * best.l2_us);
    REQUIRE(best.us >= least * best.dram_us);
    REQUIRE(best.dram_us ==
            Approx(2 * (1.0 * shape.m * shape.k + 1.0 * shape.n * shape.k + 1.0 * shape.m * shape.n) /
                   kDramBytesPerUs));
    const bool passes = best.decomposition.stream_k_tiles % best.decomposition.workers != 0;
    REQUIRE((best.passing_us > 0) == passes);
  });
}

TEST_CASE(
    "choice: a tape is taken only where it is predicted to gain, a workspace only where it is worth it") {
  for_every_plan([](const Configuration& configuration, const Shape& shape, int, const Prediction& best) {
    Decomposition whole = best.decomposition;
    whole.stream_k_tiles = 0;
    const Prediction plain = predict(configuration, shape, whole, false);
    if (best.decomposition.stream_k_tiles > 0) {
      REQUIRE(best.us < kWorthAWorkspace * plain.us);
      REQUIRE(plain.us <= kPowerLimitUs);
      return;
    }
    if (plain.us > kPowerLimitUs || !configuration.passes_sums()) return;
    const int rest = whole.tiles % whole.workers;
    for (const int stream_k_tiles : {rest, rest + whole.workers}) {
      if (stream_k_tiles == 0 || stream_k_tiles > whole.tiles) continue;
      Decomposition tape = whole;
      tape.stream_k_tiles = stream_k_tiles;
      REQUIRE(predict(configuration, shape, tape, false).us >= kWorthAWorkspace * plain.us);
    }
  });
}

TEST_CASE("choice: the smallest prediction") {
  std::set<int> chosen;
  for (const auto& [shape, sms] : random_cases()) {
    INFO(harness::to_string(shape) << ", " << sms << " SMs");
    const int best = choose(shape, sms);
    chosen.insert(best);
    const double time = predict(kConfigurations[static_cast<std::size_t>(best)], shape, sms).us;
    for (const Configuration& configuration : kConfigurations) {
      if (configuration.cluster <= sms) REQUIRE(time <= predict(configuration, shape, sms).us);
    }
  }
  CHECK(chosen.size() >= 5);  // it does choose
  CHECK(chosen.count(number_of("128x256_2x1")) == 1);
}

TEST_CASE("choice: the shapes of the suite, on an H200") {
  const std::vector<const char*> expected{"64x128",
                                          "128x128_ping_pong",
                                          "128x256",
                                          "128x192_ping_pong_in_step",
                                          "192x256_in_step",
                                          "128x192_ping_pong",
                                          "128x192_ping_pong_in_step",
                                          "128x128_ping_pong",
                                          "64x128",
                                          "64x64x128",
                                          "128x192_ping_pong",
                                          "128x192_ping_pong"};
  const std::vector<Shape>& shapes = harness::suite_burst_shapes();
  REQUIRE(shapes.size() == expected.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    INFO(harness::to_string(shapes[i]) << ": " << explain(shapes[i], kH200));
    CHECK(kConfigurations[static_cast<std::size_t>(choose(shapes[i], kH200))].name ==
          std::string(expected[i]));
  }
}

TEST_CASE("choice: the explanation names the numbers of the chosen one, and the others") {
  const auto us = [](double time) { return std::to_string(std::lround(time)) + " us"; };
  std::set<std::string> forms;
  for (const auto& [shape, sms] : random_cases()) {
    const auto chosen = static_cast<std::size_t>(choose(shape, sms));
    const Prediction best = predict(kConfigurations[chosen], shape, sms);
    const Decomposition& all = best.decomposition;
    const std::string why = explain(shape, sms);
    INFO(harness::to_string(shape) << ": " << why);
    const auto says = [&](const std::string& part) { return why.find(part) != std::string::npos; };
    const bool pairs = kConfigurations[chosen].cluster == 2;
    const std::string workers = std::to_string(pairs ? std::max(1, sms / 2) : sms);
    const std::string on =
        pairs ? " pairs of tiles on " + workers + " pairs of SMs: " : " tiles on " + workers + " SMs: ";
    REQUIRE(why.rfind(std::to_string(all.tiles) + on, 0) == 0);
    REQUIRE(says("as a tape of k-tiles") == (all.stream_k_tiles > 0));
    if (all.stream_k_tiles > 0) REQUIRE(says(std::to_string(all.stream_k_tiles) + " as a tape"));
    REQUIRE(says(" whole in ") == (all.stream_k_tiles < all.tiles));
    if (all.stream_k_tiles < all.tiles)
      REQUIRE(
          says(std::to_string(all.tiles - all.stream_k_tiles) + " whole in " +
               harness::counted(
                   static_cast<std::size_t>(ceil_div(all.tiles - all.stream_k_tiles, all.workers)), "round") +
               ". "));
    REQUIRE(says("Predicted " + us(best.us) + " (tensor cores " + us(best.math_us) + ", L2 " +
                 us(best.l2_us) + ", DRAM " + us(best.dram_us)));
    REQUIRE(says("passing sums") == (best.passing_us > 0));
    for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
      const std::string other = " " + std::string(kConfigurations[i].name) + " ";
      REQUIRE(says(other) == (i != chosen));
      if (i != chosen) REQUIRE(says(other + us(predict(kConfigurations[i], shape, sms).us)));
    }
    forms.insert(std::string(all.stream_k_tiles > 0 ? "tape" : "") +
                 (all.stream_k_tiles < all.tiles ? "whole" : "") + (pairs ? "pairs" : ""));
  }
  CHECK(forms.size() == 4);
}

TEST_CASE("choice: few rows go to the tiles with few rows, and B is what they wait for") {
  for (const int m : {1, 8, 16, 64}) {
    const Shape shape{m, 8192, 8192};
    const auto chosen = static_cast<std::size_t>(choose(shape, kH200));
    INFO(explain(shape, kH200));
    CHECK(kConfigurations[chosen].tile.m == 64);
    const Prediction best = predict(kConfigurations[chosen], shape, kH200);
    CHECK(best.dram_us > best.math_us);
  }
}

TEST_CASE("choice: bands of the raster keep their rows of A in the L2") {
  for (const char* name : {"128x256", "64x128"}) {
    const Configuration& configuration = configuration_of(name);
    CHECK(band_of(configuration, {8192, 8192, 64}) == 16);
    CHECK(band_of(configuration, {8192, 8192, 65536}) == 12);
  }
  // Rows of pairs of tiles: the rows of A are as many.
  CHECK(band_of(configuration_of("128x256_2x1"), {8192, 8192, 64}) == 8);
  CHECK(band_of(configuration_of("128x256_2x1"), {8192, 8192, 65536}) == 6);
}

TEST_CASE("choice: who work on tiles, or on pairs of tiles") {
  for (const Configuration& configuration : kConfigurations) {
    INFO(configuration.name);
    const bool pairs = configuration.cluster == 2;
    CHECK((pairs || configuration.cluster == 1));
    CHECK(pairs == (configuration.name == std::string("128x256_2x1")));
    CHECK(configuration.workers(1) == 1);  // a launch has one cluster at least
    CHECK(configuration.workers(2) == (pairs ? 1 : 2));
    CHECK(configuration.workers(3) == (pairs ? 1 : 3));  // one CTA of three is nobody's peer
    CHECK(configuration.workers(131) == (pairs ? 65 : 131));
    CHECK(configuration.workers(132) == (pairs ? 66 : 132));
    // From one row of tiles to four: where they are odd, the second tile of a pair lies outside D.
    const auto [m, n, k] = configuration.tile;
    for (int rows = 1; rows <= 4; ++rows) {
      CHECK(configuration.tiles({rows * m, 3 * n, k}) == 3 * (pairs ? (rows + 1) / 2 : rows));
      CHECK(configuration.tiles({rows * m - m + 1, 2 * n + 8, k}) == 3 * (pairs ? (rows + 1) / 2 : rows));
    }
  }
}

TEST_CASE("choice: rows that do not start on a sector of the L2") {
  for (const int k : {16, 32, 64, 128, 4096, 4112, 7040}) CHECK(starts_on_sectors({5, 8, k}));
  for (const int k : {8, 24, 72, 4104, 7000}) CHECK_FALSE(starts_on_sectors({5, 8, k}));
  // More to read, of the same time for the tensor cores; a CTA of a cluster reads 128 + 128 rows of a k-tile,
  // not 128 + 256.
  const Configuration& alone = configuration_of("128x256");
  const Configuration& pairs = configuration_of("128x256_2x1");
  const Decomposition all{100, 65, 10, 0, 1};
  const Prediction whole = predict(alone, {4096, 4096, 4160}, all, false);
  const Prediction ragged = predict(alone, {4096, 4096, 4104}, all, false);
  const Prediction shared = predict(pairs, {4096, 4096, 4104}, all, false);
  CHECK(ragged.l2_us == Approx(whole.l2_us * kL2BytesPerCycle / kRaggedBytesPerCycle));
  CHECK(shared.l2_us == Approx(ragged.l2_us * 256 / 384));
  CHECK(ragged.math_us == whole.math_us);
  CHECK(shared.math_us == whole.math_us);
  CHECK(ragged.us > 1.2 * whole.us);
  CHECK(shared.us < 0.8 * ragged.us);
}

TEST_CASE("choice: pairs of CTAs where rows do not start on sectors, and only there") {
  for (const Shape& shape : {Shape{4096, 4096, 4104}, {3000, 5000, 7000}, {8192, 8192, 8200}}) {
    INFO(harness::to_string(shape) << ": " << explain(shape, kH200));
    CHECK(chosen_for(shape, kH200).name == std::string("128x256_2x1"));
  }
  for (const Shape& shape :
       {Shape{4096, 4096, 4096}, {4096, 4096, 4112}, {3072, 5120, 7040}, {8192, 8192, 8192}}) {
    INFO(harness::to_string(shape) << ": " << explain(shape, kH200));
    CHECK(chosen_for(shape, kH200).cluster == 1);
  }
  int pairs_on_ragged = 0;
  int on_sectors = 0;
  for (const auto& [shape, sms] : random_cases()) {
    const bool pairs = chosen_for(shape, sms).cluster > 1;
    INFO(harness::to_string(shape) << ", " << sms << " SMs: " << explain(shape, sms));
    if (!starts_on_sectors(shape)) {
      pairs_on_ragged += pairs;
      if (sms < 2) REQUIRE_FALSE(pairs);  // nobody to share with
      continue;
    }
    ++on_sectors;
    REQUIRE_FALSE(pairs);
  }
  CHECK(pairs_on_ragged > 10);
  CHECK(on_sectors > 20);
}

TEST_CASE("choice: where rows start on sectors, pairs take longer than the same tiles alone") {
  // Tensor cores are the limit, and pairs take as many rounds or more. This is of the times before it is
  // asked whether power limits them: near kEnergyUs that may be so for one of the two only.
  const Configuration& alone = configuration_of("128x256");
  const Configuration& pairs = configuration_of("128x256_2x1");
  for (const auto& [any, sms] : random_cases()) {
    if (sms < 2) continue;
    const Shape shape{any.m, any.n, ceil_div(any.k, 64) * 64};
    INFO(harness::to_string(shape) << ", " << sms << " SMs");
    const auto time = [&, sms = sms](const Configuration& configuration) {
      const Decomposition whole{configuration.tiles(shape), shape.k / 64, configuration.workers(sms), 0, 1};
      return predict(configuration, shape, whole, false).us;
    };
    REQUIRE(kClusterCost * time(pairs) > time(alone));
  }
}

}  // namespace gemm::step_22
