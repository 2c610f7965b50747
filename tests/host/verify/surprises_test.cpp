#include "harness/timing/surprises.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/predict/budget.h"

namespace harness {
namespace {

using Lines = std::vector<std::string>;

const std::string& page() {
  static const std::string kPage = [] {
    std::ifstream file(GEMM_SOURCE_DIR "/docs/surprises.md");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return kPage;
}

/// The page quotes the sentence as a line of its own, as the programs print it.
void check_quoted(const char* prefix, const std::string& sentence) {
  INFO(prefix << sentence);
  CHECK(contains(page(), "\n" + (prefix + sentence) + "\n"));
}

DeviceInfo gpu(const std::string& name, int compute_capability, int sm_count) {
  DeviceInfo info = documented_h200();
  info.name = name;
  info.compute_capability = compute_capability;
  info.sm_count = sm_count;
  return info;
}

Conditions throttled(const Lines& reasons) {
  return {.sm_clock_mhz_min = 1410,
          .sm_clock_mhz_median = 1620,
          .sm_clock_mhz_max = 1755,
          .temperature_c_max = 88,
          .throttle_reasons = reasons};
}

/// 16384^3 in burst mode, docs/results/schedules_h200.json.
Conditions held_down() {
  return {.sm_clock_mhz_min = 1815,
          .sm_clock_mhz_median = 1965,
          .sm_clock_mhz_max = 1980,
          .temperature_c_max = 57,
          .throttle_reasons = {"power_cap"}};
}

constexpr Card kAsDelivered{.power_limit_w = 700, .default_power_limit_w = 700};

TEST_CASE("an H200 as it is delivered, a card without NVML and the emulator are no surprise") {
  const DeviceInfo h200 = gpu("NVIDIA H200", 90, 132);
  CHECK(surprises(h200, kAsDelivered).empty());
  CHECK(surprises(h200, {}).empty());
  DeviceInfo emulator = gpu("emulator", 90, 4);
  emulator.is_emulator = true;
  CHECK(surprises(emulator, {}).empty());
}

TEST_CASE("surprises of a device are said in one sentence each, which docs/surprises.md quotes") {
  struct Case {
    DeviceInfo device;
    Card card;
    Lines lines;
  };
  const Case cases[] = {
      {gpu("NVIDIA H100 PCIe", 90, 114),
       {.power_limit_w = 350, .default_power_limit_w = 350},
       {"this GPU has 114 SMs, and the H200 in docs has 132: its waves end elsewhere, and its peak is 86 % "
        "of the H200's",
        "this card is built for 350 W, and the H200 in docs for 700 W: large shapes and sustained runs are "
        "slower"}},
      {gpu("NVIDIA H200", 90, 132),
       {.power_limit_w = 500, .default_power_limit_w = 700},
       {"the power limit is set to 500 W, but this card's default is 700 W: large shapes and sustained runs "
        "become slower"}},
      {gpu("NVIDIA H200 MIG 1g.18gb", 90, 16),
       {.power_limit_w = 700, .default_power_limit_w = 700, .is_divided = true},
       {"the GPU is divided (MIG) and this instance has 16 SMs: its other instances share power and clock "
        "with it"}},
      {gpu("GRID H200", 90, 132),
       {.is_shared = true},
       {"this is a virtual GPU (vGPU), which other virtual machines use in turn: times may scatter and "
        "clocks may be unknown"}},
      {gpu("NVIDIA A100-SXM4-80GB", 80, 108),
       {.power_limit_w = 400, .default_power_limit_w = 400},
       {"NVIDIA A100-SXM4-80GB is not a Hopper (compute capability 8.0): the numbers and predictions in docs "
        "do not apply to it"}},
  };
  for (const Case& expected : cases) {
    CHECK(surprises(expected.device, expected.card) == expected.lines);
    for (const std::string& line : expected.lines) check_quoted("note: ", line);
  }
}

TEST_CASE("throttling has the names that NVML's bits stand for") {
  CHECK(throttle_names(0).empty());
  CHECK(throttle_names(0x1).empty());  // idle
  CHECK(throttle_names(0x4) == Lines{"power_cap"});
  CHECK(throttle_names(0x68) == Lines{"hardware_slowdown", "software_thermal", "hardware_thermal"});
  CHECK(throttle_names(~0ull).size() == 8);
}

TEST_CASE("surprises of a run are said in one sentence each, which docs/surprises.md quotes") {
  const auto lines = [](const Lines& reasons, TimingMode mode = TimingMode::kBurst) {
    return surprises(throttled(reasons), mode);
  };
  CHECK(lines({}).empty());
  CHECK(lines({"display_clocks"}).empty());
  CHECK(lines({"power_cap"}, TimingMode::kSustained).empty());  // what sustained mode is about

  const std::pair<Conditions, std::string> cases[] = {
      {throttled({"software_thermal"}),
       "the GPU was too hot (88 C) and slowed down to 1410 MHz: its times hold only for this temperature"},
      {held_down(),
       "the power limit held the clock down to 1815 MHz, although this is burst mode: a single launch is "
       "long enough to reach the limit"},
      {throttled({"application_clocks"}),
       "this card's clock has been fixed (application clocks): it ran at 1755 MHz at most"},
      {throttled({"hardware_power_brake"}),
       "the machine told the GPU to slow down (power supply): its times hold only for this moment"},
      {throttled({"hardware_slowdown"}),
       "the GPU's hardware slowed it down and does not say why: its times hold only for this moment"},
  };
  const Lines known = throttle_names(~0ull);
  for (const auto& [conditions, sentence] : cases) {
    CHECK(std::find(known.begin(), known.end(), conditions.throttle_reasons.front()) != known.end());
    CHECK(surprises(conditions, TimingMode::kBurst) == Lines{sentence});
    check_quoted("note: ", sentence);
  }
  // One cause, one sentence.
  CHECK(lines({"hardware_slowdown", "software_thermal", "hardware_thermal"}).size() == 1);
  CHECK(lines({"hardware_slowdown", "hardware_power_brake"}).size() == 1);
}

TEST_CASE("a step is refused where its instructions do not exist, newer GPUs included") {
  using enum gemm::Architecture;
  const gemm::Step ampere{.name = "04_mma_sync", .title = "", .architecture = kSm80};
  const gemm::Step hopper{.name = "08_wgmma", .title = "", .architecture = kSm90a};
  const gemm::Step blackwell{.name = "70_tensor_memory", .title = "", .architecture = kSm100a};
  for (const int capability : {80, 86, 89, 90, 100, 120}) {
    const DeviceInfo device = gpu("a GPU", capability, 100);
    CHECK(step_problem(ampere, device).empty());
    CHECK(step_problem(hopper, device).empty() == (capability == 90));
    CHECK(step_problem(blackwell, device).empty() == (capability == 100));
    CHECK(record_wanted(hopper, device).empty());
    CHECK(contains(record_wanted(blackwell, device), "tools/run 70 4096 --time --json 70.json"));
  }
  DeviceInfo emulator = gpu("emulator", 90, 4);
  emulator.is_emulator = true;
  CHECK(step_problem(blackwell, emulator).empty());
  CHECK(record_wanted(blackwell, emulator).empty());
  CHECK(step_problem(blackwell, gpu("NVIDIA H200", 90, 132)) ==
        "step 70_tensor_memory needs a Blackwell GPU: its instructions exist only in compute "
        "capability 10.0, but NVIDIA H200 has 9.0; tools/run --backend emulator runs it on any machine");
  CHECK(step_problem(ampere, gpu("Tesla T4", 75, 40)) ==
        "step 04_mma_sync needs compute capability 8.0 or newer, but Tesla T4 has 7.5");
  for (const DeviceInfo& device : {gpu("NVIDIA A100-SXM4-80GB", 80, 108), gpu("NVIDIA B200", 100, 148)})
    check_quoted("error: ", step_problem(hopper, device));
}

}  // namespace
}  // namespace harness
