// mma.sync: the warp multiplies small matrices held in its registers, d[16][8] += a[16][k] * b[8][k]^T.
//
// PTX ISA, "Warp Level Matrix Instructions: mma". All lanes of the warp execute the same instruction;
// volatile keeps the compiler from moving it to where some lanes are absent. No memory is touched.
//
// A register holds e elements, one of tf32, two of 16 bits or four of 8, the one with the lowest k in the
// lowest bits. With g = lane / 4 and t = lane % 4, a lane holds
//   a[0]: row g, k from e * t    a[1]: row g+8    a[2]: row g, k from e * (t + 4)    a[3]: row g+8, k as a[2]
//   b[0]: column g, k from e * t    b[1]: column g, k from e * (t + 4)
//   d[0], d[1]: row g, columns 2t and 2t+1    d[2], d[3]: row g+8
// For 16-bit elements that is: a[0] has k 2t and 2t+1, a[2] has k 2t+8 and 2t+9. Accumulators of f16 lie two
// in a register: d[0] has row g, d[1] row g+8. Of tf32 operands the low 13 bits are not looked at. Integer
// accumulators wrap. The forms of e4m3 and e5m2 need compute capability 8.9; on sm_90 they are conversions to
// f16 and two multiplications of those (their SASS: F2FP and HMMA.16816.F32).
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32
__device__ __forceinline__ void mma_m16n8k8_bf16(float (&d)[4], const std::uint32_t (&a)[2],
                                                 const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
__device__ __forceinline__ void mma_m16n8k8_f16(float (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
__device__ __forceinline__ void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16
__device__ __forceinline__ void mma_m16n8k8_f16(std::uint32_t (&d)[2], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16
__device__ __forceinline__ void mma_m16n8k16_f16(std::uint32_t (&d)[2], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32
__device__ __forceinline__ void mma_m16n8k4_tf32(float (&d)[4], const std::uint32_t (&a)[2],
                                                 const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32
__device__ __forceinline__ void mma_m16n8k16_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
__device__ __forceinline__ void mma_m16n8k32_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32
__device__ __forceinline__ void mma_m16n8k16_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32
__device__ __forceinline__ void mma_m16n8k32_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32
__device__ __forceinline__ void mma_m16n8k32_e5m2(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32
__device__ __forceinline__ void mma_m16n8k16_s8_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                   const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32
__device__ __forceinline__ void mma_m16n8k16_u8_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2],
                                                   const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32
__device__ __forceinline__ void mma_m16n8k32_s8_u8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
__device__ __forceinline__ void mma_m16n8k32_u8_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
__device__ __forceinline__ void mma_m16n8k32_e4m3_e5m2(float (&d)[4], const std::uint32_t (&a)[4],
                                                       const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32
__device__ __forceinline__ void mma_m16n8k32_e5m2_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                                                       const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace gemm::ptx
