// Timelines of a step, recorded on the emulator.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "harness/backend/trace_control.h"
#include "harness/trace/trace_timeline.h"
#include "verify_shape.h"

constexpr int kAllCtas = 64;

/// The first variant that stands for no other one (a tile that is chosen may be wider than the shape), and
/// whose instructions the model knows: not those of step 45 for few rows, which pass partials on by st.async.
/// In step 46, it is one that begins a tile when the one before is stored: a timeline counts tiles by stores.
inline const gemm::Variant& traced_variant(const gemm::Step& step) {
  return *std::find_if(step.variants.begin(), step.variants.end(), [&](const gemm::Variant& one) {
    return one.choose == nullptr && (!step.name.starts_with("45_") || one.name == "int4_256") &&
           (!step.name.starts_with("46_") || one.name == "128x256");
  });
}

inline harness::TraceData record(const gemm::Variant& variant, const gemm::Shape& shape, int sms,
                                 std::uint64_t schedule_seed = 1, int ctas = kAllCtas, int ctas_per_sm = 0,
                                 harness::ProblemForm form = {}) {
  form.epilogue = gemm::with_fixed(variant.epilogues, form.epilogue);
  harness::control_emulator({.schedule_seed = schedule_seed, .sm_count = sms});
  harness::ProblemForm typed = form;
  typed.types = variant.types;
  harness::Workload workload(shape, harness::Pattern::kExact, 1, typed);
  workload.poison();
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  harness::TraceData data = harness::record_launch([&] { launcher(nullptr); }, ctas, ctas_per_sm);
  CHECK(workload.check(variant.tile).ok);
  return data;
}

/// Two tiles for each SM, `k_tiles` k-tiles deep.
inline gemm::Shape tiles_of(const gemm::Variant& variant, int sms, int k_tiles) {
  return {2 * sms * variant.tile.m, variant.tile.n, k_tiles * variant.tile.k};
}

inline std::vector<harness::EngineSpan> engines(const harness::TraceData& data,
                                                harness::EngineSpan::Kind kind, int cta = -1) {
  std::vector<harness::EngineSpan> spans;
  for (const harness::EngineSpan& span : data.engines) {
    if (span.kind == kind && (cta < 0 || span.cta == cta)) spans.push_back(span);
  }
  std::stable_sort(
      spans.begin(), spans.end(),
      [](const harness::EngineSpan& a, const harness::EngineSpan& b) { return a.begin < b.begin; });
  return spans;
}

/// CTAs for which one thread multiplies: a pair with tcgen05 in a cluster.
inline int ctas_of_issuer(const gemm::Step& step, const gemm::Variant& variant) {
  const bool pair =
      step.unit == gemm::MathUnit::kTcgen05 &&
      variant.launch_shape({variant.tile.m, variant.tile.n, variant.tile.k}).cluster.count() == 2;
  return pair ? 2 : 1;
}

inline bool multiplies(const harness::TraceTimeline& timeline) {
  return timeline.role != "producer" && timeline.role != "epilogue";
}
