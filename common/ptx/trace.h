// The host's side of timelines on the GPU (trace.cuh): where kernels of a traced build write.
#pragma once

#include <cstdint>

#include "ptx/trace_state.h"

namespace gemm::ptx {

/// Written by the first thread of a CTA when it starts; ties the SM's clock to the time that all SMs share.
struct TraceHeader {
  std::uint64_t clock = 0;        // clock64
  std::uint64_t globaltimer = 0;  // nanoseconds
  std::uint32_t sm = 0;
  std::uint32_t ctas = 0;  // of the launch
};

/// What a kernel writes when a role's state changes (trace_word).
struct TraceWords {
  std::uint32_t clock;
  std::uint32_t word;
};

// The first warp of a warpgroup speaks for it.
inline constexpr int kTraceRoles = 8;          // warpgroups of a CTA
inline constexpr int kTraceRecords = 1 << 13;  // of a role; what comes later is dropped

/// Device memory for kTraceCtas CTAs; CTA i writes at i % kTraceCtas.
inline constexpr int kTraceCtas = 64;
struct TraceMemory {
  TraceWords* records = nullptr;   // [cta][role][record]
  TraceHeader* headers = nullptr;  // [cta]
  int ctas = 0;                    // CTAs from this one on record nothing
  bool operator==(const TraceMemory&) const = default;
};

/// What the next launches get. The memory is allocated by the first call with ctas > 0; false: it could not
/// be had, or this is no traced build.
bool set_trace(int ctas);
const TraceMemory& trace_memory();

}  // namespace gemm::ptx
