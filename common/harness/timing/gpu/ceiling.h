// How fast the GPU multiplies when nothing else is in the way. GPU build only.
#pragma once

#include "gemm/problem/step.h"
#include "harness/timing/timing.h"

namespace harness {

/// False where the GPU lacks the unit: wgmma below compute capability 9.0, or another architecture than 9.0.
bool has_math_unit(gemm::MathUnit unit);

/// A launch that does 2 * m * n * k floating-point operations with wgmma, spread evenly over all SMs, on
/// operands N(0, 1) that stay in shared memory: no loads, no stores, no barriers. What a GEMM of this size
/// would take if moving its data cost nothing. (Random data, because the power that a multiplier draws
/// depends on it, and power decides the clock.) The matrices are ignored. Throws Error where
/// has_math_unit(kWgmma) is false.
Contestant wgmma_ceiling();

/// Floating-point operations per second of a kernel that only multiplies with this unit: the median of some
/// launches of about 2 ms each, after an idle gap (burst mode). Takes less than a second. Throws Error where
/// has_math_unit() is false.
double measure_peak(gemm::MathUnit unit);

}  // namespace harness
