#include "harness/predict/budget.h"

#include <string>

#include "catch.h"

namespace harness {
namespace {

DeviceInfo device(int compute_capability) {
  return documented_gpu("sm_" + std::to_string(compute_capability));
}

constexpr int kBudgetTile = 128;
constexpr int kTileK = 16;

gemm::ptx::LaunchShape tiled_launch(const gemm::Shape& shape) {
  return {.grid = {static_cast<unsigned>(gemm::ceil_div(shape.n, kBudgetTile)),
                   static_cast<unsigned>(gemm::ceil_div(shape.m, kBudgetTile))},
          .block = {256}};
}

gemm::ptx::LaunchShape persistent_launch(const gemm::Shape&) {
  return {.grid = {132}, .block = {384}, .cluster = {}, .shared_bytes = 200 * 1024};
}

gemm::Step make_step(gemm::MathUnit unit, const gemm::Traffic& traffic) {
  return {.name = "42_test",
          .title = "a test",
          .unit = unit,
          .variants = {{.name = "v",
                        .summary = "",
                        .tile = {kBudgetTile, kBudgetTile, kTileK},
                        .traffic = traffic,
                        .launch_shape = tiled_launch}}};
}

TEST_CASE("occupancy: registers are allocated per warp, a quarter of the file at a time") {
  const DeviceInfo hopper = device(90);
  const auto ctas = [&](int threads, int registers) {
    return occupancy({.threads = threads, .registers = registers}, hopper).ctas;
  };
  CHECK(ctas(256, 128) == 2);  // 2 * 256 * 128 = 65536
  CHECK(ctas(256, 129) == 1);  // rounded up to 136
  CHECK(ctas(1024, 32) == 2);  // the thread limit
  CHECK(ctas(1024, 64) == 1);
  CHECK(ctas(1024, 65) == 0);  // 72 * 1024 registers: cannot start
  CHECK(ctas(384, 168) == 1);
  CHECK(ctas(256, 96) == 2);  // 5 warps a sub-partition: 20 warps, not 21
  CHECK(ctas(128, 255) == 2);
  CHECK(ctas(32, 16) == 32);  // the slots
  CHECK(ctas(96, 128) == 5);  // 16 warps by registers, 3 a CTA
  CHECK(ctas(33, 32) == 32);  // 2 warps a CTA: 64 warps are 32 CTAs
}

TEST_CASE("occupancy: shared memory includes the driver's share and is rounded to 128 bytes") {
  const DeviceInfo hopper = device(90);
  const auto ctas = [&](int bytes) {
    return occupancy({.threads = 128, .registers = 32, .dynamic_shared_bytes = bytes}, hopper).ctas;
  };
  CHECK(ctas(227 * 1024) == 1);
  CHECK(ctas(227 * 1024 + 1) == 0);
  CHECK(ctas(113 * 1024) == 2);
  CHECK(ctas(113 * 1024 + 1) == 1);
  CHECK(ctas(75 * 1024) == 3);
  CHECK(ctas(48 * 1024) == 4);
  CHECK(ctas(0) == 16);  // threads
}

TEST_CASE("occupancy: other compute capabilities have other limits") {
  CHECK(occupancy({.threads = 512, .registers = 32}, device(80)).ctas == 4);
  CHECK(occupancy({.threads = 512, .registers = 32}, device(86)).ctas == 3);
  CHECK(occupancy({.threads = 32, .registers = 32}, device(86)).ctas == 16);
  CHECK(occupancy({.threads = 32, .registers = 32}, device(89)).ctas == 24);
  CHECK(occupancy({.threads = 128, .registers = 32, .dynamic_shared_bytes = 49 * 1024}, device(86)).ctas ==
        2);
  CHECK(occupancy({.threads = 128, .registers = 32, .dynamic_shared_bytes = 49 * 1024}, device(80)).ctas ==
        3);
}

TEST_CASE("occupancy: the limiter is named") {
  const DeviceInfo hopper = device(90);
  CHECK(occupancy({.threads = 256, .registers = 128}, hopper).limiter == "registers");
  CHECK(occupancy({.threads = 1024, .registers = 24}, hopper).limiter == "threads");
  CHECK(occupancy({.threads = 32, .registers = 24}, hopper).limiter == "CTA slots");
  CHECK(occupancy({.threads = 128, .registers = 32, .dynamic_shared_bytes = 100 * 1024}, hopper).limiter ==
        "shared memory");
  CHECK(occupancy({.threads = 2048}, hopper).limiter == "threads");  // registers not known
}

TEST_CASE("cliffs: on either side of each the number of CTAs differs") {
  for (const int capability : {80, 86, 89, 90}) {
    const DeviceInfo info = device(capability);
    for (const int threads : {64, 128, 256, 384, 512, 1024}) {
      for (const int registers : {24, 40, 64, 80, 96, 128, 168, 255}) {
        for (const int shared : {0, 10'000, 33'000, 49'152, 70'000}) {
          const CtaNeeds needs{.threads = threads, .registers = registers, .dynamic_shared_bytes = shared};
          const int now = occupancy(needs, info).ctas;
          const Cliffs found = cliffs(needs, info);
          INFO("capability " << capability << " threads " << threads << " registers " << registers
                             << " shared " << shared);
          const auto with_registers = [&](int value) {
            CtaNeeds changed = needs;
            changed.registers = value;
            return occupancy(changed, info).ctas;
          };
          const auto with_shared = [&](int value) {
            CtaNeeds changed = needs;
            changed.dynamic_shared_bytes = value;
            return occupancy(changed, info).ctas;
          };
          if (now > 0) {
            REQUIRE(found.registers_keep >= registers);
            REQUIRE(with_registers(found.registers_keep) == now);
            if (found.registers_keep < 255) REQUIRE(with_registers(found.registers_keep + 1) < now);
            REQUIRE(found.shared_bytes_keep >= shared);
            REQUIRE(with_shared(found.shared_bytes_keep) == now);
            REQUIRE(with_shared(found.shared_bytes_keep + 1) < now);
          }
          if (found.registers_gain >= 0) {
            REQUIRE(found.registers_gain < registers);
            REQUIRE(with_registers(found.registers_gain) > now);
            REQUIRE(with_registers(found.registers_gain + 1) == now);
          }
          if (found.shared_bytes_gain >= 0) {
            REQUIRE(found.shared_bytes_gain < shared);
            REQUIRE(with_shared(found.shared_bytes_gain) > now);
          }
        }
      }
    }
  }
}

TEST_CASE("peaks: the documented rates of an H200") {
  const Peaks fma = peaks(gemm::MathUnit::kFma, documented_h200());
  CHECK(fma.flop == Approx(66.9e12).epsilon(0.01));  // 67 TFLOP/s in the datasheet
  DeviceInfo at_boost = documented_h200();
  at_boost.clock_hz = 1.83e9;
  CHECK(peaks(gemm::MathUnit::kWgmma, at_boost).flop == Approx(989e12).epsilon(0.001));
  CHECK(fma.shared_bytes == Approx(132 * 128 * 1.98e9));
  CHECK(peaks(gemm::MathUnit::kWgmma, device(80)).flop == 0);
}

TEST_CASE(
    "peaks: the documented rates of the other cards, of which a clock and a number of SMs are given here") {
  CHECK(peaks(gemm::MathUnit::kFma, device(80)).flop == Approx(19.5e12).epsilon(0.001));
  CHECK(peaks(gemm::MathUnit::kMmaSync, device(80)).flop == Approx(312e12).epsilon(0.001));
  CHECK(peaks(gemm::MathUnit::kFma, device(86)).flop == Approx(38.7e12).epsilon(0.001));
  CHECK(peaks(gemm::MathUnit::kMmaSync, device(86)).flop ==
        Approx(309.7e12 / 2).epsilon(0.001));  // sparse: twice
  CHECK(peaks(gemm::MathUnit::kFma, device(89)).flop == Approx(91.1e12).epsilon(0.001));
  CHECK(peaks(gemm::MathUnit::kMmaSync, device(89)).flop ==
        Approx(1457e12 / 4).epsilon(0.001));  // fp8, sparse
  CHECK(peaks(gemm::MathUnit::kTcgen05, device(100)).flop == Approx(2.25e15).epsilon(0.001));
  CHECK(peaks(gemm::MathUnit::kMmaSync, device(100)).flop == 0);  // not documented
}

TEST_CASE("occupancy: how many CTAs of step 05 shared memory allows, in the table of its chapter") {
  const auto by_shared = [](int compute_capability, int kb) {
    return occupancy({.threads = 128, .dynamic_shared_bytes = kb * 1024}, device(compute_capability))
        .by_shared;
  };
  for (const int capability : {90, 100}) {
    CHECK(by_shared(capability, 32) == 6);
    CHECK(by_shared(capability, 64) == 3);
    CHECK(by_shared(capability, 128) == 1);
  }
  CHECK(by_shared(80, 32) == 4);
  CHECK(by_shared(80, 64) == 2);
  for (const int capability : {86, 89}) {
    CHECK(by_shared(capability, 32) == 3);
    CHECK(by_shared(capability, 64) == 1);
    CHECK(by_shared(capability, 49) == 2);
    CHECK(by_shared(capability, 50) == 1);
  }
}

TEST_CASE("budget: the GPU is the one that is here, that is named, or that the step needs") {
  gemm::Step step = make_step(gemm::MathUnit::kMmaSync, {});
  DeviceInfo emulator;
  emulator.is_emulator = true;
  DeviceInfo here = documented_h200();
  here.name = "NVIDIA H200";
  here.driver_version = "580.00";
  CHECK(budgeted_device(step, emulator, "").compute_capability == 90);
  CHECK(budgeted_device(step, documented_h200(), "sm_86").sm_count == 84);
  CHECK(budgeted_device(step, here, "").name == "NVIDIA H200");
  CHECK_THROWS_WITH(budgeted_device(step, here, "sm_86"), has_text("--gpu assumes a GPU that is not here"));
  CHECK_THROWS_WITH(budgeted_device(step, emulator, "sm_70"), has_text("sm_80, sm_86, sm_89, sm_90, sm_100"));
  step.architecture = gemm::Architecture::kSm100a;
  CHECK(budgeted_device(step, emulator, "").compute_capability == 100);
  CHECK_THROWS_WITH(budgeted_device(step, emulator, "sm_89"), has_text("needs a Blackwell GPU"));
}

TEST_CASE("budget: where the rate of the math unit is not known, no share of it is printed") {
  const gemm::Step step = make_step(gemm::MathUnit::kMmaSync, {.shared_bytes_per_fma = 1});
  const gemm::Variant& variant = step.variants.front();
  const auto text = [&](int capability) {
    return render(make_budget(step, variant, {256, 256, 256}, device(capability), {}), step, variant);
  };
  CHECK(contains(text(90), "% of the mma.sync peak"));
  CHECK_FALSE(contains(text(100), "mma.sync"));
  CHECK(contains(text(80), "\n    L2 "));
  CHECK_FALSE(contains(text(86), "\n    L2 "));
}

TEST_CASE("budget: tiles, waves and bytes of a problem that divides") {
  const gemm::Step step = make_step(gemm::MathUnit::kFma, {.lsu_instructions_per_fma = 0.0625,
                                                           .shared_bytes_per_fma = 1,
                                                           .global_bytes_per_fma = 4.0 / kBudgetTile});
  const Budget budget = make_budget(step, step.variants.front(), {4096, 4096, 4096}, documented_h200(),
                                    {.registers = 128, .static_shared_bytes = 16 * 1024});
  CHECK(budget.tiles_m == 32);
  CHECK(budget.tiles_n == 32);
  CHECK(budget.k_steps == 256);
  CHECK(budget.ctas == 1024);
  CHECK(budget.occupancy.ctas == 2);
  CHECK(budget.slots == 264);
  CHECK(budget.waves == Approx(1024.0 / 264));
  CHECK(budget.last_wave == Approx((1024 - 3 * 264) / 264.0));
  CHECK(budget.balance == Approx(1024.0 / (8 * 132)));
  CHECK(budget.flop == Approx(2.0 * 4096 * 4096 * 4096));
  CHECK(budget.padded_flop == Approx(budget.flop));
  CHECK(budget.compulsory_bytes == Approx(3 * 2.0 * 4096 * 4096));
  CHECK(budget.requested_bytes == Approx(4.0 / kBudgetTile * 4096 * 4096 * 4096 + 2.0 * 4096 * 4096));
  // 16 clocks' worth of shared memory a thread-clock: 128 / 1 = 128 FMA a clock, as many as the FMA units.
  REQUIRE(budget.limits.size() == 5);
  CHECK(budget.limits.front().seconds == Approx(budget.flop / 2 / (128 * 132 * 1.98e9)));
  CHECK(budget.peak_share == Approx(budget.balance));
}

TEST_CASE("budget: the predicted limiter is the scarcest resource") {
  const auto limiter = [](gemm::MathUnit unit, const gemm::Traffic& traffic, const gemm::Shape& shape) {
    const gemm::Step step = make_step(unit, traffic);
    return make_budget(step, step.variants.front(), shape, documented_h200(), {.registers = 128})
        .limits.front()
        .name;
  };
  constexpr gemm::Shape kLarge{4096, 4096, 4096};
  CHECK(limiter(gemm::MathUnit::kFma, {}, kLarge) == "FP32 FMA units");
  CHECK(limiter(gemm::MathUnit::kMmaSync, {}, kLarge) == "mma.sync units");
  CHECK(limiter(gemm::MathUnit::kFma, {.lsu_instructions_per_fma = 2}, kLarge) == "load/store issue");
  CHECK(limiter(gemm::MathUnit::kFma, {.shared_bytes_per_fma = 8}, kLarge) == "shared memory");
  CHECK(limiter(gemm::MathUnit::kFma, {.global_bytes_per_fma = 4}, kLarge) == "L2");
  CHECK(limiter(gemm::MathUnit::kWgmma, {}, {4096, 4096, 16}) == "DRAM");
}

TEST_CASE("budget: ragged sizes compute whole tiles") {
  const gemm::Step step = make_step(gemm::MathUnit::kFma, {});
  const Budget budget =
      make_budget(step, step.variants.front(), {129, 1, 17}, documented_h200(), {.registers = 128});
  CHECK(budget.tiles_m == 2);
  CHECK(budget.tiles_n == 1);
  CHECK(budget.k_steps == 2);
  CHECK(budget.padded_flop == Approx(2.0 * 256 * 128 * 32));
  CHECK(budget.balance == Approx(2.0 / 132));
  CHECK(budget.waves < 1);
}

TEST_CASE("budget: a persistent kernel's waves are counted in tiles") {
  gemm::Step step = make_step(gemm::MathUnit::kWgmma, {});
  step.variants.front().launch_shape = persistent_launch;
  const Budget budget =
      make_budget(step, step.variants.front(), {2048, 2048, 2048}, documented_h200(), {.registers = 168});
  CHECK(budget.ctas == 132);
  CHECK(budget.occupancy.ctas == 1);
  CHECK(budget.waves == Approx(256.0 / 132));
  CHECK(budget.balance == Approx(256.0 / 264));
  const Budget few =
      make_budget(step, step.variants.front(), {1024, 1024, 2048}, documented_h200(), {.registers = 168});
  CHECK(few.ctas == 132);
  CHECK(few.waves == Approx(64.0 / 132));
  CHECK(few.balance == Approx(64.0 / 132));
}

TEST_CASE("budget: the text says what is assumed, what is not known and what decides") {
  const gemm::Step step =
      make_step(gemm::MathUnit::kFma, {.shared_bytes_per_fma = 8, .global_bytes_per_fma = 0.1});
  const gemm::Variant& variant = step.variants.front();
  check_text(render(make_budget(step, variant, {256, 256, 256}, documented_h200(), {}), step, variant),
             {"assumed", "not known here", "limited by shared memory"});
  check_text(render(make_budget(step, variant, {256, 256, 256}, documented_h200(), {.registers = 128}), step,
                    variant),
             {"up to 128 keep 2 CTAs per SM", "with at most 80 one more would fit", "limited by registers"},
             {"the same lines"});
}

TEST_CASE("budget: the L2's bound is said to be no hard one") {
  const gemm::Step step = make_step(gemm::MathUnit::kWgmma, {.global_bytes_per_fma = 0.1});
  const gemm::Variant& variant = step.variants.front();
  const std::string text = render(
      make_budget(step, variant, {4096, 4096, 4096}, documented_h200(), {.registers = 128}), step, variant);
  CHECK(contains(text, "limited by L2"));
  CHECK_FALSE(contains(text, "e+"));  // 6573 TFLOP/s, should DRAM alone decide
  CHECK(contains(text, "shorter if SMs request the same lines at the same time"));
}

TEST_CASE("budget: a workspace is printed with its size, and that there is none where there could be one") {
  gemm::Step step = make_step(gemm::MathUnit::kWgmma, {});
  gemm::Variant& variant = step.variants.front();
  const auto text = [&](const gemm::Shape& shape) {
    return render(make_budget(step, variant, shape, documented_h200(), {.registers = 128}), step, variant);
  };
  CHECK_FALSE(contains(text({512, 256, 256}), "workspace"));
  variant.workspace_bytes = [](const gemm::Shape& shape) {
    return shape.m > 256 ? std::int64_t{shape.m} * 131080 : 0;
  };
  CHECK(contains(text({512, 256, 256}), "workspace    67.1 MB of device memory for each stream"));
  CHECK(contains(text({256, 256, 256}), "workspace    none"));
}

TEST_CASE("budget: SMs that no cluster of the launch reaches compute nothing") {
  gemm::Step step = make_step(gemm::MathUnit::kWgmma, {});
  gemm::Variant& variant = step.variants.front();
  variant.launch_shape = [](const gemm::Shape&) -> gemm::ptx::LaunchShape {
    return {.grid = {120}, .block = {384}, .cluster = {4}, .shared_bytes = 200 * 1024};
  };
  const Budget budget = make_budget(step, variant, {2048, 2048, 2048}, documented_h200(), {.registers = 168});
  CHECK(budget.slots == 120);
  CHECK(budget.waves == Approx(256.0 / 120));
  CHECK(budget.balance == Approx(256.0 / (3 * 132)));  // the busiest SM has three tiles
}

TEST_CASE("budget: where tiles are divided, the variant says what the busiest CTA multiplies") {
  gemm::Step step = make_step(gemm::MathUnit::kWgmma, {});
  gemm::Variant& variant = step.variants.front();
  variant.launch_shape = persistent_launch;
  variant.busiest_tiles = [](const gemm::Shape& shape) { return shape.m == 2048 ? 2.0 : 1.25; };
  const auto balance = [&](const gemm::Shape& shape) {
    return make_budget(step, variant, shape, documented_h200(), {.registers = 168}).balance;
  };
  CHECK(balance({2048, 2048, 2048}) == Approx(256.0 / 264));
  CHECK(balance({128 * 33, 128 * 4, 2048}) == Approx(1 / 1.25));
}

TEST_CASE("budget: a kernel that cannot start is said to be one") {
  const gemm::Step step = make_step(gemm::MathUnit::kFma, {});
  const gemm::Variant& variant = step.variants.front();
  const Budget budget = make_budget(step, variant, {256, 256, 256}, documented_h200(),
                                    {.registers = 128, .static_shared_bytes = 300 * 1024});
  CHECK(budget.slots == 0);
  CHECK(budget.seconds == 0);
  CHECK(contains(render(budget, step, variant), "not one fits on an SM: shared memory run out"));
}

TEST_CASE("a budget knows how many bytes an element has, and that the tensor cores count bytes") {
  gemm::Step step = make_step(gemm::MathUnit::kWgmma, {});
  const auto of_types = [&](const gemm::Types& types) {
    step.variants.front().types = types;
    return make_budget(step, step.variants.front(), {4096, 8192, 1024}, documented_h200(),
                       {.registers = 128});
  };
  const Budget bf16 = of_types({});
  const Budget fp8 = of_types({gemm::Type::kE4m3, gemm::Type::kE5m2, gemm::Type::kBf16});
  const Budget tf32 = of_types({gemm::Type::kTf32, gemm::Type::kTf32, gemm::Type::kFp32});
  const auto math = [](const Budget& budget) {
    for (const Limit& limit : budget.limits) {
      if (limit.name == "wgmma units") return limit.seconds;
    }
    return 0.0;
  };
  CHECK(math(bf16) > 0);
  CHECK(math(fp8) == Approx(math(bf16) / 2));
  CHECK(math(tf32) == Approx(math(bf16) * 2));
  CHECK(bf16.compulsory_bytes == 2.0 * (4096 * 1024 + 8192 * 1024 + 4096.0 * 8192));
  CHECK(fp8.compulsory_bytes == 4096 * 1024 + 8192 * 1024 + 2 * 4096.0 * 8192);
  CHECK(tf32.compulsory_bytes == 2 * bf16.compulsory_bytes);
}

}  // namespace
}  // namespace harness
