#include "bench.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <limits>

#include "harness/backend/cuda_check.h"
#include "harness/base/problem.h"
#include "harness/timing/cuda_event.h"

namespace roofline {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{4} << 30;
constexpr std::size_t kLeastBytes = std::size_t{512} << 20;  // several times any L2

/// A power of two, so that every loop over the buffers comes out even.
std::size_t large_bytes(const harness::DeviceInfo& device) {
  std::size_t bytes = kLargeBytes;
  while (bytes >= kLeastBytes && 5 * bytes > 2 * static_cast<std::size_t>(device.memory_free_bytes))
    bytes /= 2;
  if (bytes < kLeastBytes) {
    throw harness::Error(fmt::format("{} of device memory are free; this needs at least {}",
                                     harness::human_bytes(static_cast<double>(device.memory_free_bytes)),
                                     harness::human_bytes(2.5 * static_cast<double>(kLeastBytes))));
  }
  return bytes;
}

}  // namespace

Bench::Bench()
    : device_(harness::device_info()),
      sink_(static_cast<std::size_t>(device_.sm_count) * 1024, "the results"),
      times_(static_cast<std::size_t>(device_.sm_count), "the times") {
  const std::size_t bytes = large_bytes(device_);
  large_ = std::make_shared<LargeBuffers>(bytes);
  fill_random(large_->first.get(), bytes);
  fill_random(large_->second.get(), bytes);
  harness::synchronize();
}

gemm::ptx::LaunchShape Bench::one_cta_per_sm(int threads, int shared_bytes) const {
  const int exclusive = device_.shared_bytes_per_sm / 2 + 1024;
  return {.grid = {static_cast<unsigned>(device_.sm_count)},
          .block = {static_cast<unsigned>(threads)},
          .shared_bytes = std::max(shared_bytes, exclusive)};
}

LaunchTime Bench::timed(const std::function<void()>& launch, int ctas) const {
  harness::check_cuda(cudaMemset(times_.get(), 0, times_.bytes()), "clearing the times");
  launch();
  harness::synchronize();
  const std::vector<CtaTime> times = times_.host();
  std::vector<double> cycles;
  std::vector<double> clocks;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  for (int i = 0; i < ctas; ++i) {
    const CtaTime& time = times[static_cast<std::size_t>(i)];
    if (time.cycles <= 0 || time.start_ns == 0)
      throw harness::Error(fmt::format("CTA {} of a measurement wrote no time: the kernel did not run", i));
    cycles.push_back(static_cast<double>(time.cycles));
    clocks.push_back(static_cast<double>(time.cycles) /
                     static_cast<double>(std::max<std::uint64_t>(time.end_ns - time.start_ns, 1)) * 1e3);
    first = std::min(first, time.start_ns);
    last = std::max(last, time.end_ns);
  }
  return {.cycles = summarize(cycles).median,
          .ns = static_cast<double>(last - first),
          .clock_mhz = summarize(clocks).median};
}

double Bench::event_seconds(const std::function<void()>& launch) {
  harness::CudaEvent start;
  harness::CudaEvent stop;
  start.record(nullptr);
  launch();
  stop.record(nullptr);
  harness::synchronize();
  return stop.microseconds_since(start) * 1e-6;
}

}  // namespace roofline
