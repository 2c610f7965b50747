#include "harness/verify/workload/rank_scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs.h"
#include "harness/verify/reference.h"
#include "harness/verify/workload/rank_matrix.h"

namespace harness {
namespace {

/// Where the sum tells the order: the operands' elements in column 0 of a rank's part of K; the others are 0.
/// A float holds 2^24 + 1 no more.
float factor_a(int rank) {
  constexpr float kLarge = 4096;
  return rank == 0 ? kLarge : rank == 1 ? -kLarge : 1;
}
float factor_b(int rank) {
  return std::abs(factor_a(rank));
}
float sum_in_order(int owner, int ranks) {
  float sum = factor_a(owner) * factor_b(owner);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != owner) sum += factor_a(rank) * factor_b(rank);
  }
  return sum;
}

std::vector<gemm::bf16> one_column(int rows, int columns, float value) {
  std::vector<gemm::bf16> elements(static_cast<std::size_t>(gemm::offset(rows, 0, columns)),
                                   gemm::to_bf16(0));
  for (int row = 0; row < rows; ++row)
    elements[static_cast<std::size_t>(gemm::offset(row, 0, columns))] = gemm::to_bf16(value);
  return elements;
}

double through_bf16(double value) {
  return static_cast<double>(gemm::to_float(gemm::to_bf16(static_cast<float>(value))));
}

}  // namespace

void check_scatter(const RankScatterForm& form) {
  const auto [m, n, k] = form.shape;
  const int rows = form.ranks * gemm::kScatterRows;
  const int depth = form.ranks * 8;
  if (m % rows != 0)
    throw Error(fmt::format("{} rows cannot be divided among {} ranks: M must be a multiple of {}", m,
                            form.ranks, rows));
  if (k % depth != 0)
    throw Error(fmt::format("a K of {} cannot be divided among {} ranks: it must be a multiple of {}", k,
                            form.ranks, depth));
  if (n % 8 != 0) throw Error(fmt::format("N must be a multiple of 8, and {} is not", n));
}

RankScatter::RankScatter(const RankScatterForm& form) : form_(form), ranks_(form.ranks) {
  check_scatter(form);
  const auto [m, n, k] = shape_of_rank();
  memory_.resize(static_cast<std::size_t>(form.ranks));
  const gemm::ScatterGemm all = problem();
  const auto partials = static_cast<std::size_t>(all.partial_bytes() * form.ranks);
  const auto flags = static_cast<std::size_t>(all.flags_of_rank() * form.ranks) * sizeof(std::uint32_t);
  for (int rank = 0; rank < form.ranks; ++rank) {
    const auto allocate = [&](std::size_t bytes, const std::string& what) {
      return ranks_.allocate(rank, bytes, fmt::format("{} of rank {}", what, rank));
    };
    gemm::ScatterMemory& memory = memory_[static_cast<std::size_t>(rank)];
    for (const gemm::bf16*& a : memory.a)
      a = static_cast<gemm::bf16*>(allocate(
          bytes_of_matrix(m, k), fmt::format("A of epochs {} mod {}", &a - memory.a, gemm::kScatterPhases)));
    auto* const b = static_cast<gemm::bf16*>(allocate(bytes_of_matrix(n, k), "B"));
    memory.b = b;
    fill_operands(rank, memory, b);
    for (std::size_t parity = 0; parity < 2; ++parity)
      memory.partials[parity] = allocate(partials, parity == 0 ? "even partials" : "odd partials");
    auto* const guarded =
        static_cast<std::uint8_t*>(allocate(bytes_of_matrix(rows_of_rank(), n) + 2 * kGuardBytes, "D"));
    memory.d = reinterpret_cast<gemm::bf16*>(guarded + kGuardBytes);
    memory.arrived = static_cast<std::uint32_t*>(allocate(flags, "flags"));
    ranks_.fill(rank, memory.arrived, 0, flags);
  }
  poison();
}

void RankScatter::fill_operands(int rank, gemm::ScatterMemory& memory, gemm::bf16* b) {
  const auto [m, n, k] = shape_of_rank();
  for (std::size_t phase = 0; phase < gemm::kScatterPhases; ++phase) {
    auto* const a = const_cast<gemm::bf16*>(memory.a[phase]);  // ours, and constant for kernels
    if (form_.tells_order) {
      ranks_.copy_to(rank, a, one_column(m, k, factor_a(rank)).data(), bytes_of_matrix(m, k));
    } else {
      fill_matrix(ranks_, rank, a, rule_of(Operand::kA, rank, phase));
    }
  }
  if (form_.tells_order) {
    ranks_.copy_to(rank, b, one_column(n, k, factor_b(rank)).data(), bytes_of_matrix(n, k));
  } else {
    fill_matrix(ranks_, rank, b, rule_of(Operand::kB, rank, 0));
  }
}

gemm::Shape RankScatter::shape_of_rank() const {
  return {form_.shape.m, form_.shape.n, form_.shape.k / form_.ranks};
}

/// So that the sums of all ranks stay exact, the range is that of the whole K.
InputRule RankScatter::rule_of(Operand operand, int rank, std::size_t phase) const {
  const auto [m, n, k] = shape_of_rank();
  const auto number = static_cast<std::uint64_t>(rank);
  InputRule rule = input_rule(form_.pattern, form_.seed + gemm::kScatterPhases * number + phase, operand,
                              operand == Operand::kA ? m : n, k);
  rule.range = exact_range(form_.shape.k);
  return rule;
}

gemm::ScatterGemm RankScatter::problem() const {
  return {.ranks = memory_, .shape = shape_of_rank()};
}

void RankScatter::load(const void* kernel) const {
  for (int rank = 0; rank < form_.ranks; ++rank) {
    ranks_.enter(rank);
    kernel_resources(kernel);
  }
}

void RankScatter::poison() {
  const std::vector<std::uint8_t> guard = guard_band();
  const std::size_t bytes = bytes_of_matrix(rows_of_rank(), form_.shape.n);
  const auto partials = static_cast<std::size_t>(problem().partial_bytes() * form_.ranks);
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const gemm::ScatterMemory& memory = memory_[static_cast<std::size_t>(rank)];
    for (void* const buffer : memory.partials) ranks_.fill(rank, buffer, kPoisonByte, partials);
    ranks_.fill(rank, memory.d, kPoisonByte, bytes);
    auto* const d = reinterpret_cast<std::uint8_t*>(memory.d);
    ranks_.copy_to(rank, d - kGuardBytes, guard.data(), kGuardBytes);
    ranks_.copy_to(rank, d + bytes, guard.data(), kGuardBytes);
  }
}

void RankScatter::start(const gemm::RankLauncher& launcher, Readers, const Delay& delay) {
  ++epoch_;
  const auto give = [&](const gemm::RankWork& work, const Delay& before) {
    for (int rank = 0; rank < form_.ranks; ++rank) {
      const gemm::ptx::Stream stream = ranks_.stream(rank, RankStream::kSend);
      ranks_.enter(rank);
      if (before) before(rank, stream);
      if (work) work(rank, epoch_, stream);
    }
  };
  give(launcher.before, delay);
  give(launcher.run, {});
  give(launcher.after, {});
}

/// With exact inputs, a correct sum is exact, but for the partials that were rounded to bf16 on their way:
/// what it is with and without that, and what lies between. Otherwise each rank's sum may err as any may, and
/// every rounding of a partial or of a sum of some of them by 2^-8 of it.
const RankScatter::Bounds& RankScatter::bounds(int owner, std::size_t phase) {
  Bounds& result = computed_[{owner, phase}];
  if (!result.low.empty()) return result;
  const gemm::Shape shape = shape_of_rank();
  const int own = rows_of_rank();
  const auto elements = static_cast<std::size_t>(gemm::offset(own, 0, shape.n));
  if (form_.tells_order) {
    result.low.assign(elements, gemm::to_bf16(sum_in_order(owner, form_.ranks)));
    result.high = result.low;
    return result;
  }
  const bool exact = is_exact(form_.pattern);
  const double error_per_norm = accumulation_error(shape.k, 1);
  const double roundings = 0x1p-8 * (form_.ranks - 1);
  result.low.resize(elements);
  result.high.resize(elements);
  in_slabs(own, shape.n, [&](int first, int rows) {
    const auto count = static_cast<std::size_t>(gemm::offset(rows, 0, shape.n));
    std::vector<double> sum(count, 0);
    std::vector<double> other(count, 0);  // the sum of rounded partials, or how far the sum may be off
    std::vector<double> value(count);
    std::vector<float> norm(exact ? 0 : count);
    for (int rank = 0; rank < form_.ranks; ++rank) {
      const gemm::ScatterMemory& memory = memory_[static_cast<std::size_t>(rank)];
      const gemm::Shape part{rows, shape.n, shape.k};
      const std::int64_t at = gemm::offset(owner * own + first, 0, shape.k);
      float* const norms = exact ? nullptr : norm.data();
      ranks_.enter(rank);
      if (!device_reference(gemm::Gemm{part, memory.a[phase] + at, memory.b, nullptr}, value.data(), norms)) {
        const std::vector<gemm::bf16> a = host_input(rule_of(Operand::kA, rank, phase));
        const std::vector<gemm::bf16> b = host_input(rule_of(Operand::kB, rank, 0));
        host_reference({part, a.data() + at, b.data(), nullptr}, value.data(), norms);
      }
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] += value[i];
        if (exact) {
          other[i] += rank == owner ? value[i] : through_bf16(value[i]);
        } else {
          const double error = error_per_norm * static_cast<double>(norm[i]);
          other[i] += error + roundings * (std::abs(value[i]) + error);
        }
      }
    }
    const auto to = static_cast<std::size_t>(gemm::offset(first, 0, shape.n));
    for (std::size_t i = 0; i < count; ++i) {
      const double low = exact ? std::min(sum[i], other[i]) : sum[i] - other[i];
      const double high = exact ? std::max(sum[i], other[i]) : sum[i] + other[i];
      result.low[to + i] = gemm::to_bf16(static_cast<float>(low));
      result.high[to + i] = gemm::to_bf16(static_cast<float>(high));
    }
  });
  return result;
}

/// For a report: which partials would explain the number that is there.
std::string RankScatter::what_it_is(int owner, std::size_t phase, int row, int column, gemm::bf16 got) const {
  if (got.bits == kPoison.bits) return "it was not stored, or poison was added";
  if (form_.tells_order) return "the partials of the ranks were not added in their order";
  const auto sum_of = [&](int rank, std::size_t of_phase) {
    const InputRule a = rule_of(Operand::kA, rank, of_phase);
    const InputRule b = rule_of(Operand::kB, rank, 0);
    double sum = 0;
    for (int k = 0; k < shape_of_rank().k; ++k)
      sum += static_cast<double>(
                 gemm::to_float(input_value(a, owner * rows_of_rank() + row, k, normal_quantiles()))) *
             static_cast<double>(gemm::to_float(input_value(b, column, k, normal_quantiles())));
    return sum;
  };
  const auto close = [&](double value) {
    const auto is = static_cast<double>(gemm::to_float(got));
    return std::abs(value - is) <= 0x1p-6 * std::abs(is);
  };
  double all = 0;
  for (int rank = 0; rank < form_.ranks; ++rank) all += sum_of(rank, phase);
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const double part = sum_of(rank, phase);
    if (close(all - part)) return fmt::format("the partial of rank {} is missing", rank);
    if (close(all + part)) return fmt::format("the partial of rank {} was added twice", rank);
    if (close(part)) return fmt::format("it is the partial of rank {} alone", rank);
    if (close(all - part + sum_of(rank, (phase + 1) % gemm::kScatterPhases)))
      return fmt::format("the partial of rank {} is that of two epochs ago", rank);
  }
  return "no single partial explains it";
}

CheckResult RankScatter::check() {
  const std::size_t phase = epoch_ % gemm::kScatterPhases;
  const int n = form_.shape.n;
  const std::size_t bytes = bytes_of_matrix(rows_of_rank(), n);
  CheckResult all{.ok = true, .report = {}, .summary = {}, .failed = {}, .error = {}};
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const gemm::ScatterMemory& memory = memory_[static_cast<std::size_t>(rank)];
    if (!form_.tells_order) {
      const InputDamage a =
          damage_of_matrix(ranks_, rank, memory.a[phase], rule_of(Operand::kA, rank, phase));
      const InputDamage b = damage_of_matrix(ranks_, rank, memory.b, rule_of(Operand::kB, rank, 0));
      if (a.count + b.count > 0) {
        all.failed.emplace_back(a.count > 0 ? kInputA : kInputB);
        all.report += fmt::format("rank {}: elements of its operands were overwritten, {} of A and {} of B\n",
                                  rank, a.count, b.count);
        continue;
      }
    }
    const Bounds& accepted_values = bounds(rank, phase);
    std::vector<gemm::bf16> got(accepted_values.low.size());
    ranks_.copy_from(rank, got.data(), memory.d, bytes);
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = got.size(); i-- > 0;) {
      if (accepted(accepted_values.low[i], accepted_values.high[i], got[i])) continue;
      ++wrong;
      first = i;
    }
    if (wrong > 0) {
      const auto row = static_cast<int>(first / static_cast<std::size_t>(n));
      const auto column = static_cast<int>(first % static_cast<std::size_t>(n));
      all.failed.emplace_back(kValue);
      all.report += fmt::format(
          "rank {}: {} of {} elements of D are wrong; the first is at row {} of its rows, column {}: {} "
          "instead of {}: {}\n",
          rank, wrong, got.size(), row, column, gemm::to_float(got[first]),
          gemm::to_float(accepted_values.low[first]), what_it_is(rank, phase, row, column, got[first]));
    }
    std::vector<std::uint8_t> band(kGuardBytes);
    const auto* const d = reinterpret_cast<const std::uint8_t*>(memory.d);
    for (const std::uint8_t* const at : {d - kGuardBytes, d + bytes}) {
      ranks_.copy_from(rank, band.data(), at, kGuardBytes);
      if (band == guard_band()) continue;
      all.failed.emplace_back(at < d ? kGuardBefore : kGuardAfter);
      all.report += fmt::format("rank {}: bytes {} D were overwritten\n", rank, at < d ? "before" : "after");
    }
  }
  all.ok = all.failed.empty();
  all.summary = !all.ok                   ? "failed: D of a rank is not what it should be"
                : form_.tells_order       ? "every sum tells the promised order"
                : is_exact(form_.pattern) ? "all values exact, but for partials that are rounded"
                                          : "all values within their bounds";
  return all;
}

namespace {

RankScatterForm small_scatter(int ranks, int tiles_of_rank, int columns, int k_of_rank) {
  return {.ranks = ranks, .shape = {ranks * tiles_of_rank * gemm::kScatterRows, columns, ranks * k_of_rank}};
}

}  // namespace

std::vector<ScatterCase> scatter_cases() {
  std::vector<ScatterCase> cases = {
      {small_scatter(2, 2, 264, 136), "tiles that hang over D, a ring that wraps, an edge of K"},
      {small_scatter(3, 1, 136, 64), "three ranks in a circle"},
      {small_scatter(4, 1, 136, 64), "four ranks, and sums that tell in which order they were made"}};
  cases.back().form.tells_order = true;
  return cases;
}

ScatterCase scatter_case(const gemm::Shape& shape) {
  constexpr int kColumns = 136;
  ScatterCase one{.form = small_scatter(shape.m, shape.n, kColumns, 64 * shape.k)};
  one.form.tells_order = shape.m > 2;
  return one;
}

CheckResult check_scatter_case(const gemm::Variant& variant, const ScatterCase& one, int epochs) {
  RankScatter scatter(one.form);
  return scatter.run(variant.prepare_scatter(scatter.problem()), epochs, RankRun::Readers::kBeside);
}

}  // namespace harness
