#include "harness/verify/types/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "gemm/problem/weights.h"
#include "harness/base/parallel.h"

namespace harness {
namespace {

using gemm::Type;

constexpr std::uint64_t kScaleKey = 0x5ca1e5u;
constexpr std::uint64_t kZeroKey = 0x2e105u;

/// The zero point of row n and of a group of K as it is stored: -(z + 8) / 64.
gemm::bf16 stored_zero_point(const TypedRules& rules, int n, int group) {
  const std::uint64_t random =
      random_bits(rules.b.key ^ kZeroKey, static_cast<std::uint64_t>(gemm::offset(group, n, rules.b.rows)));
  if (rules.b.pattern == Pattern::kSpecial && random >> 58 == 0) return {0x7fff};
  return gemm::to_bf16(-static_cast<float>(random % 16) / 64);
}

/// z, in the units of a weight: -8 to 7.
float zero_point(gemm::bf16 stored) {
  return -64 * gemm::to_float(stored) - 8;
}
float zero_point(const TypedRules& rules, int n, int group) {
  return rules.types.zero_points ? zero_point(stored_zero_point(rules, n, group)) : 0;
}

std::size_t packed_bytes(const TypedRules& rules) {
  return static_cast<std::size_t>(gemm::offset(rules.b.rows, 0, rules.b.columns)) *
         static_cast<std::size_t>(gemm::bits_of(rules.types.b)) / 8;
}

/// The weight at (n, k) of packed ones.
float weight_at(const std::vector<std::uint8_t>& packed, const TypedRules& rules, int n, int k) {
  const Type type = rules.types.b;
  const gemm::WeightPlace place = gemm::weight_place(type, rules.b.rows, n, k);
  const std::uint32_t bits = packed[static_cast<std::size_t>(place.byte)] >> place.shift;
  return decode(type, gemm::stored_weight(type, bits));  // which is its own inverse
}

/// What a broken kernel does with weights and scales.
struct Misreading {
  std::string text;
  std::function<double(int n, int k)> weight;  // times its scale
};

/// A work tile that begins in the middle of its range of K goes on at the range's beginning, where it must:
/// what happens if some of what it loads goes on behind the range's end instead; or "".
/// `part(sample, a, b, s)`: group a of A times group b of the weights, with scale s; 0 behind K.
std::string explain_wrap(int groups, std::size_t samples,
                         const std::function<double(std::size_t, int, int, int)>& part,
                         const std::function<bool(std::size_t, double)>& is) {
  constexpr int kMostGroups = 40;
  if (groups < 2 || groups > kMostGroups) return "";
  struct Kind {
    bool a, b, scale;  // goes on behind the end
    const char* words;
    const char* right;
  };
  static constexpr Kind kKinds[] = {{true, true, false, "weights and activations", "scales"},
                                    {false, true, false, "weights", "activations and scales"},
                                    {true, false, false, "activations", "weights and scales"},
                                    {false, false, true, "scales", "weights and activations"},
                                    {true, true, true, "weights, activations and scales", ""}};
  for (const Kind& kind : kKinds) {
    // [sample][group that is due][group that comes]
    std::vector<std::vector<std::vector<double>>> parts(samples);
    std::vector<double> all(samples);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      for (int due = 0; due < groups; ++due) {
        auto& of_due = parts[sample].emplace_back();
        for (int comes = 0; comes <= groups; ++comes)
          of_due.push_back(
              part(sample, kind.a ? comes : due, kind.b ? comes : due, kind.scale ? comes : due));
        all[sample] += of_due[static_cast<std::size_t>(due)];
      }
    }
    for (int begin = 0; begin < groups; ++begin) {
      for (int start = begin + 1; start < groups; ++start) {
        for (int end = start + 1; end <= groups; ++end) {
          bool fits = true;
          for (std::size_t sample = 0; sample < samples && fits; ++sample) {
            double sum = all[sample];
            for (int due = begin; due < start; ++due) {
              const auto& of_due = parts[sample][static_cast<std::size_t>(due)];
              sum += of_due[static_cast<std::size_t>(std::min(end + due - begin, groups))] -
                     of_due[static_cast<std::size_t>(due)];
            }
            fits = is(sample, sum);
          }
          if (!fits) continue;
          const int last = end + start - begin - 1;
          return fmt::format(
              "  These are the sums in which groups {0} to {1} of K (the groups are 0 to {2}) use the {3} of "
              "groups {4} to {5}{6}. The work tile has groups {7} to {8} and begins with group {9}. After "
              "its last group it must continue with its first one, but the {3} continue past its end{10}.\n",
              begin, start - 1, groups - 1, kind.words, end, last,
              last >= groups ? ", which are zeros beyond K" : "", begin, end - 1, start,
              kind.right[0] == 0 ? std::string() : fmt::format("; the {} are right", kind.right));
        }
      }
    }
  }
  return "";
}

/// "0 to 2, 4 to 6 and 8": the bits that are set.
std::string bits_text(std::uint32_t bits) {
  std::vector<std::string> runs;
  for (int first = 0; first < 32; ++first) {
    if ((bits >> first & 1) == 0) continue;
    int last = first;
    while (last < 31 && (bits >> (last + 1) & 1) != 0) ++last;
    runs.push_back(first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
    first = last;
  }
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i];
  return text;
}

/// Some groups take the scale of the group behind or before them, the others their own: or "". A work tile
/// that begins in the middle of its range goes on from its end to its beginning.
/// `part(sample, group, s)`: the group's products with the scale of group s.
std::string explain_neighbours(int groups, std::size_t samples,
                               const std::function<double(std::size_t, int, int)>& part,
                               const std::function<bool(std::size_t, double)>& is) {
  constexpr int kMostGroups = 16;  // so many bits are tried
  constexpr std::size_t kFewestSamples = 6;
  if (groups < 3 || groups > kMostGroups || samples < kFewestSamples) return "";
  std::vector<std::vector<std::vector<double>>> parts(samples);  // [sample][group][scale]
  for (std::size_t sample = 0; sample < samples; ++sample) {
    for (int group = 0; group < groups; ++group) {
      auto& of_group = parts[sample].emplace_back();
      for (int scale = 0; scale < groups; ++scale) of_group.push_back(part(sample, group, scale));
    }
  }
  std::vector<int> neighbour(static_cast<std::size_t>(groups));
  const auto fits = [&](std::uint32_t set) {
    for (std::size_t sample = 0; sample < samples; ++sample) {
      double sum = 0;
      for (int group = 0; group < groups; ++group) {
        const auto at = static_cast<std::size_t>(group);
        sum += parts[sample][at][(set >> group & 1) != 0 ? static_cast<std::size_t>(neighbour[at]) : at];
      }
      if (!is(sample, sum)) return false;
    }
    return true;
  };
  for (const int step : {1, -1}) {
    // No range goes on at its beginning, or [begin, end) does.
    for (int begin = -1; begin < groups; ++begin) {
      for (int end = begin < 0 ? groups : begin + 2; end <= groups; ++end) {
        std::uint32_t own = 0;  // without a neighbour
        for (int group = 0; group < groups; ++group) {
          int next = group + step;
          if (begin >= 0 && step > 0 && group == end - 1) next = begin;
          if (begin >= 0 && step < 0 && group == begin) next = end - 1;
          if (next < 0 || next >= groups) own |= 1u << group;
          neighbour[static_cast<std::size_t>(group)] = std::clamp(next, 0, groups - 1);
        }
        const std::uint32_t around =
            begin < 0 ? 0 : 1u << (step > 0 ? end - 1 : begin);  // else it is that without a range
        for (std::uint32_t set = (1u << groups) - 1; set > 0; --set) {
          if ((set & own) != 0 || (set & around) != around || !fits(set)) continue;
          return fmt::format(
              "  These are the sums in which groups {} of K (the groups are 0 to {}) use the scale of the "
              "group {} them (group i uses that of group i {} 1{}) and the other groups use their own. A "
              "product needs the scale of its own group, not the scale of the group that is loaded or issued "
              "{} it.\n",
              bits_text(set), groups - 1, step > 0 ? "after" : "before", step > 0 ? '+' : '-',
              begin < 0
                  ? std::string()
                  : fmt::format(
                        "; the work tile has groups {} to {} and continues from its last group to its first",
                        begin, end - 1),
              step > 0 ? "after" : "before");
        }
        if (begin < 0) break;
      }
    }
  }
  return "";
}

}  // namespace

gemm::bf16 group_scale(const TypedRules& rules, int n, int group) {
  const std::uint64_t random =
      random_bits(rules.b.key ^ kScaleKey, static_cast<std::uint64_t>(gemm::offset(group, n, rules.b.rows)));
  // No infinity: it makes NaN of weights that are scaled one by one, and not of a group's sum.
  if (rules.b.pattern == Pattern::kSpecial && random % 64 < 2)
    return {(random & 1) != 0 ? std::uint16_t{0x7fff} : std::uint16_t{0}};
  if (is_exact(rules.b.pattern)) return gemm::to_bf16(static_cast<float>(1 << (random >> 62)) / 4);
  return gemm::to_bf16((1.0f + 2.0f * static_cast<float>(random >> 40) * 0x1p-24f) / 16);
}

std::vector<std::uint8_t> weight_input(const TypedRules& rules) {
  const Type type = rules.types.b;
  std::vector<std::uint8_t> packed(packed_bytes(rules));
  normal_quantiles();  // made before threads ask for it
  // Rows whose weights share bytes are of one block.
  parallel_for(rules.b.rows / gemm::kWeightRows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (int n = static_cast<int>(begin) * gemm::kWeightRows; n < static_cast<int>(end) * gemm::kWeightRows;
         ++n) {
      for (int k = 0; k < rules.b.columns; ++k) {
        const gemm::WeightPlace place = gemm::weight_place(type, rules.b.rows, n, k);
        packed[static_cast<std::size_t>(place.byte)] |= static_cast<std::uint8_t>(
            gemm::stored_weight(type, typed_bits(rules.b, type, n, k)) << place.shift);
      }
    }
  });
  return packed;
}

std::vector<std::uint8_t> scale_input(const TypedRules& rules) {
  const int groups = rules.b.columns / rules.types.group;
  const int lines = rules.types.scale_lines();
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(gemm::offset(groups * lines, 0, rules.b.rows)) *
                                   2);
  for (int group = 0; group < groups; ++group) {
    for (int n = 0; n < rules.b.rows; ++n) {
      put_bits(Type::kBf16, scales.data(), gemm::offset(group * lines, n, rules.b.rows),
               group_scale(rules, n, group).bits);
      if (lines > 1)
        put_bits(Type::kBf16, scales.data(), gemm::offset(group * lines + 1, n, rules.b.rows),
                 stored_zero_point(rules, n, group).bits);
    }
  }
  return scales;
}

std::vector<float> scaled_weights(const TypedImage& image, const TypedRules& rules) {
  const int k = rules.b.columns;
  const int lines = rules.types.scale_lines();
  const auto number = [&](int line, int n) {
    return gemm::bf16{static_cast<std::uint16_t>(
        bits_at(Type::kBf16, image.group_scales.data(), gemm::offset(line, n, rules.b.rows)))};
  };
  std::vector<float> values(static_cast<std::size_t>(gemm::offset(rules.b.rows, 0, k)));
  parallel_for(rules.b.rows, row_grain(k), [&](std::int64_t begin, std::int64_t end) {
    for (int n = static_cast<int>(begin); n < end; ++n) {
      for (int i = 0; i < k; ++i) {
        const int line = i / rules.types.group * lines;
        const float zero = lines > 1 ? zero_point(number(line + 1, n)) : 0;
        values[static_cast<std::size_t>(gemm::offset(n, i, k))] =
            (weight_at(image.b, rules, n, i) - zero) * gemm::to_float(number(line, n));
      }
    }
  });
  return values;
}

std::vector<std::uint8_t> wide_weights(const TypedRules& rules) {
  TypedImage image;
  image.b = weight_input(rules);
  image.group_scales = scale_input(rules);
  const std::vector<float> values = scaled_weights(image, rules);
  std::vector<std::uint8_t> wide(values.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    put_bits(rules.types.a, wide.data(), static_cast<std::int64_t>(i), encode(rules.types.a, values[i]));
  return wide;
}

std::string explain_weights(const TypedRules& rules, const std::vector<std::size_t>& samples,
                            const std::uint8_t* d) {
  if (samples.size() < 2 || !is_exact(rules.a.pattern)) return "";
  const gemm::Shape shape = rules.shape();
  const int group = rules.types.group;
  const int groups = shape.k / group;
  const std::vector<std::uint8_t> packed = weight_input(rules);
  const auto scale = [&](int n, int at) {
    return static_cast<double>(gemm::to_float(group_scale(rules, n, (at + groups) % groups)));
  };
  const auto integer = [&](int n, int k) { return static_cast<double>(weight_at(packed, rules, n, k)); };
  const auto weight = [&](int n, int k) {
    return integer(n, k) - static_cast<double>(zero_point(rules, n, k / group));
  };
  const auto bits_a = [&](int row, int k) {
    return static_cast<double>(decode(rules.types.a, typed_bits(rules.a, rules.types.a, row, k)));
  };
  const auto got = [&](std::size_t index) {
    return decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index)));
  };
  const auto stored = [&](double sum) {
    return decode(rules.types.d, encode(rules.types.d, static_cast<float>(sum)));
  };
  const auto row_of = [&](std::size_t index) {
    return static_cast<int>(index / static_cast<std::size_t>(shape.n));
  };
  const auto column_of = [&](std::size_t index) {
    return static_cast<int>(index % static_cast<std::size_t>(shape.n));
  };
  const double added = rules.types.b == Type::kInt4 ? 8 : 128;
  const auto with_weight = [&](auto&& of) {
    return [=](int n, int k) { return of(n, k) * scale(n, k / group); };
  };
  const auto with_scale = [&](auto&& of) {
    return [=](int n, int k) { return weight(n, k) * of(n, k / group); };
  };
  std::vector<Misreading> all{
      {"the sums without any scale: the scales of the groups are not applied", weight},
      {"the sums with the scale of the next group: the scale must change where the k-tiles of the next group "
       "begin",
       with_scale([&](int n, int at) { return scale(n, at + 1); })},
      {"the sums with the scale of the previous group: the scale must be read again when a group begins",
       with_scale([&](int n, int at) { return scale(n, at - 1); })},
      {"the sums with the scale of the first group: the scale must be read again when a group begins",
       with_scale([&](int n, int) { return scale(n, 0); })},
      {"the sums with one scale for both rows of a thread, that of the upper one",
       with_scale([&](int n, int at) { return scale(n & ~8, at); })},
      {"the sums with the scales of the rows 8 below or above: each of a thread's two rows has a scale of "
       "its own",
       with_scale([&](int n, int at) { return scale(n ^ 8, at); })},
      {"the sums with every scale applied twice",
       with_scale([&](int n, int at) { return scale(n, at) * scale(n, at); })},
      {fmt::format("the sums of weights that are {} too large: {} is added to the integers before they are "
                   "stored, so that none is negative, and it must be subtracted when they are widened",
                   added, added),
       with_weight([&](int n, int k) { return weight(n, k) + added; })},
      {"the sums of weights that have changed places with their neighbours along K: the lower half of a "
       "register holds the even k",
       with_weight([&](int n, int k) { return weight(n, k ^ 1); })},
      {"the sums of weights with rows r and r + 8 exchanged: registers 0 and 2 of a fragment hold row r, and "
       "registers 1 and 3 hold row r + 8",
       with_weight([&](int n, int k) { return weight(n ^ 8, k); })},
      {"the sums of weights with the two halves of each slab exchanged: registers 0 and 1 of a fragment hold "
       "the first 8 of a slab along K, and registers 2 and 3 hold the last 8",
       with_weight([&](int n, int k) { return weight(n, k ^ 8); })},
      {"the sums of weights with registers 1 and 2 exchanged: in a fragment, the rows come first and then K",
       with_weight([&](int n, int k) {
         const bool low = n % 16 / 8 != k % 16 / 8;
         return low ? weight(n ^ 8, k ^ 8) : weight(n, k);
       })},
      {"the sums in which all slabs of a k-tile use the weights of its first slab",
       with_weight([&](int n, int k) { return weight(n, k / 64 * 64 + k % 16); })},
      {"the sums in which both halves of a group use the weights of the first half",
       with_weight([&](int n, int k) { return weight(n, k / 128 * 128 + k % 64); })}};
  if (groups == 1) all.erase(all.begin() + 1, all.begin() + 4);
  if (rules.types.zero_points) {
    const auto with_zero = [&](auto&& of) {
      return [=, &rules](int n, int k) {
        return (integer(n, k) - static_cast<double>(zero_point(rules, n, of(k / group)))) *
               scale(n, k / group);
      };
    };
    all.push_back(
        {"the sums of weights without their zero points: 0 stands for zero in them", with_weight(integer)});
    for (const int step : {1, -1})
      all.push_back({fmt::format("the sums with the zero points of the {} group, and the scales of their own",
                                 step > 0 ? "next" : "previous"),
                     with_zero([=](int at) { return (at + step + groups) % groups; })});
    all.push_back({"the sums with one zero point for both rows of a thread, that of the upper one",
                   [&, integer](int n, int k) {
                     return (integer(n, k) - static_cast<double>(zero_point(rules, n & ~8, k / group))) *
                            scale(n, k / group);
                   }});
  }
  for (const Misreading& one : all) {
    const bool fits = std::all_of(samples.begin(), samples.end(), [&](const std::size_t index) {
      double sum = 0;
      for (int k = 0; k < shape.k; ++k) sum += bits_a(row_of(index), k) * one.weight(column_of(index), k);
      return stored(sum) == got(index);
    });
    if (fits) return fmt::format("  These are {}.\n", one.text);
  }
  // Accumulators that no group begins anew, in as many as three parts of K, one worker each.
  std::vector<std::vector<double>> whole;   // [sample][group]: what its weights give without a scale
  std::vector<std::vector<double>> scales;  // [sample][group]
  for (const std::size_t index : samples) {
    whole.emplace_back(static_cast<std::size_t>(groups), 0.0);
    scales.emplace_back();
    for (int k = 0; k < shape.k; ++k)
      whole.back()[static_cast<std::size_t>(k / group)] +=
          bits_a(row_of(index), k) * weight(column_of(index), k);
    for (int at = 0; at < groups; ++at) scales.back().push_back(scale(column_of(index), at));
  }
  for (int first = 0; first < groups; ++first) {
    for (int second = first; second < groups; ++second) {
      std::size_t sample = 0;
      const bool fits =
          groups > 1 && std::all_of(samples.begin(), samples.end(), [&](const std::size_t index) {
            double sum = 0;
            double accumulator = 0;
            for (int at = 0; at < groups; ++at) {
              if (at == first || at == second) accumulator = 0;
              accumulator += whole[sample][static_cast<std::size_t>(at)];
              sum += accumulator * scales[sample][static_cast<std::size_t>(at)];
            }
            ++sample;
            return stored(sum) == got(index);
          });
      if (fits)
        return "  These are the sums of accumulators that are not reset between groups: what is multiplied "
               "by a group's scale and added also contains the groups before it. The first multiplication of "
               "each group must overwrite the accumulators (scale-d 0).\n";
    }
  }
  std::string neighbours = explain_neighbours(
      groups, samples.size(),
      [&](std::size_t sample, int at, int of_scale) {
        return whole[sample][static_cast<std::size_t>(at)] *
               scales[sample][static_cast<std::size_t>(of_scale)];
      },
      [&](std::size_t sample, double sum) { return stored(sum) == got(samples[sample]); });
  if (!neighbours.empty()) return neighbours;
  // Groups that are missing, or there twice, one behind the other.
  std::vector<std::vector<double>> sums;  // [sample][groups before]
  for (const std::size_t index : samples) {
    sums.emplace_back(1, 0.0);
    for (int k = 0; k < shape.k; ++k) {
      if (k % group == 0 && k > 0) sums.back().push_back(sums.back().back());
      if (k == 0) sums.back().push_back(0);
      sums.back().back() +=
          bits_a(row_of(index), k) * weight(column_of(index), k) * scale(column_of(index), k / group);
    }
  }
  for (const bool twice : {false, true}) {
    for (int begin = 0; begin < groups; ++begin) {
      for (int end = begin + 1; end <= groups; ++end) {
        std::size_t sample = 0;
        const bool fits = std::all_of(samples.begin(), samples.end(), [&](const std::size_t index) {
          const std::vector<double>& before = sums[sample++];
          const double part = before[static_cast<std::size_t>(end)] - before[static_cast<std::size_t>(begin)];
          return stored(before.back() + (twice ? part : -part)) == got(index);
        });
        if (!fits) continue;
        std::string lost;  // K in so many equal parts, rounded down
        for (const int parts : {2, 3, 4, 6, 8, 16}) {
          if (twice || end != groups || begin == 0 || groups / parts * parts != begin || !lost.empty())
            continue;
          lost = fmt::format(
              " They remain when {} groups are divided into {} parts of {} each, because {} / {} is rounded "
              "down. Either the first parts must have one group more, or part i must be groups i * {} / {} "
              "to (i + 1) * {} / {} - 1.",
              groups, parts, groups / parts, groups, parts, groups, parts, groups, parts);
        }
        return fmt::format(
            "  These are the sums in which groups {} to {} (the groups are 0 to {}) are {}.{}\n", begin,
            end - 1, groups - 1, twice ? "counted twice" : "missing", lost);
      }
    }
  }
  return explain_wrap(
      groups, samples.size(),
      [&](std::size_t sample, int of_a, int of_b, int of_scale) {
        if (of_a >= groups || of_b >= groups || of_scale >= groups) return 0.0;
        const std::size_t index = samples[sample];
        double sum = 0;
        for (int k = 0; k < group; ++k)
          sum += bits_a(row_of(index), of_a * group + k) * weight(column_of(index), of_b * group + k);
        return sum * scale(column_of(index), of_scale);
      },
      [&](std::size_t sample, double sum) { return stored(sum) == got(samples[sample]); });
}

}  // namespace harness
