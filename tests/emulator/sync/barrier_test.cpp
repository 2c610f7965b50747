// Barriers of the CTA: which threads must come, and what they order.
#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"

namespace barrier_test {

using namespace emulator_test;

namespace {

__global__ void some_threads_skip(int limit) {
  if (static_cast<int>(threadIdx.x) < limit) __syncthreads();
}

__global__ void some_threads_return(int limit) {
  if (static_cast<int>(threadIdx.x) >= limit) return;
  __syncthreads();
}

__global__ void two_places(int limit) {
  if (static_cast<int>(threadIdx.x) < limit) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void different_counts(int extra) {
  __syncthreads();
  const int rounds = threadIdx.x == 0 ? 2 + extra : 2;
  for (int i = 0; i < rounds; ++i) __syncthreads();
}

__global__ void counting(int* result) {
  const int thread = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(thread % 3 == 0);
  const int any = __syncthreads_or(thread == 77);
  const int all = __syncthreads_and(thread != 77);
  const int none = __syncthreads_or(0);
  const int every = __syncthreads_and(1);
  ptx::st_global(result + thread, count * 10000 + any * 1000 + all * 100 + none * 10 + every);
}

}  // namespace

TEST_CASE("barrier-divergence: threads that skip a barrier are named") {
  CHECK_BREAKS("barrier-divergence", run(some_threads_skip, one_cta(256), 128));
  const Outcome outcome = run(some_threads_skip, one_cta(256), 128);
  CHECK(outcome.report.rfind("barrier-divergence: ", 0) == 0);
  check_text(outcome.report, {"threads 0-127 wait at tests/emulator/sync/barrier_test.cpp:", "__syncthreads",
                              "threads 128-255 returned from the kernel",
                              "missing  threads 128-255 at tests/emulator/sync/barrier_test.cpp:",
                              "returned from the kernel without reaching it", "PTX ISA"});
  CHECK_PASSES(run(some_threads_skip, one_cta(256), 256));
  CHECK_PASSES(run(some_threads_skip, one_cta(256), 0));
}

TEST_CASE("barrier-divergence: a return before the barrier") {
  CHECK_BREAKS("barrier-divergence", run(some_threads_return, one_cta(96), 95));
  // The hardware lets this pass; the report does not say otherwise.
  CHECK(contains(run(some_threads_return, one_cta(96), 95).report, "This course's rule is stricter"));
  CHECK_PASSES(run(some_threads_return, one_cta(96), 96));
}

TEST_CASE("barrier-divergence: one CTA, two barriers in the source") {
  CHECK_BREAKS("barrier-divergence", run(two_places, one_cta(64), 32));
  CHECK_FALSE(contains(run(two_places, one_cta(64), 32).report, "missing"));  // nobody has returned
  CHECK_PASSES(run(two_places, one_cta(64), 64));
}

TEST_CASE("barrier-divergence can be switched off: returned threads, and warps in different places") {
  using emulator::CourseRule;
  CHECK(contains(run(some_threads_return, one_cta(96), 95).report, "--allow barrier-divergence"));
  CHECK(contains(run(two_places, one_cta(64), 32).report, "--allow barrier-divergence"));
  CHECK_FALSE(contains(run(two_places, one_cta(32), 16).report, "--allow"));
  const emulator::ScopedCourseRule off(CourseRule::kBarrierDivergence, false);
  CHECK_PASSES(run(some_threads_return, one_cta(96), 95));
  CHECK_PASSES(run(some_threads_skip, one_cta(256), 128));
  CHECK_PASSES(run(two_places, one_cta(64), 32));
  CHECK_BREAKS("barrier-divergence", run(two_places, one_cta(32), 16));  // of one warp
}

TEST_CASE("barrier-divergence: one barrier more than the others") {
  CHECK_BREAKS("barrier-divergence", run(different_counts, one_cta(64), 1));
  CHECK_PASSES(run(different_counts, one_cta(64), 0));
}

TEST_CASE("__syncthreads_count, _or and _and reduce over the CTA") {
  DeviceArray<int> result(100);
  CHECK_PASSES(run(counting, one_cta(100), result.get()));
  for (const int value : result.host()) CHECK(value == 34 * 10000 + 1000 + 0 + 0 + 1);
}

}  // namespace barrier_test
