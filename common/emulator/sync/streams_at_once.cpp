#include "emulator/sync/streams_at_once.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/machine/where.h"
#include "emulator/memory/device_memory.h"
#include "emulator/memory/touched_bytes.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

struct PastLaunch {
  gemm::ptx::Stream stream = nullptr;
  std::string kernel;
  Touched touched;
};

struct AtOnce {
  bool is_on = false;
  std::uint64_t last_of_problem = 0;  // Buffer::serial
  std::vector<gemm::ptx::Stream> streams;
  std::vector<PastLaunch> launches;
};
AtOnce& at_once() {
  static AtOnce& instance = *new AtOnce;
  return instance;
}

std::string access_text(const PastLaunch& launch, const TouchedBytes& bytes, bool is_write) {
  const std::vector<gemm::ptx::Stream>& streams = at_once().streams;
  const auto number = std::find(streams.begin(), streams.end(), launch.stream) - streams.begin() + 1;
  return fmt::format("{} at {}{}, launched in stream {}", is_write ? "write" : "read",
                     Where::from_packed(bytes.where).text(),
                     launch.kernel.empty() ? "" : " by " + launch.kernel, number);
}

void compare(const PastLaunch& one, const PastLaunch& other) {
  const auto look = [&](const std::vector<TouchedBytes>& of_one, bool one_writes,
                        const std::vector<TouchedBytes>& of_other, bool other_writes) {
    const auto [a, b] = common_bytes(of_one, of_other, true);
    if (a == nullptr) return;
    Report report("launches in two streams share memory that one of them writes");
    report.line("bytes", name_common_bytes(*a, *b));
    report.line("one", access_text(one, *a, one_writes));
    report.line("other", access_text(other, *b, other_writes));
    report.missing(
        "memory of its own for each stream of each plan (a StreamMemory of the plan, asked for the stream of "
        "the launch)");
    report.rule("operations of different streams may run in any order, and at the same time",
                "CUDA C++ Programming Guide, \"Streams\"");
    throw harness::EmulatorReport("stream-race", "stream-race: " + report.str());
  };
  look(one.touched.writes, true, other.touched.writes, true);
  look(one.touched.writes, true, other.touched.reads, false);
  look(one.touched.reads, false, other.touched.writes, true);
}

}  // namespace

void begin_streams_at_once() {
  at_once() = {.is_on = true, .last_of_problem = 0, .streams = {}, .launches = {}};
  for_buffers([](const Buffer& buffer) {
    at_once().last_of_problem = std::max(at_once().last_of_problem, buffer.serial);
  });
}

void end_streams_at_once() {
  at_once() = {};
}

bool streams_at_once() {
  return at_once().is_on;
}

void compare_streams(const Grid& grid, gemm::ptx::Stream stream, const void* kernel) {
  AtOnce& all = at_once();
  if (std::find(all.streams.begin(), all.streams.end(), stream) == all.streams.end())
    all.streams.push_back(stream);
  PastLaunch launch{stream, kernel == nullptr ? "" : name_function(kernel), {}};
  collect_touched(
      grid, [&](const Buffer& buffer) { return buffer.serial == 0 || buffer.serial > all.last_of_problem; },
      launch.touched);
  launch.touched.sort();
  for (const PastLaunch& past : all.launches) {
    if (past.stream != stream) compare(past, launch);
  }
  all.launches.push_back(std::move(launch));
}

}  // namespace emulator
