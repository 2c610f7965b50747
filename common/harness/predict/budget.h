// Byte and cycle arithmetic before measuring: what a step asks of the GPU, what the GPU has, and which runs
// out first. Pure functions of plain data; needs no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"

namespace harness {

/// The architectures that documented_gpu() knows: sm_80, sm_86, sm_89, sm_90 and sm_100.
std::vector<std::string> documented_architectures();
/// A GPU of this architecture as documented, for machines without one. Its name says that it is assumed.
/// Throws Error if the architecture is not among those.
DeviceInfo documented_gpu(const std::string& architecture);
/// The one that is assumed unless another is named: an H200 SXM.
DeviceInfo documented_h200();
/// The GPU that a budget is about: `device` itself, or, where the emulator or nothing is present, the GPU of
/// the architecture that --gpu names; without --gpu an H200, or a B200 for a step that needs Blackwell.
/// Throws Error if the step does not run on it, or if --gpu names one although `device` is a GPU.
DeviceInfo budgeted_device(const gemm::Step& step, const DeviceInfo& device, const std::string& architecture);

/// What one CTA takes of an SM.
struct CtaNeeds {
  int threads = 0;
  int registers = 0;  // per thread; 0: not known, and then no limit
  int static_shared_bytes = 0;
  int dynamic_shared_bytes = 0;
};

/// How many CTAs fit on one SM at once, by each resource. The rules of allocation of compute capability 8.x
/// and 9.0: registers per warp in units of 256, a quarter of the file for each of the four sub-partitions,
/// whose warps come in equal numbers; shared memory in units of 128 bytes, the driver's reserve included.
/// (CUDA C++ Programming Guide, "Hardware Multithreading", and the runtime's own calculator, which the GPU
/// tests compare with.)
struct Occupancy {
  int by_threads = 0;
  int by_slots = 0;      // CTAs an SM can track
  int by_registers = 0;  // by_slots when registers are not known
  int by_shared = 0;
  int ctas = 0;         // the least of them; 0: the kernel cannot start
  std::string limiter;  // "threads", "CTA slots", "registers", "shared memory"; the first that applies
};
Occupancy occupancy(const CtaNeeds& needs, const DeviceInfo& device);

/// Where the number of resident CTAs changes when one resource does and the others stay. -1: nowhere.
struct Cliffs {
  int registers_keep = -1;     // the most registers per thread with as many CTAs as now
  int registers_gain = -1;     // the most registers per thread with at least one CTA more
  int shared_bytes_keep = -1;  // the most dynamic + static bytes per CTA with as many CTAs as now
  int shared_bytes_gain = -1;  // the most with at least one CTA more
};
Cliffs cliffs(const CtaNeeds& needs, const DeviceInfo& device);

/// What the device does in a second, at its maximum clock.
struct Peaks {
  double flop = 0;              // of the step's math unit
  double lsu_instructions = 0;  // load/store instructions of one thread
  double shared_bytes = 0;
  double l2_bytes = 0;
  double dram_bytes = 0;
};
Peaks peaks(gemm::MathUnit unit, const DeviceInfo& device);

/// How long the problem takes if only this resource were limited.
struct Limit {
  std::string name;
  double seconds = 0;
};

struct Budget {
  DeviceInfo device;
  gemm::Shape shape;
  gemm::TileShape tile;
  std::int64_t tiles_m = 0;
  std::int64_t tiles_n = 0;
  std::int64_t k_steps = 0;  // iterations of the main loop per tile
  std::int64_t ctas = 0;     // of the launch; fewer than tiles for a persistent kernel
  CtaNeeds needs;
  Occupancy occupancy;
  Cliffs cliffs;
  std::int64_t slots = 0;             // CTAs on the whole GPU at once
  double waves = 0;                   // work items per slot
  double last_wave = 0;               // how full the last wave is, in (0, 1]
  double balance = 0;                 // average work of an SM over that of the busiest, in (0, 1]
  double flop = 0;                    // 2 m n k
  double padded_flop = 0;             // of whole tiles: what is computed
  double compulsory_bytes = 0;        // A, B and D, each moved once
  double requested_bytes = 0;         // asked of L2: every tile loads its own operands
  std::int64_t workspace_bytes = -1;  // device memory kept for each stream; -1: a variant that never has any
  gemm::MathUnit unit = gemm::MathUnit::kFma;
  std::vector<Limit> limits;  // longest first
  double seconds = 0;         // predicted: the longest limit over the balance
  double peak_share = 0;      // of the math unit's peak, by 2 m n k; 0: its rate is not known
};

/// `resources` with registers = 0 (the emulator's) leaves the register limit out. The variant must have a
/// tile and a launch_shape.
Budget make_budget(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                   const DeviceInfo& device, const KernelResources& resources);

/// The budget as the lines that --budget prints.
std::string render(const Budget& budget, const gemm::Step& step, const gemm::Variant& variant);

/// make_budget and render with the kernel's own resources, as far as they are known: for a GPU that is only
/// documented, there are none.
std::string budget_text(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                        const DeviceInfo& device);

}  // namespace harness
