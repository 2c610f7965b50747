// What would run forever or die without a word: spins, a division by zero, a full stack, a wild pointer.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "emulator/emulator_test.h"
#include "ptx/atomic.cuh"
#include "ptx/mbarrier.cuh"

using namespace emulator_test;

namespace {

/// A generous bound is for users, not for tests.
emulator::Options impatient() {
  emulator::Options options;
  options.os_threads = 1;
  options.stall_seconds = 0.2;
  return options;
}

std::string here(int line) {
  return "tests/emulator/machine/faults_test.cpp:" + std::to_string(line);
}

__global__ void raw_read(const int* data, int index, int* result) {
  ptx::st_global(result, data[index]);
}
constexpr int kRawReadLine = __LINE__ - 2;

__global__ void raw_shared(int bytes) {
  (&ptx::dynamic_shared<char>())[bytes] = 1;
}
[[maybe_unused]] __global__ void null_read(int* result) {
  const volatile int* nothing = nullptr;
  ptx::st_global(result, *nothing);
}
__global__ void divide(int numerator, int denominator, int* result) {
  if (threadIdx.x == 5) ptx::st_global(result, numerator / denominator);
}
constexpr int kDivideLine = __LINE__ - 2;

__global__ void counts_for_ever(int* counter) {
  while (atomicAdd(counter, 1) != -1) __syncthreads();
}

int recurse(int depth) {  // NOLINT
  volatile char frame[1024];
  frame[depth % 1024] = 1;
  return depth == 0 ? frame[0] : recurse(depth - 1) + frame[depth % 1024];
}
__global__ void deep(int depth, int* result) {
  ptx::st_global(result, recurse(depth));
}

__global__ void spin_on_global(const int* flag) {
  if (threadIdx.x != 3) return;
  while (ptx::ld_global(flag) == 0) {
  }
}
constexpr int kSpinLine = __LINE__ - 3;

__global__ void spin_on_shared(int writer) {
  __shared__ int ready[4];
  if (threadIdx.x == 0) ptx::st_shared(&ready[2], 7);
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == writer) ptx::st_shared(&ready[2], 8);
  if (threadIdx.x == 1) {
    while (ptx::ld_shared(&ready[2]) == 7) {
    }
  }
}

__global__ void spin_on_pointer(const volatile int* flag) {
  if (threadIdx.x == 3) {
    while (*flag == 0) {
    }
  }
}
constexpr int kPointerLine = __LINE__ - 4;

__global__ void endless_walk(const int* data) {
  int sum = 0;
  for (int i = 0; sum >= 0; i = (i + 1) % 64) sum += ptx::ld_global(data + i);
}

__global__ void poll_flag(std::uint32_t* flag, std::uint32_t value) {
  if (threadIdx.x == 0) ptx::st_release_gpu(flag + 1, value);
  if (threadIdx.x == 32) {
    while (ptx::ld_acquire_gpu(flag + 1) != 2) {
    }
  }
}
constexpr int kFlagWriterLine = __LINE__ - 6;

struct Barriers {
  std::uint64_t full[2];
};
__global__ void poll_mbarrier() {
  auto& shared = ptx::dynamic_shared<Barriers>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full[1], 2);
  __syncthreads();
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[1]);
  if (threadIdx.x == 32) {
    while (!ptx::mbarrier_test_wait_parity(&shared.full[1], 0)) {
    }
  }
}

struct Ended {
  int status = -1;
  int signal = 0;
};

/// Runs body in a child process and returns how that ended.
template <typename Body>
Ended in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Catch2 has its own handlers; the emulator looks at what it finds when a launch begins.
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(number, SIG_DFL);
    body();
    _exit(0);
  }
  Ended ended;
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

}  // namespace

TEST_CASE("a raw read outside a buffer is named, with its place") {
  DeviceArray<int> data(std::vector<int>(1024, 5), "A");
  DeviceArray<int> result(1, "R");
  check_report(run(raw_read, one_cta(1), data.get(), 1024, result.get()), "global-out-of-bounds",
               {"0 bytes past the end of buffer A (4096 bytes)", "thread (0,0,0)", here(kRawReadLine)});
  CHECK(run(raw_read, one_cta(1), data.get(), 1023, result.get()).rule == "passed");
}

TEST_CASE("a raw write past the end of all shared memory is named") {
  const Outcome past = run(raw_shared, one_cta(1, 1024), 230 * 1024);
  CHECK(past.rule == "shared-out-of-bounds");
  CHECK(run(raw_shared, one_cta(1, 1024), 1023).rule == "passed");
}

TEST_CASE("a stack overflow is named") {
  DeviceArray<int> result(1, "R");
  check_report(run(deep, one_cta(1), 1000, result.get()), "stack-overflow",
               {"thread (0,0,0) (warp 0, lane 0) of CTA (0,0,0)", "tests/emulator/machine/faults_test.cpp:"});
  CHECK(run(deep, one_cta(1), 10, result.get()).rule == "passed");
}

TEST_CASE("a null pointer and an integer division by zero are reports of one launch, and the next one runs") {
  DeviceArray<int> result(1, "R");
#if !defined(__SANITIZE_ADDRESS__)  // UndefinedBehaviorSanitizer comes first
  CHECK(run(null_read, one_cta(1), result.get()).rule == "invalid-address");
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__aarch64__)  // Arm's division by zero is 0
  for (int repeat = 0; repeat < 3; ++repeat) {
    check_report(run(divide, one_cta(64), 7, 0, result.get()), "division-by-zero",
                 {"thread (5,0,0) (warp 0, lane 5) of CTA (0,0,0)", here(kDivideLine)});
  }
#endif
  CHECK(run(divide, one_cta(64), 7, 2, result.get()).rule == "passed");
  CHECK(result.host()[0] == 3);
}

TEST_CASE("a fault of host code keeps its default action") {
#if defined(__SANITIZE_ADDRESS__)
  skip_test("AddressSanitizer handles it");
#else
  DeviceArray<int> result(1, "R");
  const Ended ended = in_child([&] {
    run(divide, one_cta(64), 7, 2, result.get());
    const volatile int* nothing = nullptr;
    static_cast<void>(*nothing);
  });
  CHECK(ended.signal == SIGSEGV);
#endif
}

TEST_CASE("a spin on a plain load of global memory is a livelock that names buffer, value and place") {
  const emulator::ScopedOptions scope(impatient());
  DeviceArray<int> flags(std::vector<int>(8, 0), "flags");
  check_report(run(spin_on_global, one_cta(64), flags.get() + 2), "livelock",
               {"thread 3 polls at " + here(kSpinLine) + " ld_global: flags + 8 holds 0",
                "no thread has changed it since the kernel started"},
               {"resident"});
}

TEST_CASE("a spin on shared memory names the last writer, and lets the writer come") {
  const emulator::ScopedOptions scope(impatient());
  check_report(run(spin_on_shared, one_cta(64), -1), "livelock",
               {"__shared__ ready + 8 holds 7, which thread (0,0,0)"});
  const Outcome race = run(spin_on_shared, one_cta(64), 2);
  CHECK(race.rule == "shared-race");
}

TEST_CASE("a loop without any wrapper ends with the thread and the place") {
  const emulator::ScopedOptions scope(impatient());
  DeviceArray<int> flag(std::vector<int>(1, 0), "flag");
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Outcome outcome = run(spin_on_pointer, one_cta(64), flag.get());
    INFO(outcome.report);
    CHECK(outcome.rule == "livelock");
    CHECK(contains(outcome.report, "thread (3,0,0)"));
    CHECK((contains(outcome.report, here(kPointerLine)) || contains(outcome.report, here(kPointerLine + 1))));
  }
}

TEST_CASE("a loop of wrapped loads that never ends, ends") {
  const emulator::ScopedOptions scope(impatient());
  DeviceArray<int> data(std::vector<int>(64, 0), "data");
  check_report(run(endless_walk, one_cta(1), data.get()), "livelock", {"ld_global of data + "});
}

TEST_CASE("a livelock of atomics names the word, its value and who wrote it last") {
  const emulator::ScopedOptions scope(impatient());
  DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(4, 0), "flags");
  CHECK(run(poll_flag, one_cta(64), flags.get(), 2u).rule == "passed");
  check_report(
      run(poll_flag, one_cta(64), flags.get(), 1u), "livelock",
      {"ld_acquire_gpu: flags + 4 holds 1, which thread (0,0,0)", "wrote at " + here(kFlagWriterLine)});
}

TEST_CASE("a livelock of polls of an mbarrier names the barrier and what is missing") {
  check_report(run(poll_mbarrier, one_cta(64, sizeof(Barriers))), "livelock",
               {"mbarrier full[1]", "1 of 2 arrivals is missing"});
}

TEST_CASE("a loop that makes progress for ever ends where time is limited") {
  DeviceArray<int> counter(std::vector<int>{0}, "counter");
  emulator::Options options;
  options.launch_seconds = 0.2;
  const emulator::ScopedOptions scope(options);
  check_report(run(counts_for_ever, one_cta(64), counter.get()), "livelock", {"faults_test.cpp:"});
}
