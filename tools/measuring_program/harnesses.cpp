#include "harnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "gemm/problem/bf16.h"
#include "harness/backend/backend.h"
#include "harness/backend/watchdog.h"
#include "harness/base/problem.h"
#include "harness/timing/clock.h"
#include "harness/timing/cuda_event.h"
#include "harness/timing/gpu/delay.h"
#include "harness/timing/gpu/nvml.h"

namespace measuring {
namespace {

using harness::Clock;
using harness::seconds_since;

constexpr gemm::ptx::Stream kStream = nullptr;
constexpr int kWarmUp = 10;
constexpr int kLaunches = 200;  // of a loop
constexpr double kRestSeconds = 3;
constexpr double kWorkSeconds = 5;
constexpr double kSettleSeconds = 3;
constexpr double kBlockSeconds = 0.3;
constexpr double kEnqueueUs = 20;  // that the host needs for one launch, at most

/// `launches` of them, each on the next operands.
void enqueue(const std::vector<gemm::Launcher>& launchers, int launches) {
  for (int i = 0; i < launches; ++i) launchers[static_cast<std::size_t>(i) % launchers.size()](kStream);
}

/// The mean of a loop, between two events.
double loop_us(const std::vector<gemm::Launcher>& launchers) {
  const harness::Watchdog watchdog("a loop of launches");
  harness::CudaEvent start;
  harness::CudaEvent stop;
  enqueue(launchers, kWarmUp);
  // The host runs ahead by the whole loop, so that its own time is not what is measured.
  harness::launch_delay(kStream, kEnqueueUs * kLaunches);
  start.record(kStream);
  enqueue(launchers, kLaunches);
  stop.record(kStream);
  harness::synchronize();
  return stop.microseconds_since(start) / kLaunches;
}

/// Back to back for so long, then waits; the mean of what came after the first third.
double block_us(const std::vector<gemm::Launcher>& launchers, double estimate_us, double seconds) {
  const harness::Watchdog watchdog("a block of launches");
  const auto launches = static_cast<int>(std::ceil(seconds * 1e6 / estimate_us));
  const int lead_in = launches / 3;
  harness::CudaEvent start;
  harness::CudaEvent stop;
  enqueue(launchers, lead_in);
  start.record(kStream);
  enqueue(launchers, launches - lead_in);
  stop.record(kStream);
  harness::synchronize();
  return stop.microseconds_since(start) / (launches - lead_in);
}

void work(const std::vector<gemm::Launcher>& launchers, double estimate_us, double seconds) {
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) block_us(launchers, estimate_us, kBlockSeconds);
}

void expect(const harness::CheckResult& result, const harness::Contestant& contestant) {
  if (result.ok) return;
  throw harness::Error(fmt::format("{} ({}) is wrong; its times do not count\n{}", contestant.name,
                                   contestant.variant, result.report));
}

double first_launch_us(const gemm::Shape& shape, const harness::Contestant& contestant, std::uint64_t seed) {
  harness::Workload workload(shape, harness::Pattern::kNormal, seed);
  workload.poison();
  const gemm::Launcher launcher = contestant.prepare(workload.gemm());
  harness::synchronize();
  const harness::Watchdog watchdog("the first launch");
  const auto start = Clock::now();
  launcher(kStream);
  harness::synchronize();
  const double microseconds = 1e6 * seconds_since(start);
  expect(workload.check({128, 128, 64}), contestant);
  return microseconds;
}

template <typename Element>
Element* allocate(std::int64_t rows, std::int64_t columns, const char* name) {
  return static_cast<Element*>(
      harness::device_allocate(static_cast<std::size_t>(rows * columns) * sizeof(Element), name));
}

}  // namespace

RandomOperands::RandomOperands(const gemm::Shape& shape, std::uint64_t seed, bool rotate) {
  const auto bytes = static_cast<double>(harness::workload_bytes(shape));
  const double wanted = std::ceil(2.0 * static_cast<double>(harness::device_info().l2_bytes) / bytes);
  const int count = rotate ? static_cast<int>(std::max(2.0, wanted)) : 1;
  for (int i = 0; i < count; ++i)
    sets_.emplace_back(shape, harness::Pattern::kNormal, seed + static_cast<std::uint64_t>(i));
}

std::vector<gemm::Launcher> RandomOperands::prepare(const harness::Contestant& contestant) const {
  std::vector<gemm::Launcher> launchers;
  for (const harness::Workload& set : sets_) launchers.push_back(contestant.prepare(set.gemm()));
  return launchers;
}

void RandomOperands::verify(const harness::Contestant& contestant) {
  harness::Workload& set = sets_.front();
  set.poison();
  contestant.prepare(set.gemm())(kStream);
  expect(set.check({128, 128, 64}), contestant);
}

ZeroOperands::ZeroOperands(const gemm::Shape& shape)
    : shape_(shape),
      a_(allocate<gemm::bf16>(shape.m, shape.k, "A")),
      b_(allocate<gemm::bf16>(shape.n, shape.k, "B")),
      d_(allocate<gemm::bf16>(shape.m, shape.n, "D")) {
  harness::fill_device(a_, 0,
                       static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.k)) * sizeof(gemm::bf16));
  harness::fill_device(b_, 0,
                       static_cast<std::size_t>(gemm::offset(shape.n, 0, shape.k)) * sizeof(gemm::bf16));
}

ZeroOperands::~ZeroOperands() {
  for (gemm::bf16* memory : {a_, b_, d_}) harness::device_free(memory);
}

std::vector<gemm::Launcher> ZeroOperands::prepare(const harness::Contestant& contestant) const {
  return {contestant.prepare(gemm::Gemm{shape_, a_, b_, d_})};
}

void ZeroOperands::verify(const harness::Contestant& contestant) {
  constexpr std::uint8_t kNan = 0xff;
  std::vector<gemm::bf16> d(static_cast<std::size_t>(gemm::offset(shape_.m, 0, shape_.n)));
  harness::fill_device(d_, kNan, d.size() * sizeof(gemm::bf16));
  prepare(contestant).front()(kStream);
  harness::synchronize();
  harness::copy_to_host(d.data(), d_, d.size() * sizeof(gemm::bf16));
  const bool zero =
      std::all_of(d.begin(), d.end(), [](gemm::bf16 value) { return gemm::to_float(value) == 0; });
  if (!zero) throw harness::Error(fmt::format("{} does not compute 0 from zeros", contestant.name));
}

harness::Contestant fastest(const gemm::Shape& shape, const std::vector<harness::Contestant>& candidates,
                            std::uint64_t seed) {
  if (candidates.size() == 1) return candidates.front();
  const RandomOperands operands(shape, seed, true);
  std::vector<double> times;
  for (const harness::Contestant& candidate : candidates)
    times.push_back(loop_us(operands.prepare(candidate)));
  return candidates.at(
      static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin()));
}

Pair first_launch(const gemm::Shape& shape, const Race& race, std::uint64_t seed) {
  return {.kernel_us = first_launch_us(shape, race.kernel, seed),
          .yardstick_us = first_launch_us(shape, race.yardstick, seed)};
}

std::pair<Pair, harness::Conditions> sustained_on_zeros(const gemm::Shape& shape, const Race& race,
                                                        double seconds) {
  ZeroOperands operands(shape);
  const std::vector<gemm::Launcher> kernel = operands.prepare(race.kernel);
  const std::vector<gemm::Launcher> yardstick = operands.prepare(race.yardstick);
  const double kernel_estimate_us = loop_us(kernel);
  const double yardstick_estimate_us = loop_us(yardstick);
  work(kernel, kernel_estimate_us, kSettleSeconds / 2);
  work(yardstick, yardstick_estimate_us, kSettleSeconds / 2);

  harness::NvmlSampler sampler;
  sampler.start();
  std::vector<double> kernel_us;
  std::vector<double> yardstick_us;
  const auto start = Clock::now();
  while (kernel_us.size() < harness::kMinRounds || seconds_since(start) < seconds) {
    kernel_us.push_back(block_us(kernel, kernel_estimate_us, kBlockSeconds));
    yardstick_us.push_back(block_us(yardstick, yardstick_estimate_us, kBlockSeconds));
  }
  const harness::Conditions conditions = sampler.stop();
  operands.verify(race.kernel);
  operands.verify(race.yardstick);
  return {
      {.kernel_us = harness::quantile(kernel_us, 0.5), .yardstick_us = harness::quantile(yardstick_us, 0.5)},
      conditions};
}

Pair loops(const gemm::Shape& shape, const Race& race, std::uint64_t seed, bool rotate) {
  RandomOperands operands(shape, seed, rotate);
  const Pair pair{.kernel_us = loop_us(operands.prepare(race.kernel)),
                  .yardstick_us = loop_us(operands.prepare(race.yardstick))};
  operands.verify(race.kernel);
  operands.verify(race.yardstick);
  return pair;
}

Pair one_after_the_other(const gemm::Shape& shape, const Race& race, std::uint64_t seed, bool kernel_first) {
  RandomOperands operands(shape, seed, true);
  const std::vector<gemm::Launcher> kernel = operands.prepare(race.kernel);
  const std::vector<gemm::Launcher> yardstick = operands.prepare(race.yardstick);
  Pair pair;
  std::this_thread::sleep_for(std::chrono::duration<double>(kRestSeconds));
  (kernel_first ? pair.kernel_us : pair.yardstick_us) = loop_us(kernel_first ? kernel : yardstick);
  // What would be timed in between; the yardstick, so that the work is the same in both orders.
  work(yardstick, kernel_first ? pair.kernel_us : pair.yardstick_us, kWorkSeconds);
  (kernel_first ? pair.yardstick_us : pair.kernel_us) = loop_us(kernel_first ? yardstick : kernel);
  operands.verify(race.kernel);
  operands.verify(race.yardstick);
  return pair;
}

}  // namespace measuring
