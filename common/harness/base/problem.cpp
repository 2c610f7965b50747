#include "harness/base/problem.h"
#include "gemm/problem/check_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

namespace harness {
namespace {

constexpr const char* kDigits = "0123456789";

/// How many digits the word begins with.
std::size_t leading_digits(std::string_view word) {
  return std::min(word.find_first_not_of(kDigits), word.size());
}

/// Of "01_naive": 1.
int number_of(const gemm::Step& step) {
  int number = -1;
  std::from_chars(step.name.data(), step.name.data() + leading_digits(step.name), number);
  return number;
}

int parse_dimension(const std::string& text, const std::string& whole) {
  long long value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = status != std::errc::invalid_argument && end == text.data() + text.size();
  if (!is_number)
    throw Error(fmt::format(
        "'{}' is not a size: write MxNxK, for example 4096x4096x4096, or 4096 for that cube", whole));
  if (status == std::errc::result_out_of_range || value > kMaxDimension)
    throw Error(fmt::format("the size {} in {} is too large: the largest is {}", text, whole, kMaxDimension));
  if (value < 1) throw Error(fmt::format("the size {} in {} must be at least 1", text, whole));
  return static_cast<int>(value);
}

/// By hand, because Debian 12 packages no C++ library for it; the scripts ask Python's difflib.
int edit_distance(std::string_view from, std::string_view to) {
  std::vector<int> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const int substitute = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

/// "unknown step 'x'; did you mean 'y'? known: a, b, c"
std::string unknown(const std::string& what, std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_match(name, known);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("unknown {} '{}'{} Known: {}", what, name, hint.empty() ? "." : hint,
                     fmt::join(known, ", "));
}

void check_multiple(const gemm::Step& step, const char* dimension, int value, int multiple) {
  if (value % multiple == 0) return;
  const int below = value / multiple * multiple;
  const std::string suggestion =
      below > 0 ? fmt::format("{} or {}", below, below + multiple) : fmt::format("{}", multiple);
  throw Error(fmt::format(
      "step {} needs {} to be a multiple of {} (rows are moved in 16-byte vectors), but {} is {}; try {}",
      step.name, dimension, multiple, dimension, value, suggestion));
}

}  // namespace

bool is_shape(std::string_view word) {
  constexpr std::size_t kCube = 3;
  if (leading_digits(word) >= kCube) return true;
  return word.find_first_not_of("0123456789xX+-.") == std::string_view::npos &&
         word.find_first_of("xX") != std::string_view::npos;
}

gemm::Shape parse_shape(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == 'x' || letter == 'X')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  if (parts.size() == 1) {
    const int size = parse_dimension(parts[0], text);
    if (!is_shape(text))
      throw Error(
          fmt::format("'{}' is not a size: one or two digits name a step, so write that cube as {}x{}x{}",
                      text, size, size, size));
    return {size, size, size};
  }
  if (parts.size() != 3)
    throw Error(fmt::format(
        "'{}' is not a size: write MxNxK, for example 4096x4096x4096, or 4096 for that cube", text));
  return {parse_dimension(parts[0], text), parse_dimension(parts[1], text), parse_dimension(parts[2], text)};
}

std::string to_string(const gemm::Shape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

void check_contract(const gemm::Step& step, const gemm::Shape& shape) {
  if (step.takes_ranks())
    throw Error(fmt::format("step {} is about several GPUs and not about one product; tools/run {} runs it",
                            step.name, step.name.substr(0, 2)));
  const gemm::Types types = step.variants.empty() ? gemm::Types{} : step.variants.front().types;
  if (types.has_weights()) {
    const std::string rule = violated_weight_rule(shape, types.group);
    if (!rule.empty()) throw Error(fmt::format("step {}: {}", step.name, rule));
  }
  check_multiple(step, "M", shape.m, step.contract.m_multiple);
  check_multiple(step, "N", shape.n, step.contract.n_multiple);
  check_multiple(step, "K", shape.k, step.contract.k_multiple);
}

std::string step_problem(const gemm::Step& step, const DeviceInfo& device) {
  if (device.is_emulator || runs_on(step.architecture, device.compute_capability)) return "";
  if (step.architecture == gemm::Architecture::kSm80)
    return fmt::format("step {} needs compute capability 8.0 or newer, but {} has {}", step.name, device.name,
                       compute_capability(device));
  const bool hopper = step.architecture == gemm::Architecture::kSm90a;
  return fmt::format(
      "step {} needs a {} GPU: its instructions exist only in compute capability {}, but {} has {}; "
      "tools/run --backend emulator runs it on any machine",
      step.name, hopper ? "Hopper" : "Blackwell", hopper ? "9.0" : "10.0", device.name,
      compute_capability(device));
}

std::string record_wanted(const gemm::Step& step, const DeviceInfo& device) {
  if (device.is_emulator || step.architecture != gemm::Architecture::kSm100a) return "";
  const std::string number = step.name.substr(0, 2);
  return fmt::format(
      "step {} has never been recorded on a GPU: tools/run {} 4096 --time --json {}.json writes a record; "
      "please open an issue with it",
      step.name, number, number);
}

std::string compute_capability(const DeviceInfo& device) {
  return fmt::format("{}.{}", device.compute_capability / 10, device.compute_capability % 10);
}

std::string nearest_match(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  const auto limit = static_cast<int>(std::max(word.size(), best.size()) / 2);
  return best_distance <= limit ? best : "";
}

std::vector<const gemm::Step*> find_steps(const std::vector<const gemm::Step*>& steps,
                                          std::string_view word) {
  if (word == "all") return steps;
  const std::size_t dash = word.find('-');
  const std::string_view first = word.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : word.substr(dash + 1);
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.size() <= 2 && leading_digits(text) == text.size();
  };
  if (dash == std::string_view::npos || !is_number(first) || !is_number(last)) {
    try {
      return {&find_step(steps, word)};
    } catch (const Error& error) {
      if (!is_number(word)) throw;
      throw Error(fmt::format("{} (a cube of that size is {}x{}x{})", error.what(), word, word, word));
    }
  }
  const int from = std::stoi(std::string(first));
  const int to = std::stoi(std::string(last));
  if (from > to) throw Error(fmt::format("the range {} goes backwards: write {}-{}", word, last, first));
  std::vector<const gemm::Step*> found;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(found), [from, to](const gemm::Step* step) {
    return from <= number_of(*step) && number_of(*step) <= to;
  });
  if (found.empty())
    throw Error(fmt::format("there is no step from {} to {}; the steps are {} to {}", first, last,
                            steps.front()->name, steps.back()->name));
  return found;
}

const gemm::Step& find_step(const std::vector<const gemm::Step*>& steps, std::string_view name) {
  std::vector<std::string> known;
  for (const gemm::Step* step : steps) {
    const auto underscore = step->name.find('_');
    const std::string number = step->name.substr(0, underscore);
    const std::string title = step->name.substr(underscore + 1);
    const std::string padded = (name.size() == 1 ? "0" : "") + std::string(name);
    if (name == step->name || padded == number || name == title) return *step;
    known.push_back(step->name);
  }
  throw Error(unknown("step", name, known));
}

const gemm::Variant& find_variant(const gemm::Step& step, std::string_view name) {
  if (name.empty()) return step.variants.front();
  std::vector<std::string> known;
  for (const gemm::Variant& variant : step.variants) {
    if (variant.name == name) return variant;
    known.push_back(variant.name);
  }
  throw Error(unknown(fmt::format("variant of {}", step.name), name, known));
}

std::string human_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace harness
