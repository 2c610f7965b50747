#include "harness/record/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "harness/base/problem.h"

namespace harness {
namespace {

constexpr int kSchema = 1;

template <typename Enum, std::size_t kCount>
using Names = std::array<std::pair<Enum, const char*>, kCount>;

constexpr Names<TimingMode, 2> kModes{{{TimingMode::kBurst, "burst"}, {TimingMode::kSustained, "sustained"}}};
constexpr Names<Verdict, 3> kVerdicts{
    {{Verdict::kFaster, "FASTER"}, {Verdict::kSlower, "SLOWER"}, {Verdict::kAmbiguous, "AMBIGUOUS"}}};
constexpr Names<ContestantKind, 3> kKinds{{{ContestantKind::kStep, "step"},
                                           {ContestantKind::kBaseline, "baseline"},
                                           {ContestantKind::kCeiling, "ceiling"}}};

template <typename Enum, std::size_t kCount>
const char* name_of(const Names<Enum, kCount>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  throw std::invalid_argument("an enumerator without a name");
}

/// A JSON value that knows where in the record it stands, so that an error can say so.
class Field {
 public:
  Field(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Field operator[](const char* key) const {
    if (!json_.is_object()) throw wrong_type("an object");
    const std::string path = path_.empty() ? key : fmt::format("{}.{}", path_, key);
    const auto found = json_.find(key);
    if (found == json_.end()) throw Error(fmt::format("the record has no field '{}'", path));
    return {*found, path};
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }

  std::vector<Field> elements() const {
    if (!json_.is_array()) throw wrong_type("an array");
    std::vector<Field> fields;
    for (std::size_t i = 0; i < json_.size(); ++i)
      fields.emplace_back(json_[i], fmt::format("{}[{}]", path_, i));
    return fields;
  }

  void get(std::string& value) const {
    if (!json_.is_string()) throw wrong_type("a string");
    value = json_.get<std::string>();
  }
  void get(bool& value) const {
    if (!json_.is_boolean()) throw wrong_type("true or false");
    value = json_.get<bool>();
  }
  void get(double& value) const {
    if (!json_.is_number()) throw wrong_type("a number");
    value = json_.get<double>();
  }
  void get(int& value) const { get_integer(value); }
  void get(std::int64_t& value) const { get_integer(value); }
  void get(std::uint64_t& value) const { get_integer(value); }

  template <typename Value>
  void get(std::vector<Value>& values) const {
    for (const Field& field : elements()) field.get(values.emplace_back());
  }

  template <typename Enum, std::size_t kCount>
  void get(Enum& value, const Names<Enum, kCount>& names) const {
    std::string text;
    get(text);
    std::vector<std::string> known;
    for (const auto& [candidate, name] : names) {
      if (text == name) {
        value = candidate;
        return;
      }
      known.emplace_back(name);
    }
    throw Error(fmt::format("the record's field '{}' is '{}'; it must be one of {}", path_, text,
                            fmt::join(known, ", ")));
  }

 private:
  template <typename Integer>
  void get_integer(Integer& value) const {
    const std::string wanted =
        fmt::format("a whole number from {} to {}", std::numeric_limits<Integer>::min(),
                    std::numeric_limits<Integer>::max());
    if (!json_.is_number_integer()) throw wrong_type(wanted);
    const bool fits = json_.is_number_unsigned() ? std::in_range<Integer>(json_.get<std::uint64_t>())
                                                 : std::in_range<Integer>(json_.get<std::int64_t>());
    if (!fits) throw wrong_type(wanted);
    value = json_.get<Integer>();
  }

  Error wrong_type(const std::string& wanted) const {
    return Error(fmt::format(
        "the record's field '{}' must be {}, but it is {}", path_.empty() ? "(top)" : path_, wanted,
        json_.is_null() ? "null" : fmt::format("the {} {}", json_.type_name(), json_.dump())));
  }

  const nlohmann::json& json_;
  std::string path_;
};

/// Writing and reading share one list of fields: `visit(key, member)` is called for each.
template <typename Info, typename Visit>
void visit_device(Info& device, const Visit& visit) {
  visit("name", device.name);
  visit("is_emulator", device.is_emulator);
  visit("compute_capability", device.compute_capability);
  visit("sm_count", device.sm_count);
  visit("max_threads_per_sm", device.max_threads_per_sm);
  visit("max_ctas_per_sm", device.max_ctas_per_sm);
  visit("registers_per_sm", device.registers_per_sm);
  visit("shared_bytes_per_sm", device.shared_bytes_per_sm);
  visit("shared_bytes_per_cta", device.shared_bytes_per_cta);
  visit("reserved_shared_bytes", device.reserved_shared_bytes);
  visit("l2_bytes", device.l2_bytes);
  visit("memory_bytes", device.memory_bytes);
  visit("memory_free_bytes", device.memory_free_bytes);
  visit("clock_hz", device.clock_hz);
  visit("memory_bytes_per_second", device.memory_bytes_per_second);
  visit("driver_version", device.driver_version);
  visit("runtime_version", device.runtime_version);
}

template <typename Info, typename Visit>
void visit_conditions(Info& conditions, const Visit& visit) {
  visit("sm_clock_mhz_min", conditions.sm_clock_mhz_min);
  visit("sm_clock_mhz_median", conditions.sm_clock_mhz_median);
  visit("sm_clock_mhz_max", conditions.sm_clock_mhz_max);
  visit("power_w_median", conditions.power_w_median);
  visit("power_w_max", conditions.power_w_max);
  visit("temperature_c_max", conditions.temperature_c_max);
  visit("throttle_reasons", conditions.throttle_reasons);
}

nlohmann::json contestant_to_json(const ContestantRecord& contestant) {
  nlohmann::json json = {{"name", contestant.name},
                         {"variant", contestant.variant},
                         {"kind", name_of(kKinds, contestant.kind)},
                         {"median_us", contestant.median_us},
                         {"q1_us", contestant.q1_us},
                         {"q3_us", contestant.q3_us},
                         {"tflops", contestant.tflops},
                         {"to_cublaslt", to_json(contestant.to_cublaslt)},
                         {"ceiling_share", contestant.ceiling_share},
                         {"verdict", to_string(contestant.verdict)},
                         {"samples_us", contestant.samples_us}};
  if (!contestant.chosen.empty()) json["choice"] = {{"variant", contestant.chosen}, {"why", contestant.why}};
  return json;
}

ContestantRecord contestant_from_json(const Field& json) {
  ContestantRecord contestant;
  json["name"].get(contestant.name);
  json["variant"].get(contestant.variant);
  json["kind"].get(contestant.kind, kKinds);
  json["median_us"].get(contestant.median_us);
  json["q1_us"].get(contestant.q1_us);
  json["q3_us"].get(contestant.q3_us);
  json["tflops"].get(contestant.tflops);
  json["to_cublaslt"]["median"].get(contestant.to_cublaslt.median);
  json["to_cublaslt"]["low"].get(contestant.to_cublaslt.low);
  json["to_cublaslt"]["high"].get(contestant.to_cublaslt.high);
  json["ceiling_share"].get(contestant.ceiling_share);
  json["verdict"].get(contestant.verdict, kVerdicts);
  json["samples_us"].get(contestant.samples_us);
  if (json.has("choice")) {
    json["choice"]["variant"].get(contestant.chosen);
    json["choice"]["why"].get(contestant.why);
  }
  return contestant;
}

nlohmann::json shape_to_json(const ShapeRecord& shape) {
  nlohmann::json contestants = nlohmann::json::array();
  for (const ContestantRecord& contestant : shape.contestants)
    contestants.push_back(contestant_to_json(contestant));
  return {{"m", shape.shape.m},
          {"n", shape.shape.n},
          {"k", shape.shape.k},
          {"rotated_buffers", shape.rotated_buffers},
          {"conditions", to_json(shape.conditions)},
          {"contestants", contestants}};
}

ShapeRecord shape_from_json(const Field& json) {
  ShapeRecord shape;
  json["m"].get(shape.shape.m);
  json["n"].get(shape.shape.n);
  json["k"].get(shape.shape.k);
  json["rotated_buffers"].get(shape.rotated_buffers);
  const Field conditions = json["conditions"];
  visit_conditions(shape.conditions, [&](const char* key, auto& value) { conditions[key].get(value); });
  for (const Field& contestant : json["contestants"].elements())
    shape.contestants.push_back(contestant_from_json(contestant));
  return shape;
}

const ContestantRecord* find_if(const ShapeRecord& shape, bool (*predicate)(const ContestantRecord&)) {
  const auto found = std::find_if(shape.contestants.begin(), shape.contestants.end(), predicate);
  return found == shape.contestants.end() ? nullptr : &*found;
}

bool is_reference(const ContestantRecord& contestant) {
  return contestant.name == kReferenceContestant;
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

std::string shape_table(const ShapeRecord& shape) {
  const ContestantRecord* reference = find_if(shape, is_reference);
  const ContestantRecord* ceiling = find_if(shape, is_ceiling);
  std::size_t name_width = 10;
  std::size_t variant_width = 7;
  for (const ContestantRecord& contestant : shape.contestants) {
    name_width = std::max(name_width, contestant.name.size());
    variant_width = std::max(variant_width, short_variant(contestant).size());
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
                                   name_width, short_variant(contestant), variant_width,
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

const char* to_string(TimingMode mode) {
  return name_of(kModes, mode);
}

const char* to_string(Verdict verdict) {
  return name_of(kVerdicts, verdict);
}

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

double quantile(std::vector<double> samples, double p) {
  if (samples.empty()) throw std::invalid_argument("a quantile needs at least one sample");
  std::sort(samples.begin(), samples.end());
  const double position = p * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Ratio median_interval(std::vector<double> samples) {
  constexpr double kConfidence = 0.95;
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  Ratio result{.median = quantile(samples, 0.5), .low = samples.front(), .high = samples.back()};
  // In logarithms, because 2^-n leaves the range of binary64 at a thousand samples.
  const double log_total = static_cast<double>(n) * std::log(2.0);
  double log_binomial = 0;  // of n over i
  double tail = 0;          // P(Bin(n, 1/2) < r)
  for (std::size_t r = 1; 2 * r <= n; ++r) {
    tail += std::exp(log_binomial - log_total);  // i = r - 1
    log_binomial += std::log(static_cast<double>(n - r + 1)) - std::log(static_cast<double>(r));
    if (1 - 2 * tail < kConfidence) break;
    result.low = samples[r - 1];
    result.high = samples[n - r];
  }
  return result;
}

Verdict verdict_of(const Ratio& ratio, std::size_t samples) {
  if (samples < kMinRounds) return Verdict::kAmbiguous;
  if (ratio.low > 1) return Verdict::kFaster;
  return ratio.high < 1 ? Verdict::kSlower : Verdict::kAmbiguous;
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

nlohmann::json to_json(const Ratio& ratio) {
  return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}};
}

nlohmann::json to_json(const Conditions& conditions) {
  nlohmann::json json;
  visit_conditions(conditions, [&json](const char* key, const auto& value) { json[key] = value; });
  return json;
}

nlohmann::json to_json(const Record& record) {
  nlohmann::json device;
  visit_device(record.device, [&](const char* key, const auto& value) { device[key] = value; });
  nlohmann::json shapes = nlohmann::json::array();
  for (const ShapeRecord& shape : record.shapes) shapes.push_back(shape_to_json(shape));
  return {{"schema", kSchema},
          {"device", device},
          {"cublas_version", record.cublas_version},
          {"commit", record.commit},
          {"date", record.date},
          {"seed", record.seed},
          {"pattern", record.pattern},
          {"mode", to_string(record.mode)},
          {"idle_ms", record.idle_ms},
          {"rounds", record.rounds},
          {"shapes", shapes}};
}

Record record_from_json(const nlohmann::json& json) {
  const Field top(json, "");
  int schema = 0;
  top["schema"].get(schema);
  if (schema != kSchema)
    throw Error(fmt::format("the record has schema {}; this program reads schema {}", schema, kSchema));
  Record record;
  const Field device = top["device"];
  visit_device(record.device, [&](const char* key, auto& value) { device[key].get(value); });
  top["cublas_version"].get(record.cublas_version);
  top["commit"].get(record.commit);
  top["date"].get(record.date);
  top["seed"].get(record.seed);
  top["pattern"].get(record.pattern);
  top["mode"].get(record.mode, kModes);
  top["idle_ms"].get(record.idle_ms);
  top["rounds"].get(record.rounds);
  for (const Field& shape : top["shapes"].elements()) record.shapes.push_back(shape_from_json(shape));
  return record;
}

std::string human_table(const Record& record) {
  std::string text = human_origin(record);
  const std::string mode =
      record.mode == TimingMode::kBurst
          ? fmt::format("burst ({:g} ms idle before each launch: the clock is up)", record.idle_ms)
          : std::string("sustained (back to back: the power limit decides)");
  for (const ShapeRecord& shape : record.shapes) {
    const std::size_t rounds = shape.contestants.empty() ? 0 : shape.contestants.front().samples_us.size();
    text += fmt::format("\n{}, {}\n{}", to_string(shape.shape), mode, shape_table(shape));
    text += fmt::format("  {} rounds, {} inputs with seed {}, {} operand set{} in rotation\n", rounds,
                        record.pattern, record.seed, shape.rotated_buffers,
                        shape.rotated_buffers == 1 ? "" : "s");
    text += fmt::format("  {}\n", human_conditions(shape.conditions));
    if (find_if(shape, is_reference) == nullptr) {
      text += "  cuBLASLt did not run, so there are no ratios and no verdicts\n";
    } else if (rounds < kMinRounds) {
      text +=
          fmt::format("  fewer than {} rounds: no 95 % interval, no verdict (the ratios show the extremes)\n",
                      kMinRounds);
    }
  }
  return text;
}

}  // namespace harness
