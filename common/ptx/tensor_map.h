// Making tensor maps for the GPU.
#pragma once

#include <cuda.h>  // the type only; nothing is linked from the driver

#include "ptx/tensor_map_rules.h"

namespace gemm::ptx {

/// The 128 bytes that TMA reads. Passed to kernels by value: const __grid_constant__ TensorMap.
using TensorMap = CUtensorMap;

/// Validates, then asks the driver to encode. Throws std::invalid_argument with the violated rule, and
/// std::runtime_error when the driver has no such function or refuses the map nevertheless.
TensorMap make_tensor_map(const TensorMapSpec& spec);

}  // namespace gemm::ptx
