#include "harness/record/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/base/problem.h"

namespace harness {
namespace {

/// The algorithm that won at one shape is not part of a baseline's identity.
std::string identity(const ContestantRecord& contestant) {
  return contestant.kind == ContestantKind::kStep ? fmt::format("{} {}", contestant.name, contestant.variant)
                                                  : contestant.name;
}

const ContestantRecord* find(const ShapeRecord& shape, const std::string& wanted) {
  const auto found =
      std::find_if(shape.contestants.begin(), shape.contestants.end(),
                   [&](const ContestantRecord& contestant) { return identity(contestant) == wanted; });
  return found == shape.contestants.end() ? nullptr : &*found;
}

/// Every contestant once, as it stands at the first shape that has it.
std::vector<const ContestantRecord*> contestants_of(const SuiteRecord& suite) {
  std::vector<const ContestantRecord*> all;
  for (const Record* record : {&suite.burst, &suite.sustained}) {
    for (const ShapeRecord& shape : record->shapes) {
      for (const ContestantRecord& contestant : shape.contestants) {
        const bool known = std::any_of(all.begin(), all.end(), [&](const ContestantRecord* other) {
          return identity(*other) == identity(contestant);
        });
        if (!known) all.push_back(&contestant);
      }
    }
  }
  return all;
}

/// "1152x1152x32768 burst"
std::string entry_name(const gemm::Shape& shape, TimingMode mode) {
  return fmt::format("{} {}", to_string(shape), to_string(mode));
}

constexpr int kEntryWidth = 27;

std::string row(const ShapeRecord& shape, TimingMode mode, const ContestantRecord& contestant) {
  std::string line = fmt::format("  {:<{}}  {:>10}  {:>8.1f}", entry_name(shape.shape, mode), kEntryWidth,
                                 human_time(contestant.median_us), contestant.tflops);
  line += contestant.ceiling_share > 0 ? fmt::format("  {:>5.1f} %", 100 * contestant.ceiling_share)
                                       : fmt::format("  {:>7}", "-");
  if (is_reference(contestant)) return line + "  1\n";
  if (contestant.to_cublaslt.median == 0) return line + "  -\n";
  line += fmt::format("  {:<24}", human_ratio(contestant.to_cublaslt));
  line += fmt::format(
      "  {}", contestant.kind == ContestantKind::kCeiling ? "(ceiling)" : to_string(contestant.verdict));
  return line + (contestant.chosen.empty() ? "\n" : fmt::format(", chose {}\n", contestant.chosen));
}

std::string block(const SuiteRecord& suite, const ContestantRecord& contestant) {
  std::string text = identity(contestant) + '\n';
  for (const Record* record : {&suite.burst, &suite.sustained}) {
    for (const ShapeRecord& shape : record->shapes) {
      const ContestantRecord* here = find(shape, identity(contestant));
      text += here == nullptr
                  ? fmt::format("  {:<{}}  did not run\n", entry_name(shape.shape, record->mode), kEntryWidth)
                  : row(shape, record->mode, *here);
    }
  }
  return text + '\n';
}

std::string summary_line(const SuiteSummary& summary, std::size_t all_burst_shapes) {
  const std::string name = summary.kind == ContestantKind::kStep
                               ? fmt::format("{} {}", summary.name, summary.variant)
                               : summary.name;
  std::string line = fmt::format("  {:<{}}  ", name, kEntryWidth);
  line += summary.burst_shapes == 0 ? fmt::format("{:<24}", "-")
                                    : fmt::format("{:<24}", human_ratio(summary.geometric_mean));
  line += fmt::format("  {} at {}", human_ratio(summary.worst),
                      entry_name(summary.worst_shape, summary.worst_mode));
  if (summary.burst_shapes != all_burst_shapes)
    line += fmt::format("; mean of only {} of {} shapes", summary.burst_shapes, all_burst_shapes);
  return line + '\n';
}

}  // namespace

const std::vector<gemm::Shape>& suite_burst_shapes() {
  static const std::vector<gemm::Shape> shapes{
      {1024, 1024, 1024},    {2048, 2048, 2048},  {4096, 4096, 4096},  {8192, 8192, 8192},
      {16384, 16384, 16384}, {4096, 24576, 1536}, {8192, 8192, 28672}, {512, 4096, 14336},
      {128, 8192, 8192},     {16, 8192, 8192},    {1152, 1152, 32768}, {2176, 2304, 8192}};
  return shapes;
}

const std::vector<gemm::Shape>& suite_sustained_shapes() {
  static const std::vector<gemm::Shape> shapes{{8192, 8192, 8192}, {16384, 16384, 16384}};
  return shapes;
}

Ratio geometric_mean(const std::vector<Ratio>& ratios) {
  if (ratios.empty()) throw std::invalid_argument("a geometric mean needs at least one value");
  double sum = 0;
  double below = 0;
  double above = 0;
  for (const Ratio& ratio : ratios) {
    if (!(ratio.low > 0 && ratio.median > 0 && ratio.high > 0))
      throw std::invalid_argument(fmt::format("a geometric mean of {}", ratio.median));
    sum += std::log(ratio.median);
    below += std::pow(std::log(ratio.median / ratio.low), 2);
    above += std::pow(std::log(ratio.high / ratio.median), 2);
  }
  const auto count = static_cast<double>(ratios.size());
  const double mean = sum / count;
  return {.median = std::exp(mean),
          .low = std::exp(mean - std::sqrt(below) / count),
          .high = std::exp(mean + std::sqrt(above) / count)};
}

std::vector<SuiteSummary> summarize(const SuiteRecord& suite) {
  std::vector<SuiteSummary> summaries;
  for (const ContestantRecord* contestant : contestants_of(suite)) {
    if (is_reference(*contestant) || contestant->kind == ContestantKind::kCeiling) continue;
    SuiteSummary summary{.name = contestant->name,
                         .variant = contestant->kind == ContestantKind::kStep ? contestant->variant : "",
                         .kind = contestant->kind};
    std::vector<Ratio> burst;
    bool any = false;
    for (const Record* record : {&suite.burst, &suite.sustained}) {
      for (const ShapeRecord& shape : record->shapes) {
        const ContestantRecord* here = find(shape, identity(*contestant));
        if (here == nullptr || here->to_cublaslt.median == 0) continue;
        const Ratio& ratio = here->to_cublaslt;
        if (record == &suite.burst) burst.push_back(ratio);
        if (any && ratio.median >= summary.worst.median) continue;
        any = true;
        summary.worst = ratio;
        summary.worst_shape = shape.shape;
        summary.worst_mode = record->mode;
      }
    }
    if (!any) continue;
    summary.burst_shapes = burst.size();
    if (!burst.empty()) summary.geometric_mean = geometric_mean(burst);
    summaries.push_back(summary);
  }
  return summaries;
}

std::string human_table(const SuiteRecord& suite) {
  std::string text = human_origin(suite.burst) + '\n';
  text += fmt::format("  {:<{}}  {:>10}  {:>8}  {:>7}  {:<24}  {}\n\n", "", kEntryWidth, "median", "TFLOP/s",
                      "ceiling", "speed / cuBLASLt", "verdict");
  for (const ContestantRecord* contestant : contestants_of(suite)) text += block(suite, *contestant);

  const std::vector<SuiteSummary> summaries = summarize(suite);
  if (summaries.empty()) return text + "cuBLASLt did not run, so there are no ratios and no means\n";
  text += fmt::format("  {:<{}}  {:<24}  {}\n", "speed / cuBLASLt", kEntryWidth, "geometric mean", "worst");
  for (const SuiteSummary& summary : summaries) text += summary_line(summary, suite.burst.shapes.size());
  text +=
      "  the mean is over the shapes in burst mode, each of which counts once; the worst is over both "
      "modes\n";
  const bool few =
      std::any_of(suite.burst.shapes.begin(), suite.burst.shapes.end(),
                  [](const ShapeRecord& s) { return s.contestants.front().samples_us.size() < kMinRounds; });
  if (few)
    text += fmt::format("  a shape has fewer than {} rounds: no 95 % interval, no verdict\n", kMinRounds);
  return text;
}

}  // namespace harness
