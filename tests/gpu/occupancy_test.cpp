// The budget's own occupancy formula against the runtime's calculator, for the steps' kernels.
#include <algorithm>

#include "device.h"
#include "harness/predict/budget.h"
#include "step_table.h"

namespace harness {
namespace {

TEST_CASE(
    "occupancy: the formula agrees with the runtime for every step, block size and amount of shared memory") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceInfo device = device_info();
  int compared = 0;
  for (const gemm::Step* step : gemm::all_steps()) {
    if (step->takes_ranks() || !runs_on(step->architecture, device.compute_capability)) continue;
    for (const gemm::Variant& variant : step->variants) {
      const KernelResources resources = kernel_resources(variant.kernel);
      const int room = device.shared_bytes_per_cta - resources.static_shared_bytes;
      // The runtime also counts named barriers, of which an SM has 64 for all its CTAs, and a kernel that
      // picks one by a variable counts as using 16, as the warpgroups do that store a tile from step 15 on.
      // Four CTAs of these steps' own sizes are more than fit anyway.
      const bool picks_a_barrier = step->name >= "15";
      for (int threads = picks_a_barrier ? resources.max_threads : 32;
           threads <= std::min(1024, resources.max_threads); threads += 32) {
        for (int shared = 0; shared <= room; shared += 3001) {
          const CtaNeeds needs{.threads = threads,
                               .registers = resources.registers,
                               .static_shared_bytes = resources.static_shared_bytes,
                               .dynamic_shared_bytes = shared};
          const int expected = resident_ctas_per_sm(variant.kernel, threads, shared);
          INFO(step->name << " " << variant.name << ", " << threads << " threads, " << shared << " bytes");
          REQUIRE(occupancy(needs, device).ctas == expected);
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("budget: the documented H200 is the one that the driver describes") {
  if (gpu_test::skip_without_hopper()) return;
  const DeviceInfo device = device_info();
  if (!contains(device.name, "H200")) return skip_test("this GPU is not an H200");
  const DeviceInfo documented = documented_h200();
  CHECK(device.sm_count == documented.sm_count);
  CHECK(device.max_threads_per_sm == documented.max_threads_per_sm);
  CHECK(device.max_ctas_per_sm == documented.max_ctas_per_sm);
  CHECK(device.registers_per_sm == documented.registers_per_sm);
  CHECK(device.shared_bytes_per_sm == documented.shared_bytes_per_sm);
  CHECK(device.shared_bytes_per_cta == documented.shared_bytes_per_cta);
  CHECK(device.reserved_shared_bytes == documented.reserved_shared_bytes);
  CHECK(device.clock_hz == Approx(documented.clock_hz).epsilon(0.01));
  CHECK(device.memory_bytes_per_second == Approx(documented.memory_bytes_per_second).epsilon(0.05));
}

}  // namespace
}  // namespace harness
