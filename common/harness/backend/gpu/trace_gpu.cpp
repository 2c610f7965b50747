// harness/backend/trace_control.h on the GPU: records that the kernels of a traced build
// write (common/ptx/trace.cuh).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/trace_control.h"
#include "ptx/trace.h"

namespace harness {
namespace {

constexpr std::uint8_t kUnwrittenByte = 0xff;
constexpr std::uint32_t kUnwritten = 0xffffffff;  // no state has that number

struct Recorded {
  std::vector<gemm::ptx::TraceWords> records;
  std::vector<gemm::ptx::TraceHeader> headers;
};

Recorded record_once(const std::function<void()>& launch) {
  Recorded recorded;
  recorded.records.resize(std::size_t{gemm::ptx::kTraceCtas} * gemm::ptx::kTraceRoles *
                          gemm::ptx::kTraceRecords);
  recorded.headers.resize(gemm::ptx::kTraceCtas);
  const std::size_t record_bytes = recorded.records.size() * sizeof(gemm::ptx::TraceWords);
  const std::size_t header_bytes = recorded.headers.size() * sizeof(gemm::ptx::TraceHeader);
  const gemm::ptx::TraceMemory& memory = gemm::ptx::trace_memory();
  fill_device(memory.records, kUnwrittenByte, record_bytes);
  fill_device(memory.headers, 0, header_bytes);
  launch();
  synchronize();
  copy_to_host(recorded.records.data(), memory.records, record_bytes);
  copy_to_host(recorded.headers.data(), memory.headers, header_bytes);
  return recorded;
}

/// Clocks a nanosecond between two launches, from CTAs that ran on the same SM; 0: none did.
double measured_clock(const Recorded& first, const Recorded& second) {
  std::vector<double> rates;
  for (const gemm::ptx::TraceHeader& a : first.headers) {
    for (const gemm::ptx::TraceHeader& b : second.headers) {
      if (a.globaltimer == 0 || b.globaltimer <= a.globaltimer || a.sm != b.sm) continue;
      rates.push_back(static_cast<double>(b.clock - a.clock) /
                      static_cast<double>(b.globaltimer - a.globaltimer));
    }
  }
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

}  // namespace

bool can_trace() {
#ifdef GEMM_STEPS_TRACE
  return true;
#else
  return false;
#endif
}

BrokenRun record_broken_run(const std::function<void()>& /*run*/, int /*ctas*/) {
  throw Error("on a GPU nobody sees which rule is broken: use tools/run --backend emulator");
}

TraceData record_launch(const std::function<void()>& launch, int ctas, int /*ctas_per_sm*/) {
  if (!gemm::ptx::set_trace(std::min(ctas, gemm::ptx::kTraceCtas)))
    throw Error("the device memory for a timeline (32 MiB) could not be allocated");
  const Recorded first = record_once(launch);
  const Recorded second = record_once(launch);
  double clock = measured_clock(first, second);
  if (clock == 0) clock = device_info().clock_hz * 1e-9;

  TraceData data;
  data.clock_mhz = clock * 1e3;
  data.ctas = static_cast<int>(second.headers.front().ctas);  // CTA 0 always records
  std::uint64_t begin = ~std::uint64_t{0};
  for (const gemm::ptx::TraceHeader& header : second.headers) {
    if (header.globaltimer != 0) begin = std::min(begin, header.globaltimer);
  }
  for (int cta = 0; cta < gemm::ptx::kTraceCtas; ++cta) {
    const gemm::ptx::TraceHeader& header = second.headers[static_cast<std::size_t>(cta)];
    if (header.globaltimer == 0) continue;
    const double start = static_cast<double>(header.globaltimer - begin) * clock;
    for (int warpgroup = 0; warpgroup < gemm::ptx::kTraceRoles; ++warpgroup) {
      TraceRole role{.cta = cta, .sm = static_cast<int>(header.sm), .warpgroup = warpgroup, .states = {}};
      const gemm::ptx::TraceWords* records = &second.records[static_cast<std::size_t>(
          (cta * gemm::ptx::kTraceRoles + warpgroup) * gemm::ptx::kTraceRecords)];
      for (int i = 0; i < gemm::ptx::kTraceRecords; ++i) {
        if (records[i].word == kUnwritten) break;
        const std::uint32_t since = records[i].clock - static_cast<std::uint32_t>(header.clock);
        role.states.push_back({start + since, gemm::ptx::trace_record(records[i].word)});
        role.end = start + since;
      }
      if (!role.states.empty()) data.roles.push_back(std::move(role));
    }
  }
  return data;
}

void trace_everywhere() {
  gemm::ptx::set_trace(1 << 30);
}

}  // namespace harness
