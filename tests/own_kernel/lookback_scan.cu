// A scan in one pass with decoupled look-back: each tile publishes its sum, then its prefix, and a warp looks
// back over the preceding tiles until one has a prefix. Tiles are numbered by a ticket, so that the preceding
// tiles have started.
//
// Broken on purpose: -D NO_FENCE (a status may be visible before the sum that it describes), -D NO_READ_FENCE
// (the sum may be read before the status), -D TICKET_RACE (threads read the ticket before it has been
// stored), -D NO_LAST_BARRIER (threads read the prefix before it has been stored).
#include <cuda_runtime.h>
#include <cstdint>

constexpr int kThreads = 128, kItems = 4, kTile = kThreads * kItems;
enum : unsigned { INVALID = 0, AGGREGATE = 1, PREFIX = 2 };

__device__ unsigned ticket;

struct TileState {
  volatile unsigned* status;
  volatile int* aggregate;
  volatile int* prefix;
};

__device__ __forceinline__ int warp_inclusive(int x) {
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const int y = __shfl_up_sync(0xffffffffu, x, d);
    if ((threadIdx.x & 31) >= d) x += y;
  }
  return x;
}

__global__ void __launch_bounds__(kThreads)
    scan(const int* __restrict__ in, int* __restrict__ out, int n, TileState state) {
  __shared__ unsigned tile_id;
  __shared__ int warp_sums[kThreads / 32];
  __shared__ int running;
  if (threadIdx.x == 0) tile_id = atomicAdd(&ticket, 1u);
#ifndef TICKET_RACE
  __syncthreads();
#endif
  const unsigned tile = tile_id;
  int v[kItems];
  int sum = 0;
  const int first = tile * kTile + threadIdx.x * kItems;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    v[i] = first + i < n ? in[first + i] : 0;
    sum += v[i];
  }
  const int inclusive = warp_inclusive(sum);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  int before = 0, total = 0;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warp_sums[w];
    total += warp_sums[w];
  }
  if (warp == 0) {
    if (lane == 0) {
      if (tile == 0) {
        state.prefix[0] = total;
#ifndef NO_FENCE
        __threadfence();
#endif
        state.status[0] = PREFIX;
        running = 0;
      } else {
        state.aggregate[tile] = total;
#ifndef NO_FENCE
        __threadfence();
#endif
        state.status[tile] = AGGREGATE;
      }
    }
    if (tile > 0) {
      int sum_before = 0;
      int window = static_cast<int>(tile) - 1 - lane;
      while (true) {
        unsigned status = PREFIX;
        int value = 0;
        if (window >= 0) {
          while ((status = state.status[window]) == INVALID) {
          }
#ifndef NO_READ_FENCE
          __threadfence();
#endif
          value = status == PREFIX ? state.prefix[window] : state.aggregate[window];
        }
        const unsigned done = __ballot_sync(0xffffffffu, status == PREFIX);
        const int last = __ffs(done) - 1;  // -1: none
        if (done && lane > last) value = 0;
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) value += __shfl_xor_sync(0xffffffffu, value, d);
        sum_before += value;
        if (done) break;
        window -= 32;
      }
      if (lane == 0) {
        state.prefix[tile] = sum_before + total;
#ifndef NO_FENCE
        __threadfence();
#endif
        state.status[tile] = PREFIX;
        running = sum_before;
      }
    }
  }
#ifndef NO_LAST_BARRIER
  __syncthreads();
#endif
  int value = running + before + inclusive - sum;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    value += v[i];
    if (first + i < n) out[first + i] = value;
  }
}

void check_kernel(emulate::Run& run) {
  const int n = 7 * kTile + 100, tiles = (n + kTile - 1) / kTile;
  const std::vector<int> in = run.small_integers<int>(n);
  unsigned zero = 0;
  cudaMemcpyToSymbol(ticket, &zero, sizeof zero);
  TileState state;
  state.status = run.buffer("status", std::vector<unsigned>(tiles, 0));
  state.aggregate = run.buffer<int>("aggregate", tiles);
  state.prefix = run.buffer<int>("prefix", tiles);
  int* out = run.buffer<int>("out", n);
  scan<<<tiles, kThreads>>>(run.buffer("in", in), out, n, state);
  std::vector<int> expected(n);
  int sum = 0;
  for (int i = 0; i < n; ++i) expected[i] = sum += in[i];
  run.expect_equal("out", run.host(out), expected);
}
