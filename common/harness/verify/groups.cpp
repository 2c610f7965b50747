#include "harness/verify/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {
namespace {

constexpr int kMostGroups = 65536;

constexpr std::pair<const char*, GroupSizes> kDistributions[] = {{"equal", GroupSizes::kEqual},
                                                                 {"uniform", GroupSizes::kUniform},
                                                                 {"zipf", GroupSizes::kZipf},
                                                                 {"empty", GroupSizes::kEmpty},
                                                                 {"one", GroupSizes::kOne}};

GroupSizes parse_distribution(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [text, distribution] : kDistributions) {
    if (name == text) return distribution;
    known.emplace_back(text);
  }
  const std::string nearest = nearest_match(name, known);
  throw Error(fmt::format("unknown distribution '{}'{} Known: {}", name,
                          nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest),
                          fmt::join(known, ", ")));
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

std::int64_t parse_number(const std::string& text, const std::string& whole) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status == std::errc::invalid_argument || end != text.data() + text.size())
    throw Error(
        fmt::format("'{}' does not describe groups: write their sizes, for example 300,0,7, or a number and "
                    "a distribution, for example 40:zipf",
                    whole));
  if (status == std::errc::result_out_of_range)
    throw Error(fmt::format("the number {} in {} is too large", text, whole));
  return value;
}

/// Whole numbers proportional to the weights whose sum is `rows`: rounded down, and the largest remainders
/// get one more.
std::vector<std::int64_t> apportion(const std::vector<double>& weights, int rows) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> sizes;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = rows;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = rows * (weights[i] / sum);
    sizes.push_back(std::min(left, static_cast<std::int64_t>(share)));
    left -= sizes.back();
    if (weights[i] > 0) remainders.emplace_back(static_cast<double>(sizes.back()) - share, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left) ++sizes[remainders[i].second];
  return sizes;
}

}  // namespace

std::vector<std::int64_t> draw_groups(int groups, int rows, GroupSizes distribution, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(groups);
  const std::uint64_t key = mix64(seed ^ 0x67726f757073u);
  // A random order, for what belongs to some of the groups only.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random_bits(key, i) % i]);
  std::vector<double> weights(count, distribution == GroupSizes::kOne ? 0.0 : 1.0);
  if (distribution == GroupSizes::kOne) weights[order.front()] = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const double uniform = static_cast<double>((random_bits(~key, i) >> 12) + 1) * 0x1p-52;
    if (distribution == GroupSizes::kUniform || distribution == GroupSizes::kEmpty) weights[i] = uniform;
    if (distribution == GroupSizes::kZipf) weights[order[i]] = 1.0 / static_cast<double>(i + 1);
  }
  if (distribution == GroupSizes::kEmpty) {
    for (std::size_t i = 0; i < count / 2; ++i) weights[order[i]] = 0;
  }
  return apportion(weights, rows);
}

std::vector<gemm::GroupRows> place_groups(const std::vector<std::int64_t>& sizes, int guard_rows, int m) {
  std::vector<gemm::GroupRows> groups;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      throw Error(fmt::format("group {} has {} rows: a group must have at least 0", i, sizes[i]));
    if (sizes[i] > kMaxDimension || row + sizes[i] > kMaxDimension)
      throw Error(
          fmt::format("group {} ends after row {}: all groups together may have at most that many rows", i,
                      kMaxDimension));
    if (i > 0) row += guard_rows;
    groups.push_back({static_cast<int>(row), static_cast<int>(row + sizes[i])});
    row += sizes[i];
  }
  if (row != m)
    throw Error(
        fmt::format("the groups have {} rows{}, but M is {}: M must be the number of rows of all groups", row,
                    guard_rows > 0 ? " with the guard rows between them" : "", m));
  return groups;
}

std::vector<gemm::GroupRows> place_masked_groups(const std::vector<std::int64_t>& sizes, int capacity,
                                                 int m) {
  std::vector<gemm::GroupRows> groups;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > capacity)
      throw Error(fmt::format("group {} has {} rows, but room for {}: a count must be from 0 to the capacity",
                              i, sizes[i], capacity));
    const int begin = static_cast<int>(i) * capacity;
    groups.push_back({begin, begin + static_cast<int>(sizes[i])});
  }
  const std::int64_t rows = static_cast<std::int64_t>(sizes.size()) * capacity;
  if (rows != m)
    throw Error(
        fmt::format("{} groups have room for {} rows each, which is {} rows in all, but M is {}: M must be "
                    "the number of rows for which there is room",
                    sizes.size(), capacity, rows, m));
  return groups;
}

int parse_capacity(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return 0;
  const std::int64_t capacity = parse_number(text.substr(slash + 1), text);
  if (capacity < 1 || capacity > kMaxDimension)
    throw Error(fmt::format("the capacity in {} must be from 1 to {}", text, kMaxDimension));
  return static_cast<int>(capacity);
}

namespace {

/// What --groups says of groups with a capacity.
std::vector<gemm::GroupRows> parse_masked_groups(const std::string& text, int m) {
  const int capacity = parse_capacity(text);
  const std::string before = text.substr(0, text.find('/'));
  if (before.find('+') != std::string::npos)
    throw Error(
        fmt::format("{} gives guard rows and a capacity: the rows that a group leaves empty are guarded "
                    "anyway, so leave out the +",
                    text));
  const std::vector<std::string> parts = split_at(before, ':');
  std::vector<std::int64_t> sizes;
  if (parts.size() == 1) {
    for (const std::string& size : split_at(parts[0], ',')) sizes.push_back(parse_number(size, text));
    return place_masked_groups(sizes, capacity, m);
  }
  const std::int64_t groups = parse_number(parts[0], text);
  if (groups < 1 || groups > kMostGroups)
    throw Error(fmt::format("the number of groups in {} must be from 1 to {}", text, kMostGroups));
  const std::int64_t seed = parts.size() > 2 ? parse_number(parts[2], text) : 1;
  const std::int64_t rows = parts.size() > 3 ? parse_number(parts[3], text) : (m + 1) / 2;
  if (parts.size() > 4 || seed < 0 || rows < 0 || rows > kMaxDimension)
    throw Error(
        fmt::format("'{}' does not describe groups: write a number, a distribution, a seed, the number of "
                    "all rows and the capacity, for example 40:zipf:3:500/64",
                    text));
  sizes = draw_groups(static_cast<int>(groups), static_cast<int>(rows), parse_distribution(parts[1]),
                      static_cast<std::uint64_t>(seed));
  for (std::int64_t& size : sizes) size = std::min<std::int64_t>(size, capacity);
  return place_masked_groups(sizes, capacity, m);
}

}  // namespace

std::uint64_t parse_placement(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return 0;
  const bool own_sizes = text.back() == 'x';
  const std::int64_t seed = parse_number(text.substr(at + 1, text.size() - at - (own_sizes ? 2 : 1)), text);
  if (seed < 1) throw Error(fmt::format("the seed after the @ in {} must be at least 1", text));
  if (text.find('/') != std::string::npos)
    throw Error(fmt::format("{} gives a placement and a capacity: leave out the @ or the /", text));
  return static_cast<std::uint64_t>(seed) | (own_sizes ? kOwnSizesPlaced : 0);
}

std::vector<gemm::GroupRows> parse_groups(const std::string& whole, int m) {
  if (whole.empty()) return {};
  parse_placement(whole);
  const std::string text = whole.substr(0, whole.find('@'));
  if (text.find('/') != std::string::npos) return parse_masked_groups(text, m);
  const std::size_t plus = std::min(text.find('+'), text.size());
  const std::int64_t guards = plus < text.size() ? parse_number(text.substr(plus + 1), text) : 0;
  if (guards < 0 || guards > kMaxDimension)
    throw Error(fmt::format("the number of guard rows in {} must be from 0 to {}", text, kMaxDimension));
  const auto guard_rows = static_cast<int>(guards);
  const std::vector<std::string> parts = split_at(text.substr(0, plus), ':');
  std::vector<std::int64_t> sizes;
  if (parts.size() == 1) {
    for (const std::string& size : split_at(parts[0], ',')) sizes.push_back(parse_number(size, text));
    return place_groups(sizes, guard_rows, m);
  }
  const std::int64_t groups = parse_number(parts[0], text);
  if (groups < 1 || groups > kMostGroups)
    throw Error(fmt::format("the number of groups in {} must be from 1 to {}", text, kMostGroups));
  const std::int64_t seed = parts.size() == 3 ? parse_number(parts[2], text) : 1;
  if (parts.size() > 3 || seed < 0)
    throw Error(fmt::format(
        "'{}' does not describe groups: write a number, a distribution and a seed, for example 40:zipf:3",
        text));
  const std::int64_t rows = m - (groups - 1) * guard_rows;
  if (rows < 0)
    throw Error(fmt::format("{} groups with {} guard rows between them do not fit into {} rows", groups,
                            guard_rows, m));
  sizes = draw_groups(static_cast<int>(groups), static_cast<int>(rows), parse_distribution(parts[1]),
                      static_cast<std::uint64_t>(seed));
  return place_groups(sizes, guard_rows, m);
}

std::vector<gemm::GroupRows> with_others_counts(const std::vector<gemm::GroupRows>& groups,
                                                std::uint64_t places) {
  std::vector<gemm::GroupRows> others = groups;
  for (std::size_t i = 0; i < groups.size(); ++i)
    others[i].end = others[i].begin + groups[(i + places) % groups.size()].count();
  return others;
}

int unchecked_count(int count, int capacity) {
  if (count == 0) return -1000;  // so far below 0 that not even a number of tiles, rounded up, is 0
  return count == capacity ? count + 1 : count;
}

std::string to_string(const std::vector<gemm::GroupRows>& groups) {
  if (groups.empty()) return "no groups";
  const auto fewer = [](const gemm::GroupRows& one, const gemm::GroupRows& other) {
    return one.count() < other.count();
  };
  const auto [least, most] = std::minmax_element(groups.begin(), groups.end(), fewer);
  const auto empty = std::count_if(groups.begin(), groups.end(),
                                   [](const gemm::GroupRows& one) { return one.count() == 0; });
  return fmt::format("{} group{} of {} to {} rows{}", groups.size(), groups.size() == 1 ? "" : "s",
                     least->count(), most->count(),
                     empty > 0 ? fmt::format(", {} of them empty", empty) : "");
}

}  // namespace harness
