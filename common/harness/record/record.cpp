#include "harness/record/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/base/output.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

const ContestantRecord* find_if(const ShapeRecord& shape, bool (*predicate)(const ContestantRecord&)) {
  const auto found = std::find_if(shape.contestants.begin(), shape.contestants.end(), predicate);
  return found == shape.contestants.end() ? nullptr : &*found;
}

bool is_ceiling(const ContestantRecord& contestant) {
  return contestant.kind == ContestantKind::kCeiling;
}

std::string human_conditions(const Conditions& conditions) {
  if (conditions.sm_clock_mhz_max == 0) return "clock and power unknown: NVML was not found";
  std::string text =
      fmt::format("SM clock {:.0f} MHz ({:.0f} to {:.0f}), {:.0f} W (at most {:.0f}), at most {:.0f} C, ",
                  conditions.sm_clock_mhz_median, conditions.sm_clock_mhz_min, conditions.sm_clock_mhz_max,
                  conditions.power_w_median, conditions.power_w_max, conditions.temperature_c_max);
  return text + (conditions.throttle_reasons.empty()
                     ? "not throttled"
                     : fmt::format("throttled by {}", fmt::join(conditions.throttle_reasons, ", ")));
}

/// What the column of variants shows: of "best of 8: algo 66, ..." the part before the colon.
std::string short_variant(const ContestantRecord& contestant) {
  return contestant.variant.substr(0, contestant.variant.find(": "));
}

/// The same with the epilogue, where the contestant has one of its own.
std::string shown_variant(const ContestantRecord& contestant) {
  return short_variant(contestant) + (contestant.epilogue.empty() ? "" : ": " + contestant.epilogue);
}

std::string shape_table(const ShapeRecord& shape) {
  const ContestantRecord* reference = find_if(shape, is_reference);
  const ContestantRecord* ceiling = find_if(shape, is_ceiling);
  std::size_t name_width = 10;
  std::size_t variant_width = 7;
  for (const ContestantRecord& contestant : shape.contestants) {
    name_width = std::max(name_width, contestant.name.size());
    variant_width = std::max(variant_width, shown_variant(contestant).size());
  }
  std::string text = fmt::format("  {:<{}}  {:<{}}  {:>10}  {:>7}  {:>8}", "contestant", name_width,
                                 "variant", variant_width, "median", "IQR", "TFLOP/s");
  if (ceiling != nullptr) text += fmt::format("  {:>7}", "ceiling");
  if (reference != nullptr) text += fmt::format("  {:<24}  {}", "speed / cuBLASLt", "verdict");
  text += '\n';
  for (const ContestantRecord& contestant : shape.contestants) {
    const double spread =
        contestant.median_us > 0 ? 100 * (contestant.q3_us - contestant.q1_us) / contestant.median_us : 0;
    std::string line = fmt::format("  {:<{}}  {:<{}}  {:>10}  {:>5.1f} %  {:>8.1f}", contestant.name,
                                   name_width, shown_variant(contestant), variant_width,
                                   human_time(contestant.median_us), spread, contestant.tflops);
    if (ceiling != nullptr) line += fmt::format("  {:>5.1f} %", 100 * contestant.ceiling_share);
    if (reference != nullptr && &contestant == reference) {
      line += fmt::format("  {:<24}  {}", "1", "(reference)");
    } else if (reference != nullptr) {
      const Ratio& ratio = contestant.to_cublaslt;
      line += fmt::format("  {:<24}  {}", human_ratio(ratio),
                          is_ceiling(contestant) ? "(ceiling)" : to_string(contestant.verdict));
    }
    text += line + '\n';
  }
  for (const ContestantRecord& contestant : shape.contestants) {
    if (short_variant(contestant) != contestant.variant)
      text += fmt::format("  {}: {}\n", contestant.name, contestant.variant);
  }
  return text;
}

}  // namespace

std::string human_time(double us) {
  const bool milliseconds = us >= 1000;
  const double value = milliseconds ? us / 1000 : us;
  return fmt::format("{:.{}f} {}", value, value >= 100 ? 1 : 2, milliseconds ? "ms" : "us");
}

std::string human_ratio(const Ratio& r) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", r.median, r.low, r.high);
}

std::string human_origin(const Record& record) {
  return fmt::format("{}, driver {}, CUDA {}, cuBLAS {}; commit {}\n", record.device.name,
                     record.device.driver_version, record.device.runtime_version,
                     record.cublas_version.empty() ? "not found" : record.cublas_version, record.commit);
}

void derive(ShapeRecord& shape) {
  for (const ContestantRecord& contestant : shape.contestants) {
    if (contestant.samples_us.empty())
      throw std::invalid_argument(fmt::format("{} has no samples", contestant.name));
    if (contestant.samples_us.size() != shape.contestants.front().samples_us.size())
      throw std::invalid_argument(fmt::format("{} has {} samples, but {} has {}", contestant.name,
                                              contestant.samples_us.size(), shape.contestants.front().name,
                                              shape.contestants.front().samples_us.size()));
    for (const double sample : contestant.samples_us) {
      if (!(sample > 0) || !std::isfinite(sample))
        throw std::invalid_argument(fmt::format("{} has a sample of {} us", contestant.name, sample));
    }
  }
  const double flop = 2.0 * shape.shape.m * shape.shape.n * shape.shape.k;
  for (ContestantRecord& contestant : shape.contestants) {
    contestant.median_us = quantile(contestant.samples_us, 0.5);
    contestant.q1_us = quantile(contestant.samples_us, 0.25);
    contestant.q3_us = quantile(contestant.samples_us, 0.75);
    contestant.tflops = flop / contestant.median_us * 1e-6;  // FLOP per microsecond are MFLOP/s
  }
  const ContestantRecord* reference = find_if(shape, is_reference);
  const ContestantRecord* ceiling = find_if(shape, is_ceiling);
  for (ContestantRecord& contestant : shape.contestants) {
    contestant.ceiling_share = ceiling == nullptr ? 0 : contestant.tflops / ceiling->tflops;
    contestant.to_cublaslt = {};
    contestant.verdict = Verdict::kAmbiguous;
    if (reference == nullptr) continue;
    // Within one round, so that a drift of the clock cancels.
    std::vector<double> ratios;
    for (std::size_t i = 0; i < contestant.samples_us.size(); ++i)
      ratios.push_back(reference->samples_us[i] / contestant.samples_us[i]);
    contestant.to_cublaslt = median_interval(ratios);
    contestant.verdict = verdict_of(contestant.to_cublaslt, ratios.size());
  }
}

std::string human_table(const Record& record) {
  std::string text = human_origin(record);
  const std::string mode =
      record.mode == TimingMode::kBurst
          ? fmt::format("burst ({:g} ms idle before each launch: the clock is up)", record.idle_ms)
          : std::string("sustained (back to back: the power limit decides)");
  for (const ShapeRecord& shape : record.shapes) {
    const std::size_t rounds = shape.contestants.empty() ? 0 : shape.contestants.front().samples_us.size();
    text += fmt::format("\n{}{}, {}\n{}", to_string(shape.shape),
                        shape.epilogue.empty() ? "" : ", " + shape.epilogue, mode, shape_table(shape));
    text += fmt::format("  {}, {} inputs with seed {}, {} in rotation\n", counted(rounds, "round"),
                        record.pattern, record.seed,
                        counted(static_cast<std::size_t>(shape.rotated_buffers), "operand set"));
    text += fmt::format("  {}\n", human_conditions(shape.conditions));
    if (find_if(shape, is_reference) == nullptr) {
      text += "  cuBLASLt did not run, so there are no ratios and no verdicts\n";
    } else if (rounds < kMinRounds) {
      text += fmt::format(
          "  there were fewer than {} rounds, so there is no 95 % interval and no verdict (the ratios show "
          "the extremes)\n",
          kMinRounds);
    }
  }
  return text;
}

}  // namespace harness
