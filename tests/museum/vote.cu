// Each warp collects matches in a buffer of its own and writes them out when all lanes have looked at their
// keys.
//
// As reported: -D VOTE_ONLY (a vote is taken for a barrier, after the counter has been reset and after it has
// been counted).
#include <vector>

constexpr int kWarps = 4;

#ifdef VOTE_ONLY
__device__ void warp_barrier() {
  __any_sync(0xffffffffu, true);
}
#else
__device__ void warp_barrier() {
  __syncwarp();
}
#endif

__global__ void collect(const int* keys, int* out, int* counts, int rounds) {
  __shared__ int buffer[kWarps][32];
  __shared__ int counter[kWarps];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int* to = out + warp * rounds * 32;
  int written = 0;
  for (int round = 0; round < rounds; ++round) {
    // ANCHOR: kernel
    if (lane == 0) counter[warp] = 0;
    warp_barrier();
    const int key = keys[(warp * rounds + round) * 32 + lane];
    if (key > 0) buffer[warp][atomicAdd(&counter[warp], 1)] = key;
    warp_barrier();
    const int count = counter[warp];
    if (static_cast<int>(lane) < count) to[written + lane] = buffer[warp][lane];
    written += count;
    warp_barrier();
    // ANCHOR_END: kernel
  }
  if (lane == 0) counts[warp] = written;
}

void check_kernel(emulate::Run& run) {
  const int rounds = 8;
  const std::vector<int> keys = run.small_integers<int>(kWarps * rounds * 32);
  int* counts = run.buffer<int>("counts", kWarps);
  int* out = run.buffer<int>("out", keys.size());
  collect<<<1, kWarps * 32>>>(run.buffer("keys", keys), out, counts, rounds);
  std::vector<int> expected(kWarps);
  for (size_t i = 0; i < keys.size(); ++i) expected[i / (rounds * 32)] += keys[i] > 0 ? 1 : 0;
  run.expect_equal("counts", run.host(counts), expected);
}
