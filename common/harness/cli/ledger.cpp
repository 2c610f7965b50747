#include "harness/cli/ledger.h"

#include <fmt/format.h>

#include "gemm/problem/gemm.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/output.h"
#include "harness/trace/trace_run.h"
#include "harness/verify/workload/workload.h"

namespace harness {

int run_ledger(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
               const Options& options) {
  constexpr double kMostProducts = 1024.0 * 1024 * 1024;  // every access of shared memory is looked at
  if (static_cast<double>(shape.m) * shape.n * shape.k > kMostProducts) {
    throw Error(
        fmt::format("{} is too large for a ledger; take at most as many products as 1024x1024x1024 has",
                    to_string(shape)));
  }
  ProblemForm form = form_of(step, variant);
  form.groups = parse_groups(options.groups, shape.m);
  form.capacity = parse_capacity(options.groups);
  form.placement = parse_placement(options.groups);
  Workload workload(shape, Pattern::kExact, options.seed, form);
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  workload.poison();
  begin_emulator_ledger();
  try {
    launcher(nullptr);
  } catch (...) {
    // How far it came says what is missing.
    fmt::print("the ledger up to the report:\n{}\n", take_emulator_ledger().text);
    throw;
  }
  const EmulatorLedger ledger = take_emulator_ledger();
  const CheckResult result = workload.check(variant.tile);
  fmt::print("{} {}, {}: the ledger of one launch\n{}", step.name, variant.name, to_string(shape),
             ledger.text);
  if (!options.json.empty()) write_text(options.json, ledger.json);
  if (result.ok) return kExitOk;
  fmt::print("{} {} WRONG {}\n{}\n", step.name, variant.name, result.summary, result.report);
  return kExitMismatch;
}

}  // namespace harness
