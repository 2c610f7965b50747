// What step 22 chooses for a shape, and whether what it says about it is so.
#include "22_peak/chosen_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catch.h"
#include "decomposition_checks.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/record/suite.h"

namespace gemm::step_22 {
namespace {

struct Case {
  Shape shape;
  Card card;
};

Card with_sms(int sms) {
  Card card = kH200;
  card.sms = sms;
  card.clusters = {};  // of any SMs
  return card;
}

/// Shapes from tiny to `most_m` x `most_n` x `most_k`, and numbers of SMs from one to more than there are.
std::vector<Case> random_cases(int count, const Shape& most) {
  std::mt19937 random(19);
  const auto size = [&](int least, int largest) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    return static_cast<int>(least * std::pow(static_cast<double>(largest) / least, share));
  };
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    const Shape shape{size(1, most.m), size(1, most.n / 8) * 8, size(1, most.k / 8) * 8};
    cases.push_back({shape, with_sms(i % 3 == 0 ? kH200.sms : size(1, 200))});
  }
  return cases;
}

std::vector<Case> cases_to_predict() {
  std::vector<Case> cases = random_cases(60, {16000, 16000, 16000});
  cases.push_back({{9055, 624, 11192}, kH200});  // where stream-K tiles beside whole ones come close
  cases.push_back({{3327, 2384, 3016}, kH200});  // clusters of two, which are rare, too
  for (const Shape& shape : harness::suite_burst_shapes()) cases.push_back({shape, kH200});
  return cases;
}

/// With what arithmetic alone predicts; the correction has a test of its own.
template <typename Check>
void for_every_plan(const std::vector<Case>& cases, const Check& check) {
  for (const auto& [shape, card] : cases) {
    for (std::size_t number = 0; number < kTiles.size(); ++number) {
      for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
        INFO(kTiles[number].name << ", " << harness::to_string(shape) << ", " << card.sms << " SMs, cluster "
                                 << plan.cluster.m << "x" << plan.cluster.n << (plan.transposed ? "t" : ""));
        check(number, shape, card, predict_by_arithmetic(number, shape, plan, card));
      }
    }
  }
}

}  // namespace

TEST_CASE("choice: every tile has a name of its own, which says what it is") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    const FittedTile& tile = kTiles[i];
    INFO(tile.name);
    names.insert(tile.name);
    CHECK(number_of(tile.name) == i);
    CHECK(tile.name == std::to_string(tile.m) + "x" + std::to_string(tile.n) +
                           (tile.k == kTileK ? "" : "x" + std::to_string(tile.k)) +
                           (tile.split         ? "_split"
                            : tile.groups == 2 ? "_ping_pong"
                                               : ""));
    if (tile.split) {
      CHECK(tile.groups == 1);
      CHECK((tile.warpgroups == 1 || tile.warpgroups == 2));
      CHECK(tile.k % kTileK == 0);
    } else {
      CHECK((tile.groups == 1 || tile.groups == 2));
      CHECK(tile.groups * tile.warpgroups == (tile.m == 192 ? 3 : 2));
      CHECK(tile.k == kTileK);
    }
    CHECK(tile.m % (64 * tile.warpgroups) == 0);
    CHECK(tile.n % 8 == 0);
  }
  CHECK(names.size() == kTiles.size());
  CHECK(names.count("auto") == 0);
  int kernels = 0;
  for (const FittedTile& tile : kTiles) {
    CHECK(tile.has(BuiltFor::kWholeTiles));  // so that there is a plan for every shape
    kernels += 2 * std::popcount(tile.kinds);
  }
  CHECK(kernels == 228);  // as the chapter says
  CHECK_THROWS_WITH(number_of("128x255"), "no tile has this name");
}

TEST_CASE("choice: every plan covers the shape, and no worker leaves partials of more than two tiles") {
  int with_stream_k = 0;
  int with_both = 0;
  int some_workers = 0;
  int split = 0;
  int shared = 0;
  for_every_plan(random_cases(24, {900, 900, 2000}), [&](std::size_t number, const Shape& shape,
                                                         const Card& card, const Prediction& predicted) {
    const FittedTile& tile = kTiles[number];
    const FittedPlan& plan = predicted.plan;
    const Decomposition& all = predicted.decomposition;
    const int rows = plan.transposed ? shape.n : shape.m;
    const int columns = plan.transposed ? shape.m : shape.n;
    REQUIRE(tile.has(plan.needs()));  // a kernel that is built
    if (tile.split) {
      ++split;
      const int tiles = ceil_div(ceil_div(rows, tile.m), plan.cluster.m) *
                        ceil_div(ceil_div(columns, tile.n), plan.cluster.n);
      const int k_tiles = ceil_div(shape.k, tile.k);
      const int ctas =
          plan.parts * plan.cluster.ctas();  // the cluster is made of the parts, and of what shares
      if (plan.cluster.ctas() > 1) ++shared;
      REQUIRE(plan.parts >= 1);
      REQUIRE(plan.parts <= k_tiles);  // no CTA has nothing to multiply
      REQUIRE(ctas <= 8);
      REQUIRE(plan.parts <= most_parts(tile.m, tile.n, tile.k, tile.warpgroups));
      REQUIRE(shares_columns(plan.cluster, tile.n));
      REQUIRE(tile.m % (8 * plan.cluster.n) == 0);
      REQUIRE((plan.cluster.m - 1) * tile.m < rows);
      REQUIRE((plan.cluster.n - 1) * tile.n < columns);
      REQUIRE(plan.stream_k_tiles == 0);
      REQUIRE(plan.lockstep == 0);
      REQUIRE(plan.workers == 0);
      REQUIRE(tiles * ctas <= card.sms);  // all at once
      REQUIRE(all.tiles == tiles * plan.parts);
      REQUIRE(all.workers == all.tiles);
      REQUIRE(all.k_tiles == ceil_div(k_tiles, plan.parts));
      REQUIRE(all.stream_k_tiles == 0);
      return;
    }
    REQUIRE(plan.parts == 1);
    const int most = std::max(1, card.sms / plan.cluster.ctas());
    REQUIRE(all.workers >= 1);
    REQUIRE(all.workers <= most);
    REQUIRE(all.workers == (plan.workers == 0 ? most : plan.workers));
    REQUIRE(all.tiles == ceil_div(ceil_div(rows, tile.m), plan.cluster.m) *
                             ceil_div(ceil_div(columns, tile.n), plan.cluster.n));
    REQUIRE(all.k_tiles == ceil_div(shape.k, kTileK));
    REQUIRE(all.splits == 1);
    REQUIRE(all.stream_k_tiles <= all.tiles);
    // No cluster has a CTA whose tiles all lie outside D, and its shares start where the swizzle does.
    REQUIRE(plan.cluster.ctas() <= card.sms);
    REQUIRE(shares_columns(plan.cluster, tile.n));
    REQUIRE(tile.m % (8 * plan.cluster.n) == 0);
    REQUIRE((plan.cluster.m - 1) * tile.m < rows);
    REQUIRE((plan.cluster.n - 1) * tile.n < columns);
    if (plan.workers > 0) {
      ++some_workers;
      REQUIRE(all.workers % all.tiles == 0);  // a whole number of parts of each tile
    }
    if (all.stream_k_tiles > 0) {
      ++with_stream_k;
      REQUIRE(plan.lockstep == 0);
      if (all.stream_k_tiles < all.tiles) {
        ++with_both;
        REQUIRE((all.tiles - all.stream_k_tiles) % all.workers == 0);  // whole waves behind the ranges
      }
    }
    const std::string cover = mistake_in_cover(all);
    if (!cover.empty()) FAIL(to_string(all) << ": " << cover);
    // A range leaves partials of two tiles at most: there are two slots for it.
    for (const auto& list : all_work_tiles(all)) {
      const auto partial = [&](const WorkTile& work) { return work.count() < all.k_tiles; };
      REQUIRE(std::count_if(list.begin(), list.end(), partial) <= 2);
    }
  });
  CHECK(with_stream_k > 20);
  CHECK(with_both > 10);
  CHECK(some_workers > 10);
  CHECK(split > 100);
  CHECK(shared > 50);
}

TEST_CASE("choice: tiles whose K is cut have plans only where their clusters fit at once") {
  const std::size_t number = number_of("64x80_split");
  const auto most_parts = [&](const Shape& shape, const Card& card) {
    int most = 0;
    for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) most = std::max(most, plan.parts);
    return most;
  };
  CHECK(most_parts({64, 80, 4096}, kH200) == 8);
  CHECK(most_parts({64, 80, 192}, kH200) == 3);  // three k-tiles
  CHECK(most_parts({64, 80, 4096}, with_sms(5)) == 4);
  CHECK(most_parts({64, 80, 4096}, with_sms(1)) == 1);
  CHECK(most_parts({128, 160, 4096}, with_sms(3)) == 0);  // four tiles for three SMs, either way round
  CHECK(best_plan(number, {128, 160, 4096}, with_sms(3)).us == 0);
  // The clusters that the card holds count, not its SMs alone; an eighth of the SMs may be left over.
  Card few = kH200;
  few.clusters = {60, 30, 3};
  CHECK(most_parts({64, 80 * 4, 4096}, few) == 8);
  CHECK(most_parts({64, 80 * 16, 4096}, few) == 7);  // 112 of 132 SMs; 128 would be too many
}

TEST_CASE("choice: by arithmetic a time is never shorter than what limits it") {
  int in_lockstep = 0;
  for_every_plan(cases_to_predict(), [&](std::size_t number, const Shape& shape, const Card& card,
                                         const Prediction& predicted) {
    const FittedTile& tile = kTiles[number];
    const double launch_us = tile.split ? kModel.launch_split_us : kModel.launch_us;
    // Only a lockstep may be predicted to save some of it.
    const double least = (predicted.plan.lockstep > 0 ? kModel.lockstep : 1) * (1 - 1e-9);
    if (predicted.plan.lockstep > 0) ++in_lockstep;
    REQUIRE(predicted.us >= least * predicted.math_us);
    REQUIRE(predicted.us >= least * predicted.bytes_us);
    REQUIRE(predicted.us >= least * (predicted.dram_us + launch_us));
    REQUIRE(predicted.us >= least * (predicted.reduce_us + launch_us));
    const double elements = 1.0 * shape.m * shape.k + 1.0 * shape.n * shape.k + 1.0 * shape.m * shape.n;
    REQUIRE(predicted.dram_us == Approx(2 * elements / (card.dram_bytes_per_us * kModel.dram_share)));
    // No tile does more than 4096 FLOP in a clock of an SM.
    const double flop =
        2.0 * shape.m * shape.n * shape.k / predicted.decomposition.workers / predicted.plan.cluster.ctas();
    REQUIRE(predicted.math_us >= kModel.math * flop / 4096 / (card.clock_mhz * kModel.clock_share) * 0.999);
    REQUIRE((predicted.reduce_us > 0) ==
            (predicted.decomposition.stream_k_tiles > 0 || predicted.plan.parts > 1));
  });
  CHECK(in_lockstep > 10);
}

TEST_CASE("choice: the best plan of a tile, and the best tile") {
  std::set<std::size_t> chosen;
  std::set<int> clusters;
  std::set<std::string> kinds;
  for (const auto& [shape, card] : cases_to_predict()) {
    INFO(harness::to_string(shape) << ", " << card.sms << " SMs");
    const Plan best = choose(shape, card);
    double next = 0;
    for (std::size_t number = 0; number < kTiles.size(); ++number) {
      const Prediction of_tile = best_plan(number, shape, card);
      if (of_tile.us == 0) {  // no plan suits the shape
        REQUIRE(plans_of(kTiles[number], shape, card).empty());
        REQUIRE(kTiles[number].split);
        continue;
      }
      REQUIRE(of_tile.tile == number);
      REQUIRE(best.weighed_us() <= of_tile.weighed_us());
      if (number != best.tile && (next == 0 || of_tile.weighed_us() < next)) next = of_tile.weighed_us();
      // The best of the plans that are worth it by arithmetic, and one of them.
      const std::vector<FittedPlan> plans = plans_of(kTiles[number], shape, card);
      double least = predict_by_arithmetic(number, shape, plans.front(), card).weighed_us();
      for (const FittedPlan& plan : plans)
        least = std::min(least, predict_by_arithmetic(number, shape, plan, card).weighed_us());
      bool listed = false;
      for (const FittedPlan& plan : plans) {
        if (predict_by_arithmetic(number, shape, plan, card).weighed_us() > kWorthIt * least) continue;
        const Prediction prediction = predict(number, shape, plan, card);
        REQUIRE(of_tile.weighed_us() <= prediction.weighed_us());
        listed |= of_tile.us == prediction.us;
      }
      REQUIRE(listed);
    }
    REQUIRE(best.us == best_plan(best.tile, shape, card).us);
    REQUIRE(best.margin() >= 0);
    REQUIRE(best.margin() == Approx(next / best.weighed_us() - 1).margin(1e-9));
    chosen.insert(best.tile);
    clusters.insert(best.plan.cluster.ctas());
    const Decomposition& all = best.decomposition;
    kinds.insert(all.stream_k_tiles == 0 ? "whole" : all.stream_k_tiles < all.tiles ? "both" : "all cut");
    if (best.plan.transposed) kinds.insert("transposed");
    if (best.plan.lockstep > 0) kinds.insert("lockstep");
    if (best.plan.parts > 1) kinds.insert("split");
  }
  CHECK(chosen.size() >= 8);  // it does choose
  CHECK(clusters.size() >= 3);
  kinds.erase("both");  // stream-K tiles beside whole ones: doubts keep them back nearly everywhere
  CHECK(kinds == std::set<std::string>{"all cut", "lockstep", "split", "transposed", "whole"});
}

TEST_CASE("choice: the correction is a matter of a factor, whatever the shape and the card") {
  std::vector<Case> cases = cases_to_predict();
  for (const Case& one : random_cases(40, {32000, 32000, 64000})) {
    Card card = one.card;  // another kind of card
    card.clock_mhz *= 1.3;
    card.dram_bytes_per_us *= 0.4;
    cases.push_back({one.shape, card});
  }
  double least = 1;
  double most = 1;
  int predicted = 0;
  for_every_plan(cases,
                 [&](std::size_t number, const Shape& shape, const Card& card, const Prediction& arithmetic) {
                   const Prediction corrected = predict(number, shape, arithmetic.plan, card);
                   const double factor = corrected.us / arithmetic.us;
                   REQUIRE(std::isfinite(factor));
                   REQUIRE(factor == Approx(std::exp(correction(kTiles[number], arithmetic, shape, card))));
                   least = std::min(least, factor);
                   most = std::max(most, factor);
                   ++predicted;
                   // It corrects the time, and nothing else that is said of the plan.
                   REQUIRE(corrected.math_us == arithmetic.math_us);
                   REQUIRE(corrected.bytes_us == arithmetic.bytes_us);
                   REQUIRE(corrected.dram_us == arithmetic.dram_us);
                   REQUIRE(corrected.reduce_us == arithmetic.reduce_us);
                 });
  INFO(predicted << " plans: " << least << " to " << most);
  CHECK(predicted > 10000);
  CHECK(least > 0.4);
  CHECK(least < 0.97);  // it does correct, both ways
  CHECK(most > 1.03);
  CHECK(most < 3);
}

TEST_CASE("choice: by arithmetic a card that is faster in every way is not slower") {
  const auto least = [](const Shape& shape, const Card& card) {
    double us = 0;
    for (std::size_t number = 0; number < kTiles.size(); ++number) {
      for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
        const double time = predict_by_arithmetic(number, shape, plan, card).us;
        if (us == 0 || time < us) us = time;
      }
    }
    return us;
  };
  for (const Case& one : cases_to_predict()) {
    const Card& card = one.card;
    Card faster = card;
    faster.clock_mhz *= 1.25;
    faster.dram_bytes_per_us *= 1.25;
    INFO(harness::to_string(one.shape) << ", " << card.sms << " SMs");
    const double us = least(one.shape, card);
    CHECK(least(one.shape, faster) < us);
    Card larger = card;
    larger.sms *= 2;
    larger.clusters = {};
    CHECK(least(one.shape, larger) <= us * 1.0001);
  }
  const Shape large{8192, 8192, 8192};
  CHECK(choose(large, with_sms(66)).us > 1.8 * choose(large, with_sms(132)).us);
  Card slow = kH200;
  slow.dram_bytes_per_us /= 2;
  const Shape few_rows{16, 8192, 8192};
  CHECK(choose(few_rows, slow).us > 1.5 * choose(few_rows, kH200).us);
}

TEST_CASE("choice: where the L2 is slower, bytes take longer and larger tiles are chosen") {
  Card slow = kH200;
  slow.l2_rate = 0.5;
  const Shape shape{2048, 2048, 2048};
  const std::size_t number = number_of("64x128_ping_pong");
  const FittedPlan plan;
  CHECK(predict_by_arithmetic(number, shape, plan, slow).bytes_us ==
        Approx(2 * predict_by_arithmetic(number, shape, plan, kH200).bytes_us));
  const auto area = [&shape](const Card& card) {
    const FittedTile& tile = kTiles[choose(shape, card).tile];
    return tile.m * tile.n;
  };
  CHECK(area(slow) > area(kH200));
}

/// Of NVIDIA's datasheets: SMs, boost clock, bandwidth of the memory.
std::vector<Card> documented_cards() {
  const auto card = [](const char* name, int sms, double clock_mhz, double dram_bytes_per_us) {
    return Card{.sms = sms,
                .clock_mhz = clock_mhz,
                .dram_bytes_per_us = dram_bytes_per_us,
                .l2_rate = l2_rate_of(name)};
  };
  return {kH200,
          kH100,
          card("NVIDIA H100 PCIe", 114, 1755, 2.04e6),
          card("NVIDIA H100 NVL", 132, 1785, 3.94e6),
          card("NVIDIA H800", 132, 1980, 3.35e6),
          card("NVIDIA H20", 78, 1980, 4e6)};
}

TEST_CASE("choice: on every documented card it takes longer than the bytes and the multiplications alone") {
  CHECK(l2_rate_of("NVIDIA H100 80GB HBM3") == kH100.l2_rate);
  CHECK(l2_rate_of("NVIDIA H200") == kH200.l2_rate);
  CHECK(l2_rate_of("a card that nobody has seen") == kH200.l2_rate);
  for (const Card& card : documented_cards()) {
    for (const Shape& shape : harness::suite_burst_shapes()) {
      INFO(harness::to_string(shape) << ", " << card.sms << " SMs at " << card.clock_mhz << " MHz");
      const Plan best = choose(shape, card);
      const double mk = static_cast<double>(shape.m) * shape.k;
      const double nk = static_cast<double>(shape.n) * shape.k;
      const double bytes = 2 * (mk + nk + static_cast<double>(shape.m) * shape.n);
      CHECK(best.us > bytes / card.dram_bytes_per_us);
      CHECK(best.us > 2 * mk * shape.n / (4096.0 * card.sms * card.clock_mhz));
      CHECK(best.us > 0.95 * choose(shape, kH200).us);  // the H200 has the most of everything
      CHECK(best.plan.workers <= card.resident_clusters(best.plan.cluster.ctas()));
      CHECK(best.margin() >= 0);
    }
  }
}

TEST_CASE("choice: the explanation names the numbers of the chosen one") {
  const auto us = [](double time) { return std::to_string(std::lround(time)) + " us"; };
  for (const auto& [shape, card] : cases_to_predict()) {
    const Plan best = choose(shape, card);
    const Decomposition& all = best.decomposition;
    const std::string why = explain(best);
    INFO(harness::to_string(shape) << ", " << card.sms << " SMs: " << why);
    const auto says = [&](const std::string& part) { return why.find(part) != std::string::npos; };
    const bool clusters = best.plan.cluster.ctas() > 1;
    REQUIRE(why.rfind(std::to_string(all.tiles) + (clusters ? " clusters of tiles on " : " tiles on ") +
                          std::to_string(all.workers) + (clusters ? " clusters of SMs: " : " SMs: "),
                      0) == 0);
    REQUIRE(says(" cut along K") == (all.stream_k_tiles > 0));
    if (all.stream_k_tiles > 0) REQUIRE(says(std::to_string(all.stream_k_tiles) + " cut along K"));
    REQUIRE(says(" whole in ") == (all.stream_k_tiles < all.tiles));
    if (all.stream_k_tiles < all.tiles) {
      const int rounds = ceil_div(all.tiles - all.stream_k_tiles, all.workers);
      REQUIRE(says(std::to_string(all.tiles - all.stream_k_tiles) + " whole in " +
                   harness::counted(static_cast<std::size_t>(rounds), "round")));
    }
    REQUIRE(says("rows of B are rows of the tiles") == best.plan.transposed);
    REQUIRE(says("clusters of " + std::to_string(best.plan.cluster.m) + "x" +
                 std::to_string(best.plan.cluster.n)) == clusters);
    REQUIRE(says("in lockstep") == (best.plan.lockstep > 0));
    REQUIRE(says("Predicted " + us(best.us) + " (tensor cores " + us(best.math_us) + ", bytes " +
                 us(best.bytes_us) + ", DRAM " + us(best.dram_us)));
    REQUIRE(says("partials " + us(best.reduce_us)) == (all.stream_k_tiles > 0 || best.plan.parts > 1));
    REQUIRE(says("the next best tile is " + std::to_string(std::lround(100 * best.margin())) +
                 " % behind, doubts included"));
  }
}

TEST_CASE("choice: with few rows B is what the tiles wait for") {
  for (const int m : {8, 16, 64}) {
    const Shape shape{m, 8192, 8192};
    const Plan best = choose(shape, kH200);
    INFO(m << ": " << kTiles[best.tile].name << ": " << explain(best));
    CHECK(best.dram_us > best.math_us);
  }
}

TEST_CASE("choice: a wave of tiles in raster order is about square") {
  for (const FittedTile& tile : kTiles) {
    for (const ClusterShape cluster :
         {ClusterShape{1, 1}, ClusterShape{2, 1}, ClusterShape{1, 2}, ClusterShape{4, 2}}) {
      for (const int sms : {1, 8, 78, 132, 200}) {
        INFO(tile.name << ", cluster " << cluster.m << "x" << cluster.n << ", " << sms << " SMs");
        const int group = square_group(tile, cluster, sms);
        const double height = tile.m * cluster.m;
        const double wave = std::sqrt(static_cast<double>(sms) * tile.m * tile.n);
        CHECK(group >= 1);
        CHECK((group + 1) * height >= wave);
        CHECK((group == 1 || (group - 1) * height < wave));
        // Raster groups are about as high, and the last one as the others.
        for (const int rows : {1, 5, 14, 32, 128, 1000}) {
          const int in_group = raster_group(tile, cluster, rows, sms);
          const int groups = ceil_div(rows, in_group);
          INFO(rows << " rows in groups of " << in_group);
          CHECK(in_group >= 1);
          CHECK(in_group <= rows);
          CHECK(2 * in_group <= 3 * group + 2);
          CHECK((2 * in_group >= group || groups == 1));
          CHECK(rows - (groups - 1) * in_group > in_group - groups);
        }
      }
    }
  }
}

TEST_CASE("choice: rows that do not start on a line or a sector of the L2") {
  for (const int k : {64, 128, 4096, 7040}) CHECK(rows_start({5, 8, k}) == 0);
  for (const int k : {16, 32, 48, 4112}) CHECK(rows_start({5, 8, k}) == 1);
  for (const int k : {8, 24, 72, 4104, 7000}) CHECK(rows_start({5, 8, k}) == 2);
  // The same tiles and k-tiles take longer; in a cluster, where a CTA asks for fewer bytes, by less.
  const std::size_t number = number_of("128x256");
  const auto longer = [&](const ClusterShape& cluster) {
    const FittedPlan plan{.cluster = cluster};
    return predict_by_arithmetic(number, {4096, 4096, 4104}, plan, kH200).us /
           predict_by_arithmetic(number, {4096, 4096, 4160}, plan, kH200).us;
  };
  CHECK(longer({1, 1}) > 1.2);
  CHECK(longer({2, 1}) < longer({1, 1}));
  CHECK(longer({2, 2}) <= longer({2, 1}));
  CHECK(choose({4096, 4096, 4104}, kH200).plan.cluster.ctas() > 1);
}

namespace {

/// What the chapter works through by hand: three tiles, whole, in no cluster, at one shape.
std::string worked_example() {
  const Shape shape{3072, 3072, 4096};
  const FittedPlan plan;
  const std::array names{"128x256", "128x192_ping_pong", "192x192"};
  const auto row = [&](const std::string& what, const auto& value) {
    std::string line = "| " + what + " |";
    for (const char* name : names) {
      const std::size_t number = number_of(name);
      const Setting of{kTiles[number], shape, plan, kH200};
      line += " " + value(of, clocks_of_k_tile(of), predict_by_arithmetic(number, shape, plan, kH200)) + " |";
    }
    return line + "\n";
  };
  const auto whole = [](double value) { return fmt::format("{:.0f}", value); };
  const auto tenths = [](double value) { return fmt::format("{:.1f}", value); };
  using Clocks = KTileClocks;
  std::string text = "| |";
  for (const char* name : names) text += fmt::format(" `{}` |", name);
  text += "\n|---|---:|---:|---:|\n";
  text += row("tiles of D", [&](const Setting& of, const Clocks&, const Prediction&) {
    return fmt::format("{} · {} = {}", ceil_div(shape.m, of.tile.m), ceil_div(shape.n, of.tile.n),
                       of.all.tiles);
  });
  text += row("rounds of 132 SMs", [&](const Setting& of, const Clocks&, const Prediction&) {
    return whole(busiest_worker(of).rounds);
  });
  text += row("a k-tile, clocks: tensor cores",
              [&](const Setting&, const Clocks& k_tile, const Prediction&) { return whole(k_tile.math); });
  text += row("its producer", [&](const Setting&, const Clocks& k_tile, const Prediction&) {
    return whole(k_tile.producer);
  });
  text += row("the arrival of its bytes",
              [&](const Setting&, const Clocks& k_tile, const Prediction&) { return whole(k_tile.arrival); });
  text += row("all rounds, µs", [&](const Setting& of, const Clocks& k_tile, const Prediction&) {
    return tenths(clocks_of_rounds(of, busiest_worker(of).rounds, k_tile.all) / of.clocks_per_us);
  });
  text += row("all loads, µs", [&](const Setting& of, const Clocks& k_tile, const Prediction& prediction) {
    return tenths(loads_us(of, busiest_worker(of), k_tile.arrival, prediction.dram_us));
  });
  text += row("the launch, µs",
              [&](const Setting& of, const Clocks&, const Prediction&) { return tenths(fixed_us(of)); });
  text += row("**predicted, µs**", [&](const Setting&, const Clocks&, const Prediction& prediction) {
    return "**" + tenths(prediction.us) + "**";
  });
  return text;
}

}  // namespace

TEST_CASE("choice: the chapter's worked example has the numbers of the model") {
  std::ifstream file(GEMM_SOURCE_DIR "/steps/22_peak/README.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = "<!-- worked example -->\n\n";
  const std::size_t first = page.find(begin);
  REQUIRE(first != std::string::npos);
  const std::size_t last = page.find("\n<!-- /worked example -->", first);
  REQUIRE(last != std::string::npos);
  CHECK(page.substr(first + begin.size(), last - first - begin.size()) == worked_example());
}

TEST_CASE("choice: by arithmetic the correction has no say") {
  int different = 0;
  for (const auto& [shape, card] : cases_to_predict()) {
    INFO(harness::to_string(shape) << ", " << card.sms << " SMs");
    const Plan alone = choose(shape, card, Choosing::kByArithmetic);
    Prediction first;
    for (std::size_t number = 0; number < kTiles.size(); ++number) {
      for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
        const Prediction prediction = predict_by_arithmetic(number, shape, plan, card);
        if (better(prediction, first)) first = prediction;
      }
    }
    CHECK(alone.us == first.us);
    CHECK(alone.tile == first.tile);
    different += choose(shape, card, Choosing::kCorrected).tile != alone.tile;
  }
  CHECK(different > 5);
}

TEST_CASE("choice: a plan is chosen once for a shape, a card and a tile") {
  const PlanKey key{{3000, 1000, 2000}, kH200};
  const Plan plan = plan_for(key);
  CHECK(plan.us == choose(key.shape, key.card).us);
  CHECK(plan.host_us > 0);
  CHECK(plan_for(key).host_us == plan.host_us);  // it was not chosen again
  Card other = kH200;
  other.device = 1;
  other.clusters = {60, 28, 12};
  CHECK(plan_for({key.shape, other}).host_us != plan.host_us);
  PlanKey of_tile = key;
  of_tile.tile = number_of("64x64_ping_pong");
  CHECK(plan_for(of_tile).tile == of_tile.tile);
  // A tile that no plan suits is launched all the same.
  const PlanKey none{{128, 160, 4096}, with_sms(3), number_of("64x80_split")};
  REQUIRE(best_plan(none.tile, none.shape, none.card).us == 0);
  CHECK(plan_for(none).tile == none.tile);
  CHECK(plan_for(none).decomposition.tiles == 4);
  PlanKey alone = key;
  alone.by = Choosing::kByArithmetic;
  CHECK(plan_for(alone).us == choose(key.shape, key.card, Choosing::kByArithmetic).us);
}

TEST_CASE("choice: the network was fitted to the features that the program computes") {
  REQUIRE(learned::kInputs.size() == kPlanFeatures.size());
  for (std::size_t i = 0; i < kPlanFeatures.size(); ++i)
    CHECK(learned::kInputs[i].feature == kPlanFeatures[i].name);
  std::set<std::string_view> names;
  for (const PlanFeature& feature : kPlanFeatures) names.insert(feature.name);
  CHECK(names.size() == kPlanFeatures.size());
}

}  // namespace gemm::step_22
