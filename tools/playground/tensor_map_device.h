// The 128 bytes of a tensor map, as they are made on this machine.
#pragma once

#include <array>

#include "ptx/tensor_map_rules.h"

namespace play {

using TensorMapBytes = std::array<unsigned char, 128>;

/// Validates and encodes: on the GPU by the driver, on the emulator in its own layout. Throws
/// std::invalid_argument with the violated rule.
TensorMapBytes encode_tensor_map(const gemm::ptx::TensorMapSpec& spec);

/// What an emulator's map says. Throws harness::Error for bytes that are none, and on the GPU, where the
/// layout is not documented.
gemm::ptx::TensorMapSpec decode_tensor_map(const TensorMapBytes& bytes);

}  // namespace play
