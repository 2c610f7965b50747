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
        "{} is not a Hopper (compute capability {}): the docs' numbers and predictions are not about it",
        device.name, compute_capability(device)));
  if (card.is_divided) {
    found.push_back(
        fmt::format("the GPU is divided (MIG) and this instance has {} SMs: its other instances share power "
                    "and clock with it",
                    device.sm_count));
  } else if (device.compute_capability == kHopper && device.sm_count != documented_sms) {
    found.push_back(fmt::format(
        "{} SMs, where the docs' H200 has {}: waves end elsewhere, and the peak is {:.0f} % of that one's",
        device.sm_count, documented_sms, 100.0 * device.sm_count / documented_sms));
  }
  if (card.is_shared)
    found.emplace_back(
        "a virtual GPU (vGPU), which other virtual machines use in turns: times may scatter and clocks may "
        "not be known");
  if (card.power_limit_w > 0 && card.power_limit_w < card.default_power_limit_w) {
    found.push_back(
        fmt::format("the power limit is set to {:.0f} W, {:.0f} W is this card's default: large shapes and "
                    "sustained runs get slower",
                    card.power_limit_w, card.default_power_limit_w));
  } else if (device.compute_capability == kHopper && card.power_limit_w > 0 &&
             card.power_limit_w < kDocumentedPowerW) {
    found.push_back(
        fmt::format("this card is built for {:.0f} W, the docs' H200 for {:.0f} W: large shapes and "
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
        fmt::format("the GPU was too hot ({:.0f} C) and slowed down to {:.0f} MHz: its times count for this "
                    "temperature only",
                    conditions.temperature_c_max, conditions.sm_clock_mhz_min));
  }
  if (throttled_by("hardware_power_brake"))
    found.emplace_back(
        "the machine told the GPU to brake (power supply): its times count for this moment only");
  if (throttled_by("hardware_slowdown") && !throttled_by("hardware_thermal") &&
      !throttled_by("hardware_power_brake"))
    found.emplace_back(
        "the GPU's hardware slowed it down and does not say why: its times count for this moment only");
  if (throttled_by("application_clocks"))
    found.push_back(
        fmt::format("somebody has fixed this card's clock (application clocks): it ran at {:.0f} MHz at most",
                    conditions.sm_clock_mhz_max));
  if (mode == TimingMode::kBurst && throttled_by("power_cap"))
    found.push_back(
        fmt::format("the power limit held the clock down to {:.0f} MHz although this is burst mode: one "
                    "launch is long enough to reach it",
                    conditions.sm_clock_mhz_min));
  return found;
}

}  // namespace harness
