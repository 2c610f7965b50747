// What the model says of the tensor cores under a step with wgmma or tcgen05.mma.
#include <cmath>
#include <map>

#include "steps/timelines.h"

using harness::EngineSpan;
using harness::TraceData;

TEST_CASE("the tensor cores of an SM do one thing at a time, and all of the work at the full rate",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& variant = traced_variant(step);
  const gemm::Shape shape = tiles_of(variant, 2, 5);
  const TraceData data = record(variant, shape, 2);
  std::map<int, double> busy_until;
  double clocks = 0;
  for (const EngineSpan& span : engines(data, EngineSpan::Kind::kTensorCores)) {
    CHECK(span.begin >= busy_until[span.sm]);
    busy_until[span.sm] = span.end;
    clocks += span.end - span.begin;
  }
  // FLOP a clock; an operand of half the bits is multiplied twice as fast.
  const double rate = (step.unit == gemm::MathUnit::kTcgen05 ? 8192 : 4096) * 16.0 / bits_of(variant.types.a);
  CHECK(std::abs(clocks - 2.0 * shape.m * shape.n * shape.k / rate) < 1);
}
