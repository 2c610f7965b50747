// The map of a D of one byte an element, for an epilogue that computes in binary32: subtiles of 64 x 64
// bytes.
#pragma once

#include <cstdint>

#include "ptx/tensor_map.h"

namespace gemm {

/// The map of such a D: dense, stored in boxes of 64 rows of 64 bytes, 64-byte swizzle.
inline ptx::TensorMap narrow_store_map(const void* d, int m, int n) {
  auto spec = ptx::matrix_spec(d, m, n, 64, 64, ptx::Swizzle::k64B);
  spec.element = ptx::TensorElement::kUint8;
  spec.stride_bytes[1] = static_cast<std::uint64_t>(n);
  return ptx::make_tensor_map(spec);
}

}  // namespace gemm
