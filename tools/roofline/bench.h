// What the measurements share: device memory, one timed launch, and the list of probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"
#include "ptx/launch_shape.h"
#include "record.h"

namespace roofline {

using harness::DeviceArray;

/// What a CTA writes about the part of it that is timed.
struct CtaTime {
  std::int64_t cycles;  // of its SM's clock
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

/// One launch, as its CTAs saw it.
struct LaunchTime {
  double cycles = 0;     // the median over the CTAs
  double ns = 0;         // from the first start to the last end; free of launch overhead
  double clock_mhz = 0;  // of the SMs meanwhile: cycles over nanoseconds
};

/// Two buffers of equal size, 4 GiB or what the GPU has room for, filled with random bits. The measurements
/// of writing and copying overwrite `second`; in `first` only the rings of the latency measurements replace a
/// few lines.
struct LargeBuffers {
  explicit LargeBuffers(std::size_t bytes)
      : first(bytes, "the first large buffer"), second(bytes, "the second large buffer") {}

  DeviceArray<std::uint8_t> first;
  DeviceArray<std::uint8_t> second;
};

class Bench {
 public:
  /// Throws Error when there is no usable GPU or too little free memory.
  Bench();

  const harness::DeviceInfo& device() const { return device_; }
  const std::shared_ptr<LargeBuffers>& large() const { return large_; }
  /// Where kernels put results that are never read: one word for each of 1024 threads on every SM.
  std::uint32_t* sink() const { return sink_.get(); }
  CtaTime* times() const { return times_.get(); }

  /// A grid of one CTA for each SM. It asks for so much shared memory that no SM can take two.
  gemm::ptx::LaunchShape one_cta_per_sm(int threads, int shared_bytes = 0) const;

  /// Runs a launch whose `ctas` CTAs write times(), and waits for it.
  LaunchTime timed(const std::function<void()>& launch, int ctas) const;

  /// Runs a launch between two events; seconds.
  static double event_seconds(const std::function<void()>& launch);

  void add(Probe probe) { probes_.push_back(std::move(probe)); }
  const std::vector<Probe>& probes() const { return probes_; }

 private:
  harness::DeviceInfo device_;
  std::shared_ptr<LargeBuffers> large_;
  DeviceArray<std::uint32_t> sink_;
  DeviceArray<CtaTime> times_;
  std::vector<Probe> probes_;
};

/// Sizes of the launches: long enough that their start and end do not count, short enough for many of them.
constexpr int kTargetCycles = 1 << 20;
constexpr double kIdleMs = 15;

void fill_random(std::uint8_t* memory, std::size_t bytes);  // dram.cu

/// Runs arithmetic on all SMs for about half a second: the clock leaves its idle value.
void warm_up(const Bench& bench);  // arithmetic.cu

void add_dram(Bench& bench);        // dram.cu
void add_l2(Bench& bench);          // l2.cu
void add_l1(Bench& bench);          // shared_memory.cu
void add_shared(Bench& bench);      // shared_memory.cu
void add_latency(Bench& bench);     // latency.cu
void add_arithmetic(Bench& bench);  // arithmetic.cu
void add_wgmma(Bench& bench);       // wgmma.cu; nothing on a GPU without wgmma
void add_loads(Bench& bench);       // loads.cu; nothing on a GPU without wgmma
void add_overheads(Bench& bench);   // overheads.cu

/// The latency of single L2 lines as every SM sees them, after the rounds; not a probe because its samples
/// are lines.
std::vector<Figure> l2_lines(const Bench& bench);  // latency.cu
/// Which of the two halves of the L2 a page is at home in, by the latency of atomics.
std::vector<Figure> l2_sides(const Bench& bench);  // latency.cu

}  // namespace roofline
