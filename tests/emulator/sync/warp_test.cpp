// Instructions of a warp: which lanes must come, what they exchange, and that only __syncwarp orders memory.
#include <array>

#include "emulator/emulator_test.h"

namespace warp_test {

using namespace emulator_test;

namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void lane_missing(unsigned mask, int limit) {
  if (static_cast<int>(threadIdx.x) < limit) __syncwarp(mask);
}

__global__ void not_in_the_mask(unsigned mask) {
  __syncwarp(mask);
}

__global__ void different_masks(unsigned mask) {
  if (threadIdx.x % 32 < 16) {
    __syncwarp(mask);
  } else {
    __syncwarp(kAll);
  }
}

__global__ void halves() {
  const unsigned half = threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u;
  __syncwarp(half);
  __syncwarp();
  __syncwarp(half);
}

__global__ void barrier_against_warp(int limit) {
  if (static_cast<int>(threadIdx.x % 32) < limit) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

__global__ void shuffles(int* result) {
  const int lane = static_cast<int>(threadIdx.x);
  int* mine = result + lane * 8;
  ptx::st_global(mine + 0, __shfl_sync(kAll, lane, 5));
  ptx::st_global(mine + 1, __shfl_sync(kAll, lane, 5, 8));
  ptx::st_global(mine + 2, __shfl_up_sync(kAll, lane, 3));
  ptx::st_global(mine + 3, __shfl_up_sync(kAll, lane, 3, 16));
  ptx::st_global(mine + 4, __shfl_down_sync(kAll, lane, 7));
  ptx::st_global(mine + 5, __shfl_down_sync(kAll, lane, 7, 8));
  ptx::st_global(mine + 6, __shfl_xor_sync(kAll, lane, 17));
  ptx::st_global(mine + 7, __shfl_xor_sync(kAll, lane, 3, 4));
}

__global__ void wide_shuffle(double* result) {
  const double value = static_cast<double>(threadIdx.x) + 0.5;
  ptx::st_global(result + threadIdx.x, __shfl_xor_sync(kAll, value, 1));
}

__global__ void reduction(float* result) {
  float sum = static_cast<float>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAll, sum, distance);
  ptx::st_global(result + threadIdx.x, sum);
}

__global__ void read_a_lane_outside(unsigned mask, int source, int* result) {
  if (mask >> threadIdx.x & 1) ptx::st_global(result + threadIdx.x, __shfl_sync(mask, 1, source));
}

__global__ void bad_width(int width) {
  __shfl_sync(kAll, 1, 0, width);
}

__global__ void votes(unsigned* result) {
  const int lane = static_cast<int>(threadIdx.x);
  unsigned* mine = result + lane * 4;
  ptx::st_global(mine + 0, __ballot_sync(kAll, lane % 5 == 0));
  ptx::st_global(mine + 1, static_cast<unsigned>(__any_sync(kAll, lane == 9)));
  ptx::st_global(mine + 2, static_cast<unsigned>(__all_sync(kAll, lane != 9)));
  ptx::st_global(mine + 3, static_cast<unsigned>(__any_sync(kAll, 0)));
}

/// The lanes from `live` on return; the others vote, and exchange words through global memory.
__global__ void others_return(int live, int* words, unsigned* result) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= live) return;
  ptx::st_global(result + lane * 3, __ballot_sync(kAll, lane % 2));
  ptx::st_global(result + lane * 3 + 1, static_cast<unsigned>(__all_sync(kAll, lane < live)));
  ptx::st_global(words + lane, lane);
  __syncwarp();
  ptx::st_global(result + lane * 3 + 2, static_cast<unsigned>(ptx::ld_global(words + (lane ^ 1))));
}

/// The same with a shuffle from one lane.
__global__ void reads_lane(int live, int source, int* result) {
  if (static_cast<int>(threadIdx.x) >= live) return;
  ptx::st_global(result + threadIdx.x, __shfl_sync(kAll, 1, source));
}

__global__ void asks_who_is_active(unsigned* masks) {
  const unsigned mask = __activemask();
  ptx::st_global(masks + threadIdx.x, __shfl_sync(mask, mask, __ffs(static_cast<int>(mask)) - 1));
}

/// Neighbours exchange through shared memory; `order` says what stands between the write and the read.
__global__ void exchange(int order, int* result) {
  __shared__ int words[32];
  const unsigned lane = threadIdx.x;
  ptx::st_shared(&words[lane], static_cast<int>(lane));
  if (order == 1) __syncwarp();
  if (order == 2) __shfl_sync(kAll, 0, 0);
  if (order == 3) __syncthreads();
  ptx::st_global(result + lane, ptx::ld_shared(&words[lane ^ 1]));
}

}  // namespace

TEST_CASE("a mask may name lanes that have returned, which take no part") {
  CHECK_PASSES(run(lane_missing, one_cta(32), kAll, 31));
  CHECK_PASSES(run(lane_missing, one_cta(32), kAll, 32));
  CHECK_PASSES(run(lane_missing, one_cta(32), 0xffu, 8));
  DeviceArray<int> words(32);
  DeviceArray<unsigned> result(8 * 3);
  CHECK_PASSES(run(others_return, one_cta(32), 8, words.get(), result.get()));
  const std::vector<unsigned> values = result.host();
  for (unsigned lane = 0; lane < 8; ++lane) {
    CHECK(values[lane * 3] == 0xaa);            // votes of lanes that are there
    CHECK(values[lane * 3 + 1] == 1);           // all of them agree
    CHECK(values[lane * 3 + 2] == (lane ^ 1));  // and __syncwarp orders their accesses
  }
}

TEST_CASE("warp-shuffle: a lane that has returned has no value") {
  DeviceArray<int> result(32);
  CHECK_PASSES(run(reads_lane, one_cta(32), 8, 7, result.get()));
  CHECK_BREAKS("warp-shuffle", run(reads_lane, one_cta(32), 8, 8, result.get()));
  CHECK(contains(run(reads_lane, one_cta(32), 8, 8, result.get()).report,
                 "reads from lane 8, which has returned from the kernel"));
}

TEST_CASE("__activemask: all lanes of an answer get the same one, which may name some lanes or all") {
  DeviceArray<unsigned> masks(32);
  bool some = false;
  bool all = false;
  under_all_schedules([&] {
    masks.fill(0);
    require_passes(run(asks_who_is_active, one_cta(32), masks.get()));
    const std::vector<unsigned> values = masks.host();
    for (std::size_t lane = 0; lane < 32; ++lane) {
      CHECK((values[lane] >> lane & 1) == 1);
      for (std::size_t other = 0; other < 32; ++other) {
        if (values[lane] >> other & 1) CHECK(values[other] == values[lane]);
      }
    }
    (values[0] == kAll ? all : some) = true;
  });
  CHECK(some);
  CHECK(all);
}

TEST_CASE("warp-divergence: the mask names lanes that the warp does not have") {
  CHECK_BREAKS("warp-divergence", run(lane_missing, one_cta(20), kAll, 32));
  CHECK_PASSES(run(lane_missing, one_cta(20), 0xfffffu, 32));
}

TEST_CASE("warp-divergence: the mask does not name the calling lane") {
  CHECK_BREAKS("warp-divergence", run(not_in_the_mask, one_cta(32), 0x7fffffffu));
  CHECK_PASSES(run(not_in_the_mask, one_cta(32), kAll));
}

TEST_CASE("warp-divergence: lanes of one warp name different masks") {
  CHECK_BREAKS("warp-divergence", run(different_masks, one_cta(32), 0xffffu | 1u << 16));
  // A shuffle's mask may name a part of the warp.
  CHECK_FALSE(contains(run(different_masks, one_cta(32), 0xffffu | 1u << 16).report, "of the whole warp"));
  CHECK_PASSES(run(different_masks, one_cta(32), kAll));
}

TEST_CASE("parts of a warp may synchronise on their own") {
  CHECK_PASSES(run(halves, one_cta(64)));
}

TEST_CASE("warp-divergence: half a warp waits for the other half, which waits for the CTA") {
  CHECK_BREAKS("warp-divergence", run(barrier_against_warp, one_cta(32), 16));
  CHECK_PASSES(run(barrier_against_warp, one_cta(32), 32));
  CHECK_PASSES(run(barrier_against_warp, one_cta(32), 0));
}

TEST_CASE("shuffles move values between lanes as the programming guide says") {
  DeviceArray<int> result(32 * 8);
  CHECK_PASSES(run(shuffles, one_cta(32), result.get()));
  const std::vector<int> values = result.host();
  for (int lane = 0; lane < 32; ++lane) {
    const int* mine = &values[static_cast<std::size_t>(lane) * 8];
    CHECK(mine[0] == 5);
    CHECK(mine[1] == lane / 8 * 8 + 5);
    CHECK(mine[2] == (lane < 3 ? lane : lane - 3));
    CHECK(mine[3] == (lane % 16 < 3 ? lane : lane - 3));
    CHECK(mine[4] == (lane + 7 > 31 ? lane : lane + 7));
    CHECK(mine[5] == (lane % 8 + 7 > 7 ? lane : lane + 7));
    CHECK(mine[6] == (lane ^ 17));
    CHECK(mine[7] == (lane ^ 3));
  }
}

TEST_CASE("a shuffle of 8 bytes") {
  DeviceArray<double> result(32);
  CHECK_PASSES(run(wide_shuffle, one_cta(32), result.get()));
  const std::vector<double> values = result.host();
  for (int lane = 0; lane < 32; ++lane) CHECK(values[static_cast<std::size_t>(lane)] == (lane ^ 1) + 0.5);
}

TEST_CASE("a butterfly reduction") {
  DeviceArray<float> result(64);
  CHECK_PASSES(run(reduction, one_cta(64), result.get()));
  const std::vector<float> values = result.host();
  CHECK(values[0] == 496.0f);
  CHECK(values[31] == 496.0f);
  CHECK(values[63] == 496.0f + 32 * 32);
}

TEST_CASE("warp-shuffle: the source lane must take part") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("warp-shuffle", run(read_a_lane_outside, one_cta(32), 0xffu, 8, result.get()));
  CHECK_PASSES(run(read_a_lane_outside, one_cta(32), 0xffu, 7, result.get()));
}

TEST_CASE("warp-shuffle: the width is a power of two up to 32") {
  CHECK_BREAKS("warp-shuffle", run(bad_width, one_cta(32), 12));
  CHECK_PASSES(run(bad_width, one_cta(32), 16));
}

TEST_CASE("votes see the predicates of all lanes") {
  DeviceArray<unsigned> result(32 * 4);
  CHECK_PASSES(run(votes, one_cta(32), result.get()));
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::vector<unsigned> values = result.host();
    CHECK(values[lane * 4] == 0x42108421u);
    CHECK(values[lane * 4 + 1] == 1);
    CHECK(values[lane * 4 + 2] == 0);
    CHECK(values[lane * 4 + 3] == 0);
  }
}

TEST_CASE("shared-race: lanes of a warp are not ordered by being in one warp") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("shared-race", run(exchange, one_cta(32), 0, result.get()));
  CHECK(contains(run(exchange, one_cta(32), 0, result.get()).report, "__syncwarp"));
  CHECK_PASSES(run(exchange, one_cta(32), 1, result.get()));
  CHECK_PASSES(run(exchange, one_cta(32), 3, result.get()));
}

TEST_CASE("shared-race: a shuffle orders no memory accesses") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("shared-race", run(exchange, one_cta(32), 2, result.get()));
}

}  // namespace warp_test
