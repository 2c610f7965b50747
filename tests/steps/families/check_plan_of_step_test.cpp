// What a bare --check runs: does it exercise every variant of the step?
#include "harness/verify/check_plan.h"

#include <algorithm>
#include <string>

#include "catch.h"
#include "harness/base/problem.h"
#include "steps/verify_shape.h"

namespace {

using harness::CheckCase;
using harness::CheckFacts;

std::string name_of(const gemm::Step& step, const gemm::Variant& variant, const CheckCase& one) {
  return step.name + " " + variant.name + " " + harness::to_string(one.shape) + ": " + one.why;
}

CheckFacts facts_of(const gemm::Variant& variant, const CheckCase& one) {
  harness::control_emulator({.sm_count = one.sms});
  return harness::check_facts(variant, one.shape);
}

/// Calls check(step, variant, cases) for every variant that does not stand for another one.
template <typename Check>
void for_each_variant(bool quick, const Check& check) {
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    if (variant.choose == nullptr) check(step, variant, harness::plan_check(step, variant, 7, quick));
  }
  harness::control_emulator({});
}

}  // namespace

TEST_CASE("its check plan: shapes are inside the contract, and cheap", "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    REQUIRE_FALSE(cases.empty());
    for (const CheckCase& one : cases) {
      INFO(name_of(step, variant, one));
      CHECK_NOTHROW(harness::check_contract(step, one.shape));
      const CheckFacts facts = facts_of(variant, one);
      // Two clusters, two tiles each; a K so long that a model splits tiles of clusters; more rows or columns
      // than 16 bits count.
      const bool long_one = facts.cluster >= 4 || (facts.cluster > 1 && facts.splits) ||
                            std::max(one.shape.m, one.shape.n) > (1 << 16);
      CHECK(facts.tiles() * facts.k_tiles <= (long_one ? 1200 : 640));
    }
  });
}

TEST_CASE("its check plan: rings wrap, edges are odd, there are more tiles than SMs", "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    const CheckCase& first = cases.front();
    const CheckFacts facts = facts_of(variant, first);
    INFO(name_of(step, variant, first));
    CHECK(facts.k_tiles > 2 * variant.stages);
    CHECK(facts.tiles_m % 2 == 1);
    CHECK(facts.tiles_n % 2 == 1);
    CHECK(facts.tiles() > first.sms);
    for (const auto& [extent, tile, multiple] :
         {std::tuple{first.shape.m, variant.tile.m, step.contract.m_multiple},
          std::tuple{first.shape.n, variant.tile.n, step.contract.n_multiple},
          std::tuple{first.shape.k, variant.tile.k, step.contract.k_multiple}}) {
      if (tile > multiple) CHECK(extent % tile != 0);
    }
    // A row in one tile leaves one column of tiles.
    if (facts.persistent) CHECK(facts.tiles() >= (gemm::needs_whole_rows(variant) ? 1 : 2) * facts.ctas);
    if (facts.cluster > 1) CHECK(facts.tiles() > facts.cluster);
  });
}

TEST_CASE("its check plan: a variant that splits tiles has split and whole ones, and several peers",
          "[emulator]") {
  int splitting = 0;
  for_each_variant(false, [&](const auto& step, const auto& variant, const auto& cases) {
    const auto splits = [&](const CheckCase& one) { return facts_of(variant, one).splits; };
    if (std::none_of(cases.begin(), cases.end(), splits)) return;
    ++splitting;
    INFO(step.name << " " << variant.name);
    // Eight CTAs of a cluster, a model, parts that make one wave: where they split, no worker has two tiles.
    const bool few = facts_of(variant, cases.front()).cluster > 4 || step.name == "22_peak" ||
                     variant.name.ends_with("_split");
    CHECK(std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
      const CheckFacts facts = facts_of(variant, one);
      return facts.splits && (few || facts.tiles() > facts.ctas);
    }));
  });
  if (step_under_test().name == "18_stream_k") CHECK(splitting == 4);
}

TEST_CASE("its check plan: where tiles are split, a CTA's range begins and ends inside a tile",
          "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    const auto has = [&](auto wanted) {
      return std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
        const CheckFacts facts = facts_of(variant, one);
        return facts.splits && one.launches == 2 && wanted(facts);
      });
    };
    if (!has([](const CheckFacts&) { return true; })) return;
    if (step.variants.front().choose) return;  // a model makes the plans, and need not cut tiles so
    INFO(step.name << " " << variant.name);
    CHECK(has([](const CheckFacts& facts) {
      return 2 * facts.ctas > 4 * facts.tiles() && facts.ctas % facts.tiles() != 0 && facts.tiles() > 1;
    }));
  });
}

TEST_CASE("its check plan: where tiles are split, the range of a later CTA begins with a tile",
          "[emulator]") {
  int found = 0;
  for_each_variant(false, [&](const auto&, const auto& variant, const auto& cases) {
    found += std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
      const CheckFacts facts = facts_of(variant, one);
      return facts.splits && facts.ctas >= 4 && facts.tiles() % facts.ctas == facts.ctas / 2 &&
             facts.ctas % 2 == 0 && facts.k_tiles % 2 == 0;
    });
  });
  if (step_under_test().name == "18_stream_k") CHECK(found == 4);
}

TEST_CASE("its check plan: persistent grids, and those of clusters, meet a raster group that is lower",
          "[emulator]") {
  constexpr int kGroup = 16;  // rows of tiles of the largest raster group of any step
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    INFO(step.name << " " << variant.name);
    const CheckFacts first = facts_of(variant, cases.front());
    const bool grouped = first.persistent || first.cluster > 1;
    CHECK(grouped == std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
            const CheckFacts facts = facts_of(variant, one);
            return (facts.tiles_n > 1 || gemm::needs_whole_rows(variant)) && facts.tiles_m > kGroup &&
                   facts.tiles_m % kGroup != 0;
          }));
  });
}

TEST_CASE("its check plan: rows of C and of an auxiliary tensor lie as far apart as those of D, and farther",
          "[emulator]") {
  const auto check = [](const auto& step, const auto& variant, const auto& cases) {
    INFO(step.name << " " << variant.name);
    const auto any = [&](auto wanted) { return std::any_of(cases.begin(), cases.end(), wanted); };
    if (variant.epilogues.source) {
      CHECK(any([](const CheckCase& one) { return one.epilogue.beta != 0 && one.c_pitch > one.shape.n; }));
      CHECK(any([](const CheckCase& one) { return one.epilogue.beta != 0 && one.c_pitch == 0; }));
    }
    const auto has_tensor = [](const CheckCase& one) {
      return gemm::is_read(one.epilogue.auxiliary) || gemm::is_written(one.epilogue.auxiliary);
    };
    if (!any(has_tensor)) return;
    CHECK(any([](const CheckCase& one) { return one.aux_pitch > one.shape.n; }));
    CHECK(any([](const CheckCase& one) { return one.aux_pitch == 0; }));
  };
  for_each_variant(false, check);
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    if (variant.choose == nullptr) check(step, variant, harness::plan_brief_check(step, variant, 7, true));
  }
  harness::control_emulator({});
}

TEST_CASE("its check plan: bits are compared where most CTAs share a tile, and a case runs in two streams",
          "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    INFO(step.name << " " << variant.name);
    const auto has = [](const CheckCase& one, auto wanted) {
      return std::any_of(one.inputs.begin(), one.inputs.end(), wanted);
    };
    const auto in_streams = [&](const CheckCase& one) {
      return has(one, [](const harness::CheckInputs& inputs) { return inputs.in_streams; });
    };
    CHECK(std::any_of(cases.begin(), cases.end(), in_streams));
    const auto most =
        std::max_element(cases.begin() + 1, cases.end(),
                         [](const CheckCase& a, const CheckCase& b) { return a.parts < b.parts; });
    if (most->parts == 0 || !harness::is_exact(harness::Pattern::kExact, most->epilogue)) return;
    CHECK(has(*most, [](const harness::CheckInputs& inputs) { return inputs.same_bits; }));
    CHECK((!most->adds_parts || in_streams(*most)));
  });
}

TEST_CASE("its check plan: one k-tile, and every schedule", "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    INFO(step.name << " " << variant.name);
    CHECK(std::any_of(cases.begin(), cases.end(),
                      [&](const CheckCase& one) { return facts_of(variant, one).k_tiles == 1; }));
    const auto& schedules = cases.front().schedules;
    CHECK(std::count_if(schedules.begin(), schedules.end(), [](const harness::Schedule& schedule) {
            return schedule.completion == harness::Completion::kRandom;
          }) >= 3);
    CHECK(std::count(schedules.begin(), schedules.end(),
                     harness::Schedule{7, harness::Completion::kEarliest}) == 1);
    CHECK(std::count(schedules.begin(), schedules.end(),
                     harness::Schedule{7, harness::Completion::kLatest}) == 1);
  });
  for_each_variant(true, [](const auto&, const auto&, const auto& cases) {
    for (const CheckCase& one : cases) CHECK(one.schedules.size() == 1);
  });
}

TEST_CASE("its check plan: what a shape with odd edges has not", "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    INFO(step.name << " " << variant.name);
    const gemm::TileShape& tile = variant.tile;
    const auto has = [&](auto wanted) {
      return std::any_of(cases.begin(), cases.end(),
                         [&](const CheckCase& one) { return wanted(one.shape, facts_of(variant, one)); });
    };
    CHECK(has([&](const gemm::Shape& shape, const CheckFacts& facts) {
      return shape.m % tile.m == 0 && shape.n % tile.n == 0 && shape.k % tile.k == 0 && facts.tiles() > 1 &&
             facts.k_tiles == 2;
    }));
    CHECK(has([](const gemm::Shape&, const CheckFacts& facts) { return facts.tiles() == 1; }));
    CHECK(has([](const gemm::Shape&, const CheckFacts& facts) { return facts.k_tiles > 32; }));
    if (variant.stages > 2) {
      CHECK(has([&](const gemm::Shape&, const CheckFacts& facts) {
        return facts.k_tiles > 1 && facts.k_tiles < variant.stages;
      }));
    }
    for (const int k_tiles : {variant.stages, variant.stages + 1})
      CHECK(has([&](const gemm::Shape&, const CheckFacts& facts) { return facts.k_tiles == k_tiles; }));
    CHECK(has(
        [&](const gemm::Shape& shape, const CheckFacts&) { return shape.k == step.contract.k_multiple; }));
    if (step.contract.k_multiple == 1)
      CHECK(has([](const gemm::Shape& shape, const CheckFacts&) { return shape.k % 8 == 4; }));
    const gemm::Shape least = gemm::fitting_shape(
        variant, {step.contract.m_multiple, step.contract.n_multiple, step.contract.k_multiple});
    CHECK(has([&](const gemm::Shape& shape, const CheckFacts& facts) {
      return facts.tiles() > 1 && shape.m % tile.m == least.m % tile.m &&
             shape.n % tile.n == least.n % tile.n;
    }));
  });
}

TEST_CASE("its brief check plan: a variant beside another one has edges, and several tiles for a CTA",
          "[emulator]") {
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    const std::vector<CheckCase> cases = harness::plan_brief_check(step, variant, 7, false);
    for (const CheckCase& one : cases) {
      INFO(name_of(step, variant, one));
      CHECK_NOTHROW(harness::check_contract(step, one.shape));
      CHECK(!one.schedules.empty());
    }
    INFO(name_of(step, variant, cases.front()));
    CHECK(cases.front().schedules.size() == 2);
    const CheckFacts facts = facts_of(variant, cases.front());
    if (!gemm::needs_whole_rows(variant)) CHECK(facts.tiles() >= 4);
    CHECK(facts.k_tiles > variant.stages);
    if (facts.persistent) {
      // A row in one tile leaves one column of tiles.
      CHECK(facts.tiles() >= (gemm::needs_whole_rows(variant) ? 1 : 4) * facts.ctas);
      // What chooses clusters by shape chooses none for what is one tile either way round.
      const bool always = harness::check_facts(variant, {8, 8, variant.tile.k}).cluster > 1;
      if (always) CHECK(facts.ctas >= 2 * facts.cluster);
      CHECK(std::any_of(cases.begin(), cases.end(),
                        [&](const CheckCase& one) { return facts_of(variant, one).k_tiles == 1; }));
    }
    // Ranges of work that begin where a tile begins.
    if (facts.persistent && variant.workspace_bytes != nullptr) {
      CHECK(std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
        const CheckFacts of_case = facts_of(variant, one);
        return of_case.tiles() % of_case.ctas == 0 && one.shape.m % variant.tile.m == 0;
      }));
    }
    CHECK(harness::plan_brief_check(step, variant, 7, true).front().schedules.size() == 1);
  }
  harness::control_emulator({});
}

TEST_CASE("its check plan: a tile's place needs more than 16 bits", "[emulator]") {
  for_each_variant(false, [](const auto& step, const auto& variant, const auto& cases) {
    const CheckFacts facts = facts_of(variant, cases.front());
    if (!facts.persistent || facts.workspace) return;
    INFO(step.name << ' ' << variant.name);
    constexpr int kLimit = 1 << 16;
    const auto begins_beyond = [](int extent, int tile) { return (extent - 1) / tile * tile >= kLimit; };
    const auto few_tiles = [](int tile) { return kLimit / tile < 590; };
    CHECK(std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
            return begins_beyond(one.shape.m, variant.tile.m);
          }) == few_tiles(variant.tile.m));
    CHECK(std::any_of(cases.begin(), cases.end(), [&](const CheckCase& one) {
            return begins_beyond(one.shape.n, variant.tile.n);
          }) == (few_tiles(variant.tile.n) && !gemm::needs_whole_rows(variant)));
  });
}
