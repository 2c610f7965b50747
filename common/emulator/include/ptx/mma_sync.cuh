// mma.sync: the warp multiplies small matrices held in its registers. The emulator's counterpart; the GPU
// header says which lane holds which elements.
//
// PTX ISA, "Warp Level Matrix Instructions: mma". All lanes of the warp execute the same instruction.
#pragma once

#include <cstdint>

#include "emulator/async/matrix.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32
__device__ __forceinline__ void mma_m16n8k8_bf16(float (&d)[4], const std::uint32_t (&a)[2],
                                                 const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k8_bf16", emulator::MmaElement::kBf16, 8}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_bf16", emulator::MmaElement::kBf16, 16}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
__device__ __forceinline__ void mma_m16n8k8_f16(float (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k8_f16", emulator::MmaElement::kF16, 8}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
__device__ __forceinline__ void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_f16", emulator::MmaElement::kF16, 16}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16
__device__ __forceinline__ void mma_m16n8k8_f16(std::uint32_t (&d)[2], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k8_f16", emulator::MmaElement::kF16, 8, true}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16
__device__ __forceinline__ void mma_m16n8k16_f16(std::uint32_t (&d)[2], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_f16", emulator::MmaElement::kF16, 16, true}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32
__device__ __forceinline__ void mma_m16n8k4_tf32(float (&d)[4], const std::uint32_t (&a)[2],
                                                 const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k4_tf32", emulator::MmaElement::kTf32, 4}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k8_tf32", emulator::MmaElement::kTf32, 8}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32
__device__ __forceinline__ void mma_m16n8k16_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_s8", emulator::MmaElement::kS8, 16}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
__device__ __forceinline__ void mma_m16n8k32_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_s8", emulator::MmaElement::kS8, 32}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32
__device__ __forceinline__ void mma_m16n8k16_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_u8", emulator::MmaElement::kU8, 16}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32
__device__ __forceinline__ void mma_m16n8k32_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_u8", emulator::MmaElement::kU8, 32}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_e4m3", emulator::MmaElement::kE4m3, 32}, d, a, b, where);
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32
__device__ __forceinline__ void mma_m16n8k32_e5m2(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_e5m2", emulator::MmaElement::kE5m2, 32}, d, a, b, where);
}

__device__ __forceinline__ void mma_m16n8k16_s8_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                   const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_s8_u8", emulator::MmaElement::kS8, 16, false, emulator::MmaElement::kU8},
                      d, a, b, where);
}

__device__ __forceinline__ void mma_m16n8k16_u8_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                   const std::uint32_t (&b)[1], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k16_u8_s8", emulator::MmaElement::kU8, 16, false, emulator::MmaElement::kS8},
                      d, a, b, where);
}

__device__ __forceinline__ void mma_m16n8k32_s8_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_s8_u8", emulator::MmaElement::kS8, 32, false, emulator::MmaElement::kU8},
                      d, a, b, where);
}

__device__ __forceinline__ void mma_m16n8k32_u8_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2], Where where = Where::here()) {
  emulator::mma_m16n8({"mma_m16n8k32_u8_s8", emulator::MmaElement::kU8, 32, false, emulator::MmaElement::kS8},
                      d, a, b, where);
}

__device__ __forceinline__ void mma_m16n8k32_e4m3_e5m2(float (&d)[4], const std::uint32_t (&a)[4],
                                                       const std::uint32_t (&b)[2],
                                                       Where where = Where::here()) {
  emulator::mma_m16n8(
      {"mma_m16n8k32_e4m3_e5m2", emulator::MmaElement::kE4m3, 32, false, emulator::MmaElement::kE5m2}, d, a,
      b, where);
}

__device__ __forceinline__ void mma_m16n8k32_e5m2_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                                                       const std::uint32_t (&b)[2],
                                                       Where where = Where::here()) {
  emulator::mma_m16n8(
      {"mma_m16n8k32_e5m2_e4m3", emulator::MmaElement::kE5m2, 32, false, emulator::MmaElement::kE4m3}, d, a,
      b, where);
}

}  // namespace gemm::ptx
