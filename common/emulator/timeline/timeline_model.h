// From what the warps did to when: a model of an SM in a few numbers. docs/timelines.md explains it.
#pragma once

#include "emulator/timeline/timeline.h"
#include "harness/backend/trace_data.h"

namespace emulator {

/// Clocks of an SM and bytes a clock, on an H200. Sources: docs/timelines.md.
struct ModelConstants {
  double clock_mhz = 1980;
  double tensor_flop = 4096;         // wgmma, a clock
  double tcgen05_flop = 8192;        // tcgen05.mma, a clock: documented, not measured
  double tensor_memory_bytes = 512;  // tcgen05.ld, a clock: an assumption
  double mma_flop = 2729;            // mma.sync, a clock, of an SM; a quarter of it for each sub-partition
  double mma_warp_flop = 624;        // mma.sync of one warp
  double mma_latency = 24;           // until a result can be used
  double copy_bytes = 52;            // from L2, a clock
  double memory_latency = 656;       // ld.global, cp.async
  double tma_latency = 1000;         // from the issue of a TMA copy to its first byte
  double shared_bytes = 128;         // a clock
  double shared_latency = 23;        // ld.shared, ldmatrix, an mbarrier
  double line_clocks = 1;            // of the load/store unit for each 128-byte line of an instruction
  double barrier_base = 12.6;        // __syncthreads, bar.sync
  double barrier_thread = 1.0 / 16;  // and for each thread of it
  double flag_latency = 282;         // a word in L2
  double remote_latency = 200;       // an arrival at another CTA's mbarrier; barrier.cluster
  double cta_start = 1000;           // from the end of a CTA to the first instruction of the next one there
  double issue = 1;                  // of an instruction

  std::vector<harness::NamedNumber> described() const;
};

/// The launch's times by the model, on `sms` SMs. The first `ctas` CTAs become roles.
harness::TraceData replay(const LaunchLog& log, int sms, int ctas, const ModelConstants& constants = {});

}  // namespace emulator
