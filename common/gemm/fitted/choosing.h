// Whether the learned correction has a say where a plan is chosen by shape.
#pragma once

namespace gemm {

enum class Choosing { kCorrected, kByArithmetic };

/// Of the whole program: set before the first plan is chosen.
inline Choosing choosing = Choosing::kCorrected;

}  // namespace gemm
