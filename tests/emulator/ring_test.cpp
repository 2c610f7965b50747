// Ring's methods, one by one: a producer and two consumers that do nothing but pass k-tiles on, and what the
// emulator says when one of them calls a method too early, too often or with a state that is wrong.
#include "gemm/ring.cuh"

#include "gemm/tma_tile.cuh"
#include "hopper_test.h"

using namespace emulator_test;

namespace {

using T = gemm::WgmmaTiling<64, 8, 64, 1>;
constexpr int kStages = 3;
constexpr int kReaders = 2;
using Ring = gemm::Ring<T, kStages>;
using State = gemm::PipelineState<kStages>;

enum Variation {
  kAsItShouldBe,
  kTriesFirst,  // consumer_wait only where consumer_try_wait says no
  // All but the first two are wrong, in k-tile 1 or, where it says so, in the one that is in stage 1 after
  // it.
  kInitCountsOneMore,
  kInitCountsOneLess,
  kAcquiresThePhaseBefore,  // starts in phase 0
  kAcquiresThePhaseBehind,  // the k-tile after it
  kWaitsForThePhaseBefore,  // phase 1, which is complete from the start
  kTriesThePhaseBefore,
  kWaitsForThePhaseBehind,
  kReleasesBeforeItReads,
  kReleasesTwice,
  kReleasesTheStageBehind,
  kNeverReleases,
};

__device__ State wrong_if(bool wrong, State state) {
  if (wrong) state.phase ^= 1;
  return state;
}

/// Thread 0 loads, thread 32 * i reads what stands in the corner of A's k-tiles and writes it to out[i - 1].
__global__ void pass_on(ptx::TensorMap a_map, ptx::TensorMap b_map, int k_tiles, int variation, bf16* out) {
  auto& ring = ptx::dynamic_shared<Ring>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    ring.init(kReaders + (variation == kInitCountsOneMore) - (variation == kInitCountsOneLess));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (thread % 32 != 0) return;
  if (thread == 0) {
    State fill{0, 1};
    for (int i = 0; i < k_tiles; ++i) {
      const bool wrong = (variation == kAcquiresThePhaseBefore && i == 1) ||
                         (variation == kAcquiresThePhaseBehind && i == 1 + kStages);
      ring.producer_acquire(wrong_if(wrong, fill), i);
      gemm::load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, 0, 0, i * T::kK);
      fill.advance();
    }
    return;
  }
  State read{0, 0};
  for (int i = 0; i < k_tiles; ++i) {
    const bool here = i == 1;
    const bool tries = variation == kTriesFirst || variation == kTriesThePhaseBefore;
    const bool wrong = here && (variation == kWaitsForThePhaseBefore || variation == kTriesThePhaseBefore);
    if (!tries || !ring.consumer_try_wait(wrong_if(wrong, read)))
      ring.consumer_wait(wrong_if(wrong || (variation == kWaitsForThePhaseBehind && i == 1 + kStages), read),
                         i);
    if (variation == kReleasesBeforeItReads) ring.consumer_release(read);
    if (thread == 32 && i > 1 && variation == kReleasesBeforeItReads) __nanosleep(1);
    ptx::st_global(out + (thread / 32 - 1) * k_tiles + i, ptx::ld_shared(&ring.stage[read.stage].a[0][0][0]));
    State release = read;
    if (here && variation == kReleasesTheStageBehind) release.advance();
    const bool releases = variation != kReleasesBeforeItReads && !(here && variation == kNeverReleases);
    if (releases) ring.consumer_release(release);
    if (here && variation == kReleasesTwice) ring.consumer_release(release);
    read.advance();
  }
}

Outcome run_ring(int k_tiles, Variation variation) {
  const auto k = static_cast<std::size_t>(k_tiles * T::kK);
  const std::vector<bf16> a = arange(T::kM * k);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(arange(T::kN * k), "B");
  DeviceArray<bf16> out(static_cast<std::size_t>(kReaders * k_tiles));
  Outcome outcome = run(pass_on, one_cta(32 * (1 + kReaders), sizeof(Ring)),
                        gemm::operand_map<T>(device_a.get(), T::kM, k_tiles * T::kK, T::kM),
                        gemm::operand_map<T>(device_b.get(), T::kN, k_tiles * T::kK, T::kN), k_tiles,
                        static_cast<int>(variation), out.get());
  if (outcome.rule == "passed") {
    int right = 0;
    const std::vector<bf16> host = out.host();
    for (int i = 0; i < kReaders * k_tiles; ++i) {
      const bf16 corner = a[static_cast<std::size_t>(i % k_tiles * T::kK)];
      right += gemm::to_float(host[static_cast<std::size_t>(i)]) == gemm::to_float(corner);
    }
    CHECK(right == kReaders * k_tiles);
  }
  return outcome;
}

}  // namespace
TEST_CASE("x") {
  for (int v = 0; v <= kNeverReleases; ++v) {
    for (int s = 1; s < 4; ++s) {
      emulator::Options options;
      options.seed = static_cast<std::uint64_t>(s);
      const emulator::ScopedOptions scope(options);
      const Outcome o = run_ring(3 * kStages + 2, static_cast<Variation>(v));
      WARN(v << " " << o.rule << "\n" << o.report);
    }
  }
}
