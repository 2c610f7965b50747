#include "harness/verify/workload/rank_gather.h"

#include <fmt/format.h>

#include <cstddef>

#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs.h"
#include "harness/verify/reference.h"
#include "harness/verify/workload/rank_matrix.h"

namespace harness {
void check_gather(const RankGatherForm& form) {
  const auto [m, n, k] = form.shape;
  const int rows = form.ranks * gemm::kGatherRows;
  const int columns = form.ranks * 8;
  if (m % rows != 0)
    throw Error(fmt::format("{} rows cannot be divided among {} ranks: M must be a multiple of {}", m,
                            form.ranks, rows));
  if (n % columns != 0)
    throw Error(fmt::format("{} columns cannot be divided among {} ranks: N must be a multiple of {}", n,
                            form.ranks, columns));
  if (k % 8 != 0) throw Error(fmt::format("K must be a multiple of 8, and {} is not", k));
}

RankGather::RankGather(const RankGatherForm& form, const gemm::TileShape& tile)
    : form_(form), tile_(tile), ranks_(form.ranks) {
  check_gather(form);
  const auto [m, n, k] = shape_of_rank();
  const std::size_t flags =
      static_cast<std::size_t>(m / gemm::kGatherRows) * sizeof(std::uint32_t);  // of the smallest pieces
  for (int rank = 0; rank < form.ranks; ++rank) {
    const auto allocate = [&](std::size_t bytes, const char* what) {
      return ranks_.allocate(rank, bytes, fmt::format("{} of rank {}", what, rank));
    };
    gemm::GatherMemory& memory = memory_.emplace_back();
    for (std::size_t parity = 0; parity < 2; ++parity) {
      memory.a[parity] =
          static_cast<gemm::bf16*>(allocate(bytes_of_matrix(m, k), parity == 0 ? "even A" : "odd A"));
      fill_matrix(ranks_, rank, memory.a[parity], rule_of_a(parity));
    }
    auto* const b = static_cast<gemm::bf16*>(allocate(bytes_of_matrix(n, k), "B"));
    fill_matrix(ranks_, rank, b, rule_of_b(rank));
    memory.b = b;
    auto* const guarded = static_cast<std::uint8_t*>(allocate(bytes_of_matrix(m, n) + 2 * kGuardBytes, "D"));
    memory.d = reinterpret_cast<gemm::bf16*>(guarded + kGuardBytes);
    memory.arrived = static_cast<std::uint32_t*>(allocate(flags, "flags"));
    ranks_.fill(rank, memory.arrived, 0, flags);
  }
  poison();
}

gemm::Shape RankGather::shape_of_rank() const {
  return {form_.shape.m, form_.shape.n / form_.ranks, form_.shape.k};
}
InputRule RankGather::rule_of_a(std::size_t parity) const {
  return input_rule(form_.pattern, 2 * form_.seed + parity, Operand::kA, form_.shape.m, form_.shape.k);
}
InputRule RankGather::rule_of_b(int rank) const {
  const gemm::Shape shape = shape_of_rank();
  const auto number = static_cast<std::uint64_t>(rank);
  return input_rule(form_.pattern, 2 * form_.seed + number, Operand::kB, shape.n, shape.k);
}

gemm::GatherGemm RankGather::problem(int piece_rows, int ctas) const {
  return {.ranks = memory_, .shape = shape_of_rank(), .piece_rows = piece_rows, .ctas = ctas};
}

void RankGather::load(const void* kernel) const {
  for (int rank = 0; rank < form_.ranks; ++rank) {
    ranks_.enter(rank);
    kernel_resources(kernel);
  }
}

void RankGather::poison() {
  const auto [m, n, k] = shape_of_rank();
  const int own = m / form_.ranks;
  const std::vector<std::uint8_t> guard = guard_band();
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const gemm::GatherMemory& memory = memory_[static_cast<std::size_t>(rank)];
    for (gemm::bf16* a : memory.a) {
      const int behind = (rank + 1) * own;
      ranks_.fill(rank, a, kPoisonByte, bytes_of_matrix(rank * own, k));
      ranks_.fill(rank, a + gemm::offset(behind, 0, k), kPoisonByte, bytes_of_matrix(m - behind, k));
    }
    ranks_.fill(rank, memory.d, kPoisonByte, bytes_of_matrix(m, n));
    auto* const d = reinterpret_cast<std::uint8_t*>(memory.d);
    ranks_.copy_to(rank, d - kGuardBytes, guard.data(), kGuardBytes);
    ranks_.copy_to(rank, d + bytes_of_matrix(m, n), guard.data(), kGuardBytes);
  }
}

void RankGather::start(const gemm::RankLauncher& launcher, Readers, const Delay& delay) {
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

/// On a GPU it reads the A that has arrived, which check() has compared with what was sent.
const Acceptance& RankGather::reference(int rank, std::size_t parity) {
  Acceptance& acceptance = references_[{rank, parity}];
  if (!acceptance.low.empty()) return acceptance;
  const gemm::Shape shape = shape_of_rank();
  const gemm::GatherMemory& memory = memory_[static_cast<std::size_t>(rank)];
  acceptance = make_acceptance(shape, form_.pattern);
  const bool with_norm = !is_exact(form_.pattern);
  std::vector<double> value;
  std::vector<float> norm;
  in_slabs(shape.m, shape.n, [&](int first, int rows) {
    const auto elements = static_cast<std::size_t>(gemm::offset(rows, 0, shape.n));
    value.assign(elements, 0);
    norm.assign(with_norm ? elements : 0, 0);
    float* const norms = with_norm ? norm.data() : nullptr;
    const gemm::Shape part{rows, shape.n, shape.k};
    const std::int64_t at = gemm::offset(first, 0, shape.k);
    ranks_.enter(rank);
    if (!device_reference(gemm::Gemm{part, memory.a[parity] + at, memory.b, nullptr}, value.data(), norms)) {
      const std::vector<gemm::bf16> a = host_input(rule_of_a(parity));
      const std::vector<gemm::bf16> b = host_input(rule_of_b(rank));
      host_reference({part, a.data() + at, b.data(), nullptr}, value.data(), norms);
    }
    accept_rows(acceptance, first, rows, value.data(), norms);
  });
  return acceptance;
}

CheckResult RankGather::check() {
  const std::size_t parity = epoch_ % 2;
  const auto [m, n, k] = shape_of_rank();
  CheckResult all{.ok = true, .report = {}, .summary = {}, .failed = {}, .error = {}};
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const InputDamage of_a =
        damage_of_matrix(ranks_, rank, memory_[static_cast<std::size_t>(rank)].a[parity], rule_of_a(parity));
    if (of_a.count > 0) {
      all.failed.emplace_back(kInputA);
      all.report += fmt::format(
          "rank {}: {} elements of A are not what was sent; the first is of rank {}, at row {}, k {}: {}\n",
          rank, of_a.count, of_a.row / (m / form_.ranks), of_a.row, of_a.column,
          of_a.got.bits == kPoison.bits
              ? std::string("it has not arrived")
              : fmt::format("{} instead of {}", gemm::to_float(of_a.got), gemm::to_float(of_a.expected)));
      continue;  // D would be compared with a product of what is there
    }
    const gemm::bf16* const d = memory_[static_cast<std::size_t>(rank)].d;
    const auto* const before = reinterpret_cast<const std::uint8_t*>(d) - kGuardBytes;
    std::vector<std::uint8_t> band(kGuardBytes);
    std::vector<gemm::bf16> got(static_cast<std::size_t>(gemm::offset(m, 0, n)));
    ranks_.copy_from(rank, got.data(), d, bytes_of_matrix(m, n));
    Verification verification(rule_of_a(parity), rule_of_b(rank), tile_);
    verification.check_values(reference(rank, parity), got.data());
    ranks_.copy_from(rank, band.data(), before, kGuardBytes);
    verification.check_guard(band.data(), true);
    ranks_.copy_from(rank, band.data(), before + kGuardBytes + bytes_of_matrix(m, n), kGuardBytes);
    verification.check_guard(band.data(), false);
    const CheckResult result = verification.result();
    all.summary = result.summary;
    if (result.ok) continue;
    all.report += fmt::format("rank {}: {}", rank, result.report);
    all.failed.insert(all.failed.end(), result.failed.begin(), result.failed.end());
  }
  all.ok = all.failed.empty();
  if (!all.ok) all.summary = "failed: A or D of a rank is not what it should be";
  return all;
}

namespace {

/// One column of tiles that hang over D, or two.
constexpr int kOneColumn = 136;
constexpr int kTwoColumns = 264;

RankGatherForm small_form(int ranks, int tiles_of_rank, int columns, int k) {
  return {.ranks = ranks, .shape = {ranks * tiles_of_rank * gemm::kGatherRows, ranks * columns, k}};
}

}  // namespace

std::vector<GatherCase> gather_cases() {
  constexpr int kRows = gemm::kGatherRows;
  constexpr int kTilesOfGroups = 17;
  return {
      {small_form(2, 2, kTwoColumns, 136), kRows, 1, "two pieces, a ring that wraps, tiles that hang over D"},
      {small_form(2, 3, kOneColumn, 64), 2 * kRows, 2, "pieces of two tiles and of one, two CTAs that copy"},
      {small_form(3, 1, kOneColumn, 64), kRows, 1, "three ranks in a circle"},
      {small_form(2, kTilesOfGroups, kOneColumn, 64), kTilesOfGroups * kRows, 2,
       "one large piece, a CTA with none to copy, more tiles than a raster group has", true}};
}

GatherCase gather_case(const gemm::Shape& shape) {
  return {.form = small_form(shape.m, shape.n, kOneColumn, 64 * shape.k)};
}

CheckResult check_gather_case(const gemm::Variant& variant, const GatherCase& one, int epochs) {
  RankGather gather(one.form, variant.tile);
  return gather.run(variant.prepare_gather(gather.problem(one.piece_rows, one.ctas)), epochs,
                    RankRun::Readers::kBeside);
}

}  // namespace harness
