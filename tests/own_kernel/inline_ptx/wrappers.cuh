// Instructions as published kernels wrap them: statements in functions and macros of a header.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

#define FENCE(kind) asm volatile("fence." #kind ";" ::: "memory")

__device__ inline std::uint32_t shared(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void init_barrier(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared(barrier)), "r"(arrivals));
}

__device__ inline void expect_bytes(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ inline void wait_barrier(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred                P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;  // until the phase is over\n"
      "@P1                       bra.uni DONE;\n"
      "bra.uni                   LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(shared(barrier)),
      "r"(parity)
      : "memory");
}

/// Arrives at the barrier of the same stage in CTA `rank` of the cluster.
__device__ inline void arrive_at(std::uint64_t* barrier, std::uint32_t rank) {
  asm volatile(R"({
    .reg .b32 remote;
    mapa.shared::cluster.u32 remote, %0, %1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];
  })" ::"r"(shared(barrier)),
               "r"(rank)
               : "memory");
}

__device__ inline void load_tile(void* tile, const CUtensorMap* map, std::uint64_t* barrier, int column,
                                 int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(shared(tile)),
      "l"(map), "r"(shared(barrier)), "r"(column), "r"(row)
      : "memory");
}

__device__ inline void load_tile_for_all(void* tile, const CUtensorMap* map, std::uint64_t* barrier,
                                         int column, int row, std::uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared(tile)),
      "l"(reinterpret_cast<std::uint64_t>(map)), "r"(shared(barrier)), "r"(column), "r"(row), "h"(ctas)
      : "memory");
}

__device__ inline void store_tile(const CUtensorMap* map, const void* tile, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared(tile)), "r"(column), "r"(row)
               : "memory");
}

/// K-major rows of 128 bytes, swizzled.
__device__ inline std::uint64_t descriptor(const void* tile) {
  return (shared(tile) & 0x3ffffu) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 |
         std::uint64_t{1} << 62;
}

/// d += a * b^T, 64 x 64 x 16.
template <int kScaleA = 1>
__device__ inline void multiply(float (&d)[32], std::uint64_t a, std::uint64_t b, int accumulate) {
#define FOUR(i) "+f"(d[4 * i]), "+f"(d[4 * i + 1]), "+f"(d[4 * i + 2]), "+f"(d[4 * i + 3])
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, %35, "
      "%36, %37, %38;\n}\n"
      : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)
      : "l"(a), "l"(b), "r"(accumulate), "n"(kScaleA), "n"(1), "n"(0), "n"(0));
#undef FOUR
}

template <int kPending>
__device__ inline void wait_for_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

__device__ inline std::uint32_t packed(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
