// Hopper's asynchronous engines in machine code: a ring of tiles that TMA fills and wgmma reads. `ring` does
// it as the course does, the others each do one thing wrong. They are compiled and read, never run.
#include <cuda.h>

#include <cstdint>

constexpr int kStages = 4;
constexpr int kThreads = 128;
constexpr int kTile = 64 * 64;  // 16-bit elements of one operand: 64 rows of 128 bytes

struct Shared {
  std::uint16_t a[kStages][kTile];
  std::uint16_t b[kStages][kTile];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

__device__ __forceinline__ std::uint32_t address_of(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ void init(std::uint64_t* barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void wait(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address_of(barrier)), "r"(parity)
        : "memory");
}
__device__ __forceinline__ void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ __forceinline__ void load(std::uint16_t* tile, const CUtensorMap* map, int x, int y,
                                     std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)),
               "r"(2 * kTile)
               : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(address_of(tile)),
      "l"(map), "r"(x), "r"(y), "r"(address_of(barrier))
      : "memory");
}
__device__ __forceinline__ std::uint64_t descriptor(const std::uint16_t* tile) {
  constexpr std::uint64_t kLayout = std::uint64_t{1} << 62 | std::uint64_t{64} << 32 | std::uint64_t{1} << 16;
  return kLayout | (address_of(tile) & 0x3ffff) >> 4;
}
// 64 x 8 x 16: a narrow one, for the sake of short listings.
__device__ __forceinline__ void multiply(float (&d)[4], std::uint64_t a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b)
               : "memory");
}
__device__ __forceinline__ void fence(float (&d)[4]) {
  for (float& value : d) asm volatile("" : "+f"(value)::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_group(float (&d)[4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  for (float& value : d) asm volatile("" : "+f"(value)::"memory");
}
__device__ __forceinline__ void store(float* out, const float (&d)[4]) {
  for (int i = 0; i < 4; ++i) out[i * kThreads + threadIdx.x] = d[i];
}

extern __shared__ __align__(1024) unsigned char dynamic_shared[];

// Every thread waits for the tile, four multiplications go one behind the other, one group stays in flight,
// and the stage before is released and filled again.
extern "C" __global__ void __launch_bounds__(kThreads)
    ring(const __grid_constant__ CUtensorMap map, float* out, int k_tiles) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  if (threadIdx.x == 0)
    for (int i = 0; i < kStages; ++i) {
      init(&shared.full[i], 2);  // a and b
      init(&shared.empty[i], 1);
    }
  __syncthreads();
  int filled = 0;
  const auto fill = [&] {
    const int stage = filled % kStages;
    wait(&shared.empty[stage], filled / kStages % 2 ^ 1);
    load(shared.a[stage], &map, filled * 64, 0, &shared.full[stage]);
    load(shared.b[stage], &map, filled * 64, 64, &shared.full[stage]);
    ++filled;
  };
  if (threadIdx.x == 0)
    while (filled < kStages && filled < k_tiles) fill();
  float d[4] = {};
#pragma unroll 1
  for (int i = 0; i < k_tiles; ++i) {
    const int stage = i % kStages;
    wait(&shared.full[stage], i / kStages % 2);
    fence(d);
#pragma unroll
    for (int k = 0; k < 64; k += 16)
      multiply(d, descriptor(shared.a[stage] + k), descriptor(shared.b[stage] + k));
    commit();
    wait_group<1>(d);
    if (i > 0 && threadIdx.x == 0) {
      arrive(&shared.empty[(i - 1) % kStages]);
      if (filled < k_tiles) fill();
    }
  }
  wait_group<0>(d);
  store(out, d);
}

// Nothing is in flight: every multiplication is a group of its own and is waited for.
extern "C" __global__ void __launch_bounds__(kThreads) one_at_a_time(float* out, int k_tiles) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  float d[4] = {};
#pragma unroll 1
  for (int i = 0; i < k_tiles; ++i) {
#pragma unroll
    for (int k = 0; k < 64; k += 16) {
      fence(d);
      multiply(d, descriptor(shared.a[i % kStages] + k), descriptor(shared.b[i % kStages] + k));
      commit();
      wait_group<0>(d);
    }
  }
  store(out, d);
}

// Between two multiplications the place of the next tile is computed, one step after the other.
extern "C" __global__ void __launch_bounds__(kThreads) long_address(float* out, int k_tiles) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  float d[4] = {};
#pragma unroll 1
  for (int i = 0; i < k_tiles; ++i) {
    std::uint32_t place = i;
    fence(d);
#pragma unroll
    for (int k = 0; k < 64; k += 16) {
#pragma unroll
      for (int step = 0; step < 16; ++step) asm volatile("mad.lo.u32 %0, %0, %0, 1;" : "+r"(place)::"memory");
      multiply(d, descriptor(shared.a[place % kStages] + k), descriptor(shared.b[place % kStages] + k));
    }
    commit();
    wait_group<0>(d);
  }
  store(out, d);
}
