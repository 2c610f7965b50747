#pragma once
#include <cstdint>
#include "emulator/async/wgmma.h"
#include "ptx/core.cuh"
namespace gemm::ptx {
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_f32_e4m3_e4m3_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                           std::uint64_t b, int scale_d,
                                                           emulator::Where where = emulator::Where::here()) {
  emulator::wgmma_mma("wgmma_m64nNk32_f32_e4m3_e4m3_rs", kN, d, 0, a, b, scale_d != 0, where, {Type::kE4m3, Type::kE4m3});
}
}  // namespace gemm::ptx
