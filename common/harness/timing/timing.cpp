#include "harness/timing/timing.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "harness/record/commit.h"

namespace harness {

Record new_record(const DeviceInfo& device, const TimingOptions& options) {
  Record record;
  record.device = device;
  record.cublas_version = cublas_version();
  record.commit = commit_hash();
  record.date =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  record.seed = options.seed;
  record.pattern = options.pattern;
  record.mode = options.mode;
  record.idle_ms = options.mode == TimingMode::kBurst ? options.idle_ms : 0;
  return record;
}

}  // namespace harness
