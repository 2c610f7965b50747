// A kernel that ptxas complains about: it touches the accumulators of a wgmma that is still running (C7510
// ... C7517), so that the pipeline is serialised.
#include <cstdint>

extern "C" __global__ void __launch_bounds__(128)
    serialised(float* out, std::uint64_t a, std::uint64_t b, int k) {
  float d[4] = {};
  for (int i = 0; i < k; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b)
        : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    d[0] += 1.0f;
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 4; ++i) out[i * 128 + threadIdx.x] = d[i];
}
