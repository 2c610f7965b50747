#include "harness/timing/surprises.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/problem.h"
#include "harness/predict/budget.h"

namespace harness {
namespace {

constexpr int kHopper = 90;
// NVIDIA H200 datasheet, H200 SXM: "up to 700 W".
constexpr double kDocumentedPowerW = 700;

}  // namespace

std::vector<std::string> throttle_names(unsigned long long mask) {
  constexpr std::pair<unsigned long long, const char*> kReasons[] = {
      {0x002, "application_clocks"},   {0x004, "power_cap"},        {0x008, "hardware_slowdown"},
      {0x010, "sync_boost"},           {0x020, "software_thermal"}, {0x040, "hardware_thermal"},
      {0x080, "hardware_power_brake"}, {0x100, "display_clocks"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons) {
    if ((mask & bit) != 0) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> surprises(const DeviceInfo& device, const Card& card) {
  if (device.is_emulator) return {};
  std::vector<std::string> found;
  const int documented_sms = documented_h200().sm_count;
  if (device.compute_capability != kHopper)
    found.push_back(fmt::format(
        "{} is not a Hopper (compute capability {}): the numbers and predictions in docs do not apply to it",
        device.name, compute_capability(device)));
  if (card.is_divided) {
    found.push_back(
        fmt::format("the GPU is divided (MIG) and this instance has {} SMs: its other instances share power "
                    "and clock with it",
                    device.sm_count));
  } else if (device.compute_capability == kHopper && device.sm_count != documented_sms) {
    found.push_back(
        fmt::format("this GPU has {} SMs, and the H200 in docs has {}: its waves end elsewhere, and its peak "
                    "is {:.0f} % of the H200's",
                    device.sm_count, documented_sms, 100.0 * device.sm_count / documented_sms));
  }
  if (card.is_shared)
    found.emplace_back(
        "this is a virtual GPU (vGPU), which other virtual machines use in turn: times may scatter and "
        "clocks may be unknown");
  if (card.power_limit_w > 0 && card.power_limit_w < card.default_power_limit_w) {
    found.push_back(
        fmt::format("the power limit is set to {:.0f} W, but this card's default is {:.0f} W: large shapes "
                    "and sustained runs become slower",
                    card.power_limit_w, card.default_power_limit_w));
  } else if (device.compute_capability == kHopper && card.power_limit_w > 0 &&
             card.power_limit_w < kDocumentedPowerW) {
    found.push_back(
        fmt::format("this card is built for {:.0f} W, and the H200 in docs for {:.0f} W: large shapes and "
                    "sustained runs are slower",
                    card.power_limit_w, kDocumentedPowerW));
  }
  return found;
}

std::vector<std::string> surprises(const Conditions& conditions, TimingMode mode) {
  const auto throttled_by = [&](const char* reason) {
    return std::find(conditions.throttle_reasons.begin(), conditions.throttle_reasons.end(), reason) !=
           conditions.throttle_reasons.end();
  };
  std::vector<std::string> found;
  if (throttled_by("software_thermal") || throttled_by("hardware_thermal")) {
    found.push_back(
        fmt::format("the GPU was too hot ({:.0f} C) and slowed down to {:.0f} MHz: its times hold only for "
                    "this temperature",
                    conditions.temperature_c_max, conditions.sm_clock_mhz_min));
  }
  if (throttled_by("hardware_power_brake"))
    found.emplace_back(
        "the machine told the GPU to slow down (power supply): its times hold only for this moment");
  if (throttled_by("hardware_slowdown") && !throttled_by("hardware_thermal") &&
      !throttled_by("hardware_power_brake"))
    found.emplace_back(
        "the GPU's hardware slowed it down and does not say why: its times hold only for this moment");
  if (throttled_by("application_clocks"))
    found.push_back(
        fmt::format("this card's clock has been fixed (application clocks): it ran at {:.0f} MHz at most",
                    conditions.sm_clock_mhz_max));
  if (mode == TimingMode::kBurst && throttled_by("power_cap"))
    found.push_back(
        fmt::format("the power limit held the clock down to {:.0f} MHz, although this is burst mode: a "
                    "single launch is long enough to reach the limit",
                    conditions.sm_clock_mhz_min));
  return found;
}

}  // namespace harness
