#include "harness/base/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace harness {
namespace {

constexpr int kHopper = 90;

int parse_dimension(const std::string& text, const std::string& whole) {
  long long value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = status != std::errc::invalid_argument && end == text.data() + text.size();
  if (!is_number)
    throw Error(fmt::format(
        "'{}' is not a size: write MxNxK, for example 4096x4096x4096, or one number for a cube", whole));
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
    return {size, size, size};
  }
  if (parts.size() != 3)
    throw Error(fmt::format(
        "'{}' is not a size: write MxNxK, for example 4096x4096x4096, or one number for a cube", text));
  return {parse_dimension(parts[0], text), parse_dimension(parts[1], text), parse_dimension(parts[2], text)};
}

std::string to_string(const gemm::Shape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

void check_contract(const gemm::Step& step, const gemm::Shape& shape) {
  check_multiple(step, "M", shape.m, step.contract.m_multiple);
  check_multiple(step, "N", shape.n, step.contract.n_multiple);
  check_multiple(step, "K", shape.k, step.contract.k_multiple);
}

std::string step_problem(const gemm::Step& step, const DeviceInfo& device) {
  // What is special to sm_90a exists in no other architecture, newer ones included.
  if (step.min_sm >= kHopper && device.compute_capability != kHopper)
    return fmt::format(
        "step {} needs a Hopper GPU: its instructions exist in compute capability 9.0 only, and {} has {}; "
        "tools/run --backend emulator runs it on any machine",
        step.name, device.name, compute_capability(device));
  if (device.compute_capability < step.min_sm)
    return fmt::format("step {} needs compute capability {}.{} or newer, but {} has {}", step.name,
                       step.min_sm / 10, step.min_sm % 10, device.name, compute_capability(device));
  return "";
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
