// Making tensor maps for the emulator.
#pragma once

#include "emulator/async/tma.h"
#include "ptx/tensor_map_rules.h"

namespace gemm::ptx {

/// 128 bytes that the emulator's copy engine reads. Passed to kernels by value: const __grid_constant__
/// TensorMap.
using TensorMap = emulator::TensorMapBits;
static_assert(sizeof(TensorMap) == 128);

/// Validates and encodes. Throws std::invalid_argument with the violated rule.
TensorMap make_tensor_map(const TensorMapSpec& spec);

}  // namespace gemm::ptx
