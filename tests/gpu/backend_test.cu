// harness/backend/backend.h on the GPU: what it says of the device, and how it says that something failed.
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "harness/backend/watchdog.h"
#include "ptx/launch.cuh"

// Not anonymous: nvcc and the test framework both rely on that name.
namespace backend_test {

namespace ptx = gemm::ptx;

using gpu_test::DeviceArray;
using harness::Error;

__global__ void store_kernel(int* address, int value) {
  *address = value;
}

__global__ void spin_kernel(const volatile int* flag) {
  while (*flag != 42) {
  }
}

__global__ void __launch_bounds__(128) bounded_kernel(int* address) {
  *address = 1;
}

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no exception";
}

TEST_CASE("device_info: plausible numbers") {
  if (gpu_test::skip_without_gpu()) return;
  const harness::DeviceInfo device = harness::device_info();
  CHECK_FALSE(device.name.empty());
  CHECK_FALSE(device.is_emulator);
  CHECK(device.sm_count > 0);
  CHECK(device.max_threads_per_sm >= 1024);
  CHECK(device.max_ctas_per_sm >= 16);
  CHECK(device.registers_per_sm == 65536);
  CHECK(device.shared_bytes_per_sm > device.shared_bytes_per_cta);
  CHECK(device.shared_bytes_per_cta >= 99 * 1024);
  CHECK(device.reserved_shared_bytes == 1024);
  CHECK(device.l2_bytes > 1'000'000);
  CHECK(device.memory_free_bytes <= device.memory_bytes);
  CHECK(device.clock_hz > 0.5e9);
  CHECK(device.clock_hz < 5e9);
  CHECK(device.memory_bytes_per_second > 1e11);
  CHECK(device.memory_bytes_per_second < 2e13);
  CHECK(contains(device.driver_version, "."));
  CHECK(contains(device.runtime_version, "."));
  if (device.compute_capability == 90) {
    CHECK(device.shared_bytes_per_cta == 227 * 1024);
    CHECK(device.shared_bytes_per_sm == 228 * 1024);
  }
}

TEST_CASE("memory: what is written comes back, fills fill") {
  if (gpu_test::skip_without_gpu()) return;
  const std::vector<std::uint32_t> values{1, 2, 3, 0xffffffff};
  const DeviceArray<std::uint32_t> array(values);
  CHECK(array.read() == values);
  harness::fill_device(array.get() + 1, 0xab, 5);
  CHECK(array.read() == std::vector<std::uint32_t>{1, 0xabababab, 0xab, 0xffffffff});
}

TEST_CASE("memory: too much is refused with what is needed and what is free, and nothing stays broken") {
  if (gpu_test::skip_without_gpu()) return;
  check_text(message_of([] { harness::device_allocate(std::size_t{1} << 50, "B"); }), {"B needs", "free"});
  const DeviceArray<int> array(1);
  ptx::launch(store_kernel, {}, nullptr, array.get(), 7);
  CHECK(array.read() == std::vector<int>{7});
}

TEST_CASE("launch: a bad configuration is an exception, not a silent failure") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceArray<int> array(1);
  const auto launch = [&](const ptx::LaunchShape& shape) {
    return message_of([&] { ptx::launch(bounded_kernel, shape, nullptr, array.get()); });
  };
  CHECK(launch({}) == "no exception");
  harness::synchronize();
  CHECK(contains(launch({.grid = {1}, .block = {2048}}), "failed"));  // more than a block can have
  CHECK(contains(launch({.grid = {1}, .block = {256}}), "failed"));   // more than __launch_bounds__
  CHECK(contains(launch({.grid = {1}, .block = {128}, .cluster = {}, .shared_bytes = 1 << 20}), "failed"));
  CHECK(contains(
      launch({.grid = {1u << 20}, .block = {128}, .cluster = {}, .shared_bytes = 0, .co_resident = true}),
      "failed"));
  CHECK(launch({}) == "no exception");  // none of them sticks
  harness::synchronize();
}

TEST_CASE("kernel_resources: what the compiler assigned") {
  if (gpu_test::skip_without_gpu()) return;
  const auto resources = harness::kernel_resources(ptx::kernel_handle(bounded_kernel));
  CHECK(resources.registers > 0);
  CHECK(resources.registers <= 255);
  CHECK(resources.max_threads == 128);
  CHECK(resources.local_bytes == 0);
  CHECK(resources.static_shared_bytes == 0);
  CHECK(harness::resident_ctas_per_sm(ptx::kernel_handle(bounded_kernel), 128, 0) >= 8);
}

// A failed or hanging kernel takes its process down, so these run in a process of their own: a hidden test of
// this same program, which does the damage only when it is told to.
constexpr const char* kDamageVariable = "GEMM_STEPS_TEST_DAMAGE";

bool told_to_do_damage() {
  if (std::getenv(kDamageVariable) != nullptr) return true;
  skip_test("another test runs this one in a process of its own");
  return false;
}

TEST_CASE("damage: store outside of every buffer", "[.]") {
  if (!told_to_do_damage()) return;
  std::fprintf(stderr, "message: %s\n", message_of([] {
                                          ptx::launch(store_kernel, {}, nullptr,
                                                      reinterpret_cast<int*>(std::uintptr_t{1} << 46), 1);
                                          harness::synchronize();
                                        }).c_str());
}

TEST_CASE("damage: misaligned store", "[.]") {
  if (!told_to_do_damage()) return;
  const DeviceArray<int> array(4);
  std::fprintf(stderr, "message: %s\n",
               message_of([&] {
                 auto* odd = reinterpret_cast<int*>(reinterpret_cast<std::uintptr_t>(array.get()) + 1);
                 ptx::launch(store_kernel, {}, nullptr, odd, 1);
                 harness::synchronize();
               }).c_str());
}

TEST_CASE("damage: a kernel that never ends", "[.]") {
  if (!told_to_do_damage()) return;
  const DeviceArray<int> flag(std::vector<int>{0});
  harness::set_watchdog_limit(std::chrono::duration<double>(2));
  ptx::launch(spin_kernel, {}, nullptr, static_cast<const volatile int*>(flag.get()));
  harness::synchronize();
}

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run_damage(const std::string& test) {
  const std::string command = std::string(kDamageVariable) + "=1 /proc/" + std::to_string(getpid()) +
                              "/exe 'damage: " + test + "' 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST_CASE("synchronize: a failed kernel is named with what the error usually means") {
  if (gpu_test::skip_without_gpu()) return;
  const Outcome illegal = run_damage("store outside of every buffer");
  check_text(illegal.output, {"cudaErrorIllegalAddress", "outside its buffers"});
  const Outcome misaligned = run_damage("misaligned store");
  check_text(misaligned.output, {"cudaErrorMisalignedAddress", "not aligned"});
}

TEST_CASE("synchronize: a kernel that never ends ends the program") {
  if (gpu_test::skip_without_gpu()) return;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_damage("a kernel that never ends");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  INFO(outcome.output);
  CHECK(outcome.status == harness::kExitHung);
  check_text(outcome.output, {"the GPU has not finished", "GEMM_STEPS_TIMEOUT_S"});
  CHECK(elapsed.count() < 30);
}

}  // namespace backend_test
