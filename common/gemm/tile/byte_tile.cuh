// What step 42 taught about tiles: a k-tile is 128 bytes of K, whatever they are, and the tensor maps know
// what they are.
#pragma once

#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// A tile of kM x kN whose k-tile is 128 bytes of K, whatever they are: where tiles in shared memory are
/// counted in bf16, 64 of them are a row.
template <int kTileM, int kTileN, int kGroups>
using ByteTiling = WgmmaTiling<kTileM, kTileN, 64, kGroups>;
inline constexpr int kRowBytes = 128;

/// Such a tile as the harness counts it, in elements of A.
template <typename T, typename A>
inline constexpr TileShape kByteTile{T::kM, T::kN, kRowBytes / static_cast<int>(sizeof(A))};

/// Its traffic: that of a tile of bf16, times the bytes of an element of A by two.
template <typename T, typename A>
constexpr Traffic byte_tile_traffic() {
  Traffic traffic = wgmma_tile_traffic<T>();
  traffic.shared_bytes_per_fma *= sizeof(A) / 2.0;
  traffic.global_bytes_per_fma *= sizeof(A) / 2.0;
  return traffic;
}

/// What TMA is told of a type. 8 bits are 8 bits; a tf32 comes as the binary32 that it is in memory.
constexpr ptx::TensorElement tensor_element(Type type) {
  switch (type) {
    case Type::kBf16:
      return ptx::TensorElement::kBf16;
    case Type::kFp16:
      return ptx::TensorElement::kFloat16;
    case Type::kTf32:
    case Type::kFp32:
      return ptx::TensorElement::kFloat32;
    default:
      return ptx::TensorElement::kUint8;
  }
}

}  // namespace gemm
