#include "record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/timing/statistics/statistics.h"

namespace roofline {
namespace {

/// Five significant digits are more than any of these measurements has, and keep the committed file readable.
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return 0;
  const int decimals = 4 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Dividing by a whole power of ten gives the double nearest to the decimal number, which prints short.
  const double scale = std::pow(10.0, std::abs(decimals));
  return decimals >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

/// The parameters as "key value" pairs, for a line of text.
std::string in_words(const nlohmann::json& parameters) {
  std::string words;
  for (const auto& [key, value] : parameters.items()) {
    words += fmt::format("{}{} ", words.empty() ? "" : ", ", key);
    words += value.is_string() ? value.get<std::string>() : fmt::format("{:g}", value.get<double>());
  }
  return words;
}

}  // namespace

Summary summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {.median = harness::quantile(samples, 0.5),
          .q1 = harness::quantile(samples, 0.25),
          .q3 = harness::quantile(samples, 0.75),
          .lowest = samples.front(),
          .highest = samples.back()};
}

bool is_impossible(const Figure& figure) {
  const double median = summarize(figure.samples).median;
  return !std::isfinite(median) || median <= 0 || median < figure.least ||
         (figure.most > 0 && median > figure.most);
}

nlohmann::json to_json(const Run& run, const std::vector<Figure>& figures) {
  const harness::DeviceInfo& device = run.device;
  nlohmann::json rows = nlohmann::json::array();
  for (const Figure& figure : figures) {
    const Summary summary = summarize(figure.samples);
    nlohmann::json samples = nlohmann::json::array();
    for (const double sample : figure.samples) samples.push_back(rounded(sample));
    rows.push_back({{"name", figure.name},
                    {"unit", figure.unit},
                    {"what", figure.what},
                    {"parameters", figure.parameters},
                    {"median", rounded(summary.median)},
                    {"q1", rounded(summary.q1)},
                    {"q3", rounded(summary.q3)},
                    {"lowest", rounded(summary.lowest)},
                    {"highest", rounded(summary.highest)},
                    {"impossible", is_impossible(figure)},
                    {"samples", std::move(samples)}});
  }
  return {{"schema", 1},
          {"kind", "roofline"},
          {"device",
           {{"name", device.name},
            {"compute_capability", device.compute_capability},
            {"sm_count", device.sm_count},
            {"max_threads_per_sm", device.max_threads_per_sm},
            {"max_ctas_per_sm", device.max_ctas_per_sm},
            {"registers_per_sm", device.registers_per_sm},
            {"shared_bytes_per_sm", device.shared_bytes_per_sm},
            {"shared_bytes_per_cta", device.shared_bytes_per_cta},
            {"reserved_shared_bytes", device.reserved_shared_bytes},
            {"l2_bytes", device.l2_bytes},
            {"memory_bytes", device.memory_bytes},
            {"clock_hz", device.clock_hz},
            {"memory_bytes_per_second", device.memory_bytes_per_second},
            {"driver_version", device.driver_version},
            {"runtime_version", device.runtime_version}}},
          {"commit", run.commit},
          {"date", run.date},
          {"quick", run.quick},
          {"rounds", run.rounds},
          {"idle_ms", run.idle_ms},
          {"seconds", rounded(run.seconds)},
          {"figures", std::move(rows)}};
}

std::string human_table(const std::vector<Figure>& figures) {
  std::string text = fmt::format("{:>10}  {:>10}  {:>10}  {:<14}  {}\n", "median", "quartile 1", "quartile 3",
                                 "unit", "figure");
  for (const Figure& figure : figures) {
    const Summary summary = summarize(figure.samples);
    const std::string parameters = in_words(figure.parameters);
    const std::string name =
        parameters.empty() ? figure.name : fmt::format("{} ({})", figure.name, parameters);
    text += fmt::format("{:>10.2f}  {:>10.2f}  {:>10.2f}  {:<14}  {}{}\n", summary.median, summary.q1,
                        summary.q3, figure.unit, name, is_impossible(figure) ? ": IMPOSSIBLE" : "");
  }
  return text;
}

}  // namespace roofline
