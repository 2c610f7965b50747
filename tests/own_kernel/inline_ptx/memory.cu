// Loads, stores, atomics and what the threads of a warp or CTA do together, in inline PTX.
//
// Broken on purpose: -D NO_BARRIER (the shared words are read before the other threads have written them), -D
// WEAK_FLAG (a CTA's flag is stored without a release).
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

using u32 = std::uint32_t;
using u64 = std::uint64_t;

#define SHARED(pointer) static_cast<u32>(__cvta_generic_to_shared(pointer))

/// Vectors and single elements, through every state space.
__global__ void spaces(const u32* in, u32* out) {
  __shared__ __align__(16) u32 tile[128];
  const u32 lane = threadIdx.x;
  u32 a, b, c, d;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "l"(in + 4 * lane));
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(SHARED(tile + 4 * lane)), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
#ifndef NO_BARRIER
  asm volatile("bar.sync 0;" ::: "memory");
#endif
  u32 e, f;
  asm volatile("ld.shared.u32 %0, [%1+16];" : "=r"(e) : "r"(SHARED(tile) + 4 * ((lane + 5) % 28)) : "memory");
  asm volatile("ld.u32 %0, [%1];" : "=r"(f) : "l"(tile + 127 - lane) : "memory");  // a generic address
  std::uint16_t half;
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(half) : "r"(SHARED(tile + lane)) : "memory");
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(out + 4 * lane), "r"(e), "r"(f) : "memory");
  asm volatile("st.u32 [%0+8], %1;" ::"l"(out + 4 * lane), "r"(u32{half}) : "memory");
  asm volatile("{ .reg .u64 p; cvta.to.global.u64 p, %0; st.global.u32 [p + 12], %1; }" ::"l"(out + 4 * lane),
               "r"(a ^ b ^ c ^ d)
               : "memory");
}

/// Copies of which odd lanes ignore the source, so that zeros arrive, and of which half of the bytes are
/// read.
__global__ void copies(const u32* in, u32* out) {
  __shared__ __align__(16) u32 tile[128], halves[128];
  const u32 lane = threadIdx.x;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 16, p; }" ::"r"(
                   SHARED(tile + 4 * lane)),
               "l"(in + 4 * lane), "r"(lane % 2)
               : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(SHARED(halves + 4 * lane)),
               "l"(in + 4 * lane), "r"(8)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[2 * lane] = tile[4 * lane + 3];
  out[2 * lane + 1] = halves[4 * lane + 1] + halves[4 * lane + 2];
}

/// Votes, shuffles and reductions of a warp.
__global__ void warp(u32* out) {
  const u32 lane = threadIdx.x % 32;
  u32 result[12] = {};
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 7; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(result[0])
               : "r"(lane));
  asm volatile(
      "{ .reg .pred p, q; setp.lt.u32 p, %1, 32; vote.sync.all.pred q, p, -1; selp.u32 %0, 1, 0, q; }"
      : "=r"(result[1])
      : "r"(lane));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 3, 0x1f, -1;" : "=r"(result[2]) : "r"(100 + lane));
  asm volatile("shfl.sync.down.b32 %0, %1, 4, 0x181f, -1;"
               : "=r"(result[3])
               : "r"(100 + lane));  // groups of 8
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 2, 0x0, -1; selp.u32 %1, 1, 0, p; }"
               : "=&r"(result[4]), "=r"(result[5])
               : "r"(100 + lane));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, -1;"
               : "=r"(result[6])
               : "r"(100 + lane), "r"((lane * 5) % 32));
  asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(result[7]) : "r"(lane));
  asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(result[8]) : "r"(static_cast<int>(lane) - 9));
  asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(result[9]) : "r"(lane / 8));
  u32 is_leader = 0, leader = 0;
  asm volatile("{ .reg .pred p; elect.sync %0|p, -1; @p mov.u32 %1, 1; }" : "=r"(leader), "+r"(is_leader));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(result[10]));
  u32 below;
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  result[10] += below;
  result[11] = is_leader == (leader == lane ? 1u : 0u) ? 1 : 0;
  for (u32 i = 0; i < 12; ++i) out[12 * threadIdx.x + i] = result[i];
}

/// Named barriers and atomics in both spaces.
__global__ void atomics(u32* counters, float* sums) {
  __shared__ u32 count;
  __shared__ u32 largest;
  if (threadIdx.x == 0) count = largest = 0;
  asm volatile("barrier.sync 0;" ::: "memory");
  u32 old;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(SHARED(&count)), "r"(2u) : "memory");
  if (old > 126) asm volatile("trap;");
  asm volatile("red.shared.max.u32 [%0], %1;" ::"r"(SHARED(&largest)), "r"(threadIdx.x * 3 % 64) : "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counters) : "memory");
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(sums), "f"(0.5f), "f"(2.0f) : "memory");
  u32 swapped;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(swapped)
               : "l"(counters + 1), "r"(threadIdx.x), "r"(threadIdx.x + 1)
               : "memory");
  if (swapped > 64) asm volatile("trap;");
  u32 any;
  asm volatile(
      "{ .reg .pred p, q; setp.eq.u32 p, %1, 63; bar.red.or.pred q, 1, 64, p; selp.u32 %0, 1, 0, q; }"
      : "=r"(any)
      : "r"(threadIdx.x)
      : "memory");
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 2, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");
  }
  if (blockIdx.x == 0 && threadIdx.x == 40) {
    counters[2] = count;
    counters[3] = largest;
    counters[4] = any;
  }
}

/// The first CTA hands a value to the second one.
__global__ void flag(const u32* in, u32* slot, u32* ready, u32* out) {
  if (blockIdx.x == 0) {
    slot[threadIdx.x] = in[threadIdx.x] + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef WEAK_FLAG
      asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(ready) : "memory");
#else
      asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(ready) : "memory");
#endif
    }
  } else {
    if (threadIdx.x == 0) {
      u32 seen = 0;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
      } while (seen == 0);
    }
    __syncthreads();
    out[threadIdx.x] = slot[threadIdx.x];
  }
}

void check_kernel(emulate::Run& run) {
  std::vector<u32> in(128);
  for (u32 i = 0; i < 128; ++i) in[i] = i * 2654435761u;
  u32* const spaced = run.buffer<u32>("spaced", 128);
  spaces<<<1, 32>>>(run.buffer("in", in), spaced);
  std::vector<u32> expected(128);
  for (u32 i = 0; i < 32; ++i) {
    expected[4 * i] = in[(i + 5) % 28 + 4];
    expected[4 * i + 1] = in[127 - i];
    expected[4 * i + 2] = in[i] & 0xffffu;
    expected[4 * i + 3] = in[4 * i] ^ in[4 * i + 1] ^ in[4 * i + 2] ^ in[4 * i + 3];
  }
  run.expect_equal("spaced", run.host(spaced), expected);

  u32* const copied = run.buffer<u32>("copied", 64);
  copies<<<1, 32>>>(run.buffer("in of copies", in), copied);
  std::vector<u32> brought(64);
  for (u32 i = 0; i < 32; ++i) {
    brought[2 * i] = i % 2 == 0 ? in[4 * i + 3] : 0;
    brought[2 * i + 1] = in[4 * i + 1];
  }
  run.expect_equal("copied", run.host(copied), brought);

  u32* const warped = run.buffer<u32>("warped", 12 * 32);
  warp<<<1, 32>>>(warped);
  std::vector<u32> of_warp;
  for (u32 i = 0; i < 32; ++i) {
    for (const u32 value :
         {127u, 1u, 100 + (i ^ 3), 100 + (i % 8 < 4 ? i + 4 : i), 100 + (i < 2 ? i : i - 2), i < 2 ? 0u : 1u,
          100 + i * 5 % 32, 496u, static_cast<u32>(-9), 0xffu << (i / 8 * 8), i + ((1u << i) - 1), 1u})
      of_warp.push_back(value);
  }
  run.expect_equal("warped", run.host(warped), of_warp);

  u32* const counters = run.buffer("counters", std::vector<u32>(5, 0));
  float* const sums = run.buffer("sums", std::vector<float>(2, 0));
  atomics<<<2, 64>>>(counters, sums);
  const std::vector<u32> counted = run.host(counters);
  run.expect_equal("counters", std::vector<u32>{counted[0], counted[2], counted[3], counted[4]},
                   std::vector<u32>{128, 128, 63, 1});
  run.expect_equal("sums", run.host(sums), std::vector<float>{64, 256});

  u32* const out = run.buffer<u32>("out", 32);
  const u32* given = run.buffer("in of flag", in);
  u32* slot = run.buffer<u32>("slot", 32);
  u32* ready = run.buffer("ready", std::vector<u32>(1, 0));
  u32* handed_to = out;
  void* arguments[] = {&given, &slot, &ready, &handed_to};
  cudaLaunchCooperativeKernel((void*)flag, 2, 32, arguments);
  std::vector<u32> handed(32);
  for (u32 i = 0; i < 32; ++i) handed[i] = in[i] + 1;
  run.expect_equal("out", run.host(out), handed);
}
