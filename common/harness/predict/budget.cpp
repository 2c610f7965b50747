#include "harness/predict/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "harness/base/problem.h"

namespace harness {
namespace {

constexpr int kWarp = 32;
constexpr int kSubPartitions = 4;
constexpr int kRegisterUnit = 256;  // per warp
constexpr int kSharedUnit = 128;    // bytes
constexpr int kMaxRegisters = 255;  // per thread
constexpr int kRegistersPerCta = 65536;
constexpr int kRegistersPerSm = 65536;
constexpr const char* kL2 = "L2";

struct DocumentedGpu {
  const char* architecture;
  const char* name;
  int compute_capability;
  int sm_count;
  int max_threads_per_sm;
  int max_ctas_per_sm;
  int shared_kb_per_sm;
  int l2_mb;
  int memory_gb;
  double clock_hz;
  double memory_bytes_per_second;
};

/// Threads, CTAs and shared memory per SM: CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability". The other columns are those of one card: the data sheets of A100 80GB SXM, RTX A6000, RTX
/// 6000 Ada, H200 and HGX B200, and NVIDIA's papers on their architectures. The clock is the one at which the
/// card has the documented rate.
constexpr DocumentedGpu kDocumentedGpus[] = {
    {"sm_80", "an A100 SXM with 80 GB", 80, 108, 2048, 32, 164, 40, 80, 1.41e9, 2.039e12},
    {"sm_86", "an RTX A6000", 86, 84, 1536, 16, 100, 6, 48, 1.8e9, 0.768e12},
    {"sm_89", "an RTX 6000 Ada", 89, 142, 1536, 24, 100, 96, 48, 2.505e9, 0.96e12},
    {"sm_90", "an H200 SXM", 90, 132, 2048, 32, 228, 50, 141, 1.98e9, 4.8e12},
    {"sm_100", "a B200", 100, 148, 2048, 32, 228, 126, 180, 1.856e9, 8e12}};

constexpr int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

/// Floating-point operations per clock and SM. Documented: CUDA C++ Programming Guide, "Arithmetic
/// Instructions" (FP32), and NVIDIA's A100, GA102, Ada and H100 architecture papers (dense bf16
/// with binary32 accumulation).
double flop_per_clock(gemm::MathUnit unit, int compute_capability) {
  constexpr double kWgmma = 4096;
  // Not documented: measured, with eight warps an SM (mma_sync.rate in docs/results/roofline_h200.json).
  constexpr double kHopperMmaSync = 2729;
  if (unit == gemm::MathUnit::kFma) return compute_capability == 80 ? 2 * 64 : 2 * 128;
  if (compute_capability == 90 && unit != gemm::MathUnit::kTcgen05)
    return unit == gemm::MathUnit::kWgmma ? kWgmma : kHopperMmaSync;
  // Documented: 2.25 PFLOP/s of dense bf16 for a B200 with 148 SMs, NVIDIA's data sheet of the HGX B200.
  constexpr double kTcgen05 = 8192;
  if (unit == gemm::MathUnit::kTcgen05) return compute_capability == 100 ? kTcgen05 : 0;
  if (unit == gemm::MathUnit::kWgmma) return 0;
  if (compute_capability == 80) return 2048;
  return compute_capability == 86 || compute_capability == 89 ? 1024
                                                              : 0;  // 0: neither documented nor measured
}

const char* unit_name(gemm::MathUnit unit) {
  switch (unit) {
    case gemm::MathUnit::kFma:
      return "FP32 FMA";
    case gemm::MathUnit::kMmaSync:
      return "mma.sync";
    case gemm::MathUnit::kWgmma:
      return "wgmma";
    case gemm::MathUnit::kTcgen05:
      return "tcgen05.mma";
  }
  return "?";
}

std::string human_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string human_tflops(double flop_per_second) {
  const double value = flop_per_second * 1e-12;
  return value < 1000 ? fmt::format("{:.4g} TFLOP/s", value) : fmt::format("{:.0f} TFLOP/s", value);
}

std::string human_kb(int bytes) {
  return fmt::format("{:.1f} KB", bytes / 1024.0);
}

/// The largest value in [low, high] that `fits`; fits() is true up to some value and false above. -1: none.
template <typename Fits>
int largest(int low, int high, const Fits& fits) {
  int best = -1;
  while (low <= high) {
    const int middle = low + (high - low) / 2;
    if (fits(middle)) {
      best = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

}  // namespace

std::vector<std::string> documented_architectures() {
  std::vector<std::string> names;
  for (const DocumentedGpu& gpu : kDocumentedGpus) names.emplace_back(gpu.architecture);
  return names;
}

DeviceInfo documented_gpu(const std::string& architecture) {
  const auto* const gpu =
      std::find_if(std::begin(kDocumentedGpus), std::end(kDocumentedGpus),
                   [&](const DocumentedGpu& known) { return architecture == known.architecture; });
  if (gpu == std::end(kDocumentedGpus))
    throw Error(fmt::format("'{}' is none of the architectures that are documented here: {}", architecture,
                            fmt::join(documented_architectures(), ", ")));
  constexpr int kKb = 1024;
  DeviceInfo info;
  info.name = fmt::format("{} (assumed, from its documentation)", gpu->name);
  info.compute_capability = gpu->compute_capability;
  info.sm_count = gpu->sm_count;
  info.max_threads_per_sm = gpu->max_threads_per_sm;
  info.max_ctas_per_sm = gpu->max_ctas_per_sm;
  info.registers_per_sm = kRegistersPerSm;
  info.shared_bytes_per_sm = gpu->shared_kb_per_sm * kKb;
  info.reserved_shared_bytes = kKb;
  info.shared_bytes_per_cta = info.shared_bytes_per_sm - info.reserved_shared_bytes;
  info.l2_bytes = std::int64_t{gpu->l2_mb} << 20;
  info.memory_bytes = std::int64_t{gpu->memory_gb} * 1'000'000'000;
  info.memory_free_bytes = info.memory_bytes;
  info.clock_hz = gpu->clock_hz;
  info.memory_bytes_per_second = gpu->memory_bytes_per_second;
  return info;
}

DeviceInfo documented_h200() {
  return documented_gpu("sm_90");
}

DeviceInfo budgeted_device(const gemm::Step& step, const DeviceInfo& device,
                           const std::string& architecture) {
  if (!device.is_emulator && !device.driver_version.empty()) {
    if (!architecture.empty())
      throw Error(
          "--gpu assumes a GPU that is not here, but this program asks the one that is: leave it out, or add "
          "--backend emulator");
    return device;
  }
  const bool blackwell = step.architecture == gemm::Architecture::kSm100a;
  DeviceInfo assumed = documented_gpu(!architecture.empty() ? architecture : blackwell ? "sm_100" : "sm_90");
  if (const std::string problem = step_problem(step, assumed); !problem.empty()) throw Error(problem);
  return assumed;
}

Occupancy occupancy(const CtaNeeds& needs, const DeviceInfo& device) {
  Occupancy result;
  const int warps = std::max(1, (needs.threads + kWarp - 1) / kWarp);
  result.by_slots = device.max_ctas_per_sm;
  result.by_threads = device.max_threads_per_sm / (warps * kWarp);

  result.by_registers = device.max_ctas_per_sm;
  if (needs.registers > 0) {
    const int per_warp = round_up(needs.registers * kWarp, kRegisterUnit);
    const int warps_per_sub_partition = device.registers_per_sm / kSubPartitions / per_warp;
    result.by_registers = warps_per_sub_partition * kSubPartitions / warps;
    if (per_warp * round_up(warps, kSubPartitions) > kRegistersPerCta) result.by_registers = 0;
  }

  const int asked = needs.static_shared_bytes + needs.dynamic_shared_bytes;
  const int taken = round_up(asked + device.reserved_shared_bytes, kSharedUnit);
  result.by_shared = taken == 0 ? device.max_ctas_per_sm : device.shared_bytes_per_sm / taken;
  if (asked > device.shared_bytes_per_cta) result.by_shared = 0;

  result.ctas = std::min({result.by_threads, result.by_slots, result.by_registers, result.by_shared});
  result.limiter = result.by_threads == result.ctas     ? "threads"
                   : result.by_slots == result.ctas     ? "CTA slots"
                   : result.by_registers == result.ctas ? "registers"
                                                        : "shared memory";
  return result;
}

Cliffs cliffs(const CtaNeeds& needs, const DeviceInfo& device) {
  const int now = occupancy(needs, device).ctas;
  Cliffs result;
  const auto with_registers = [&](int registers) {
    CtaNeeds changed = needs;
    changed.registers = registers;
    return occupancy(changed, device).ctas;
  };
  const auto with_shared = [&](int bytes) {
    CtaNeeds changed = needs;
    changed.static_shared_bytes = 0;
    changed.dynamic_shared_bytes = bytes;
    return occupancy(changed, device).ctas;
  };
  if (now > 0 && needs.registers > 0)
    result.registers_keep = largest(1, kMaxRegisters, [&](int r) { return with_registers(r) >= now; });
  if (now > 0)
    result.shared_bytes_keep =
        largest(0, device.shared_bytes_per_cta, [&](int bytes) { return with_shared(bytes) >= now; });
  if (needs.registers > 0)
    result.registers_gain = largest(1, kMaxRegisters, [&](int r) { return with_registers(r) > now; });
  result.shared_bytes_gain =
      largest(0, device.shared_bytes_per_cta, [&](int bytes) { return with_shared(bytes) > now; });
  return result;
}

Peaks peaks(gemm::MathUnit unit, const DeviceInfo& device) {
  // Per clock: one load/store instruction of a warp an SM, 128 bytes of shared memory an SM (32 banks of 4
  // bytes), 5120 bytes of L2 for the whole GPU. The last is A100's documented figure;
  // Hopper's and Blackwell's are not documented. Those of compute capability 8.6 and 8.9 have far fewer
  // memory channels, and nothing is known of their L2: 0.
  constexpr double kSharedBytes = 128;
  const double l2_bytes = device.compute_capability == 86 || device.compute_capability == 89 ? 0 : 5120;
  const double sm_clocks = device.sm_count * device.clock_hz;
  return {.flop = flop_per_clock(unit, device.compute_capability) * sm_clocks,
          .lsu_instructions = kWarp * sm_clocks,
          .shared_bytes = kSharedBytes * sm_clocks,
          .l2_bytes = l2_bytes * device.clock_hz,
          .dram_bytes = device.memory_bytes_per_second};
}

Budget make_budget(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                   const DeviceInfo& device, const KernelResources& resources) {
  Budget budget;
  budget.device = device;
  budget.shape = shape;
  budget.tile = variant.tile;
  budget.unit = step.unit;
  budget.tiles_m = gemm::ceil_div(shape.m, variant.tile.m);
  budget.tiles_n = gemm::ceil_div(shape.n, variant.tile.n);
  budget.k_steps = gemm::ceil_div(shape.k, variant.tile.k);
  const gemm::ptx::LaunchShape launch = variant.launch_shape(shape);
  budget.ctas = launch.grid.count();
  if (variant.workspace_bytes != nullptr) budget.workspace_bytes = variant.workspace_bytes(shape);
  budget.needs = {.threads = static_cast<int>(launch.block.count()),
                  .registers = resources.registers,
                  .static_shared_bytes = resources.static_shared_bytes,
                  .dynamic_shared_bytes = launch.shared_bytes};
  budget.occupancy = occupancy(budget.needs, device);
  budget.cliffs = cliffs(budget.needs, device);
  budget.slots = std::int64_t{budget.occupancy.ctas} * device.sm_count;

  // A persistent kernel has as many CTAs as fit, which are fewer than SMs where clusters cannot reach them
  // all; its work items are the tiles.
  const std::int64_t tiles = budget.tiles_m * budget.tiles_n;
  std::int64_t busy_sms = device.sm_count;
  if (budget.slots > 0) {
    if (budget.ctas < tiles) budget.slots = std::min(budget.slots, budget.ctas);
    busy_sms = (budget.slots + budget.occupancy.ctas - 1) / budget.occupancy.ctas;
    budget.waves = static_cast<double>(tiles) / static_cast<double>(budget.slots);
    const std::int64_t rest = tiles % budget.slots;
    budget.last_wave = rest == 0 ? 1 : static_cast<double>(rest) / static_cast<double>(budget.slots);
  }
  const std::int64_t busiest = (tiles + busy_sms - 1) / busy_sms;
  budget.balance = static_cast<double>(tiles) / static_cast<double>(busiest * device.sm_count);
  if (variant.busiest_tiles != nullptr)
    budget.balance = static_cast<double>(tiles) / (variant.busiest_tiles(shape) * device.sm_count);

  const double m = shape.m;
  const double n = shape.n;
  const double k = shape.k;
  const double fma = static_cast<double>(budget.tiles_m * variant.tile.m) *
                     static_cast<double>(budget.tiles_n * variant.tile.n) *
                     static_cast<double>(budget.k_steps * variant.tile.k);
  const gemm::Types types = variant.types;
  const double scale_of_d = types.quantise_d() ? 1.0 / gemm::kNvBlock : 0;  // bytes of an element
  const double d_bytes = (gemm::bits_of(types.d) / 8.0 + scale_of_d) * m * n;
  budget.flop = 2 * m * n * k;
  budget.padded_flop = 2 * fma;
  const double scale_bytes =
      types.has_weights() ? 2.0 * types.scale_lines() / types.group : 0;  // of an element of B
  budget.compulsory_bytes =
      gemm::bits_of(types.a) / 8.0 * m * k + (gemm::bits_of(types.b) / 8.0 + scale_bytes) * n * k + d_bytes;
  budget.requested_bytes = variant.traffic.global_bytes_per_fma * fma + d_bytes;

  // The tensor cores take as many bytes of operands in a clock whatever the type is.
  Peaks peak = peaks(step.unit, device);
  peak.flop *= 16.0 / gemm::bits_of(types.a);
  const auto add = [&budget](const std::string& name, double amount, double per_second) {
    if (amount > 0 && per_second > 0) budget.limits.push_back({name, amount / per_second});
  };
  add(fmt::format("{} units", unit_name(step.unit)), budget.padded_flop, peak.flop);
  add("load/store issue", variant.traffic.lsu_instructions_per_fma * fma, peak.lsu_instructions);
  add("shared memory", variant.traffic.shared_bytes_per_fma * fma, peak.shared_bytes);
  add(kL2, budget.requested_bytes, peak.l2_bytes);
  add("DRAM", budget.compulsory_bytes, peak.dram_bytes);
  std::stable_sort(budget.limits.begin(), budget.limits.end(),
                   [](const Limit& x, const Limit& y) { return x.seconds > y.seconds; });
  if (!budget.limits.empty() && budget.slots > 0) {
    budget.seconds = budget.limits.front().seconds / budget.balance;
    if (peak.flop > 0) budget.peak_share = budget.flop / budget.seconds / peak.flop;
  }
  return budget;
}

namespace {

std::string register_line(const Budget& budget) {
  if (budget.needs.registers == 0)
    return "not known here: only the GPU build's compiler assigns them, so they limit nothing below";
  std::string line = fmt::format("{} per thread", budget.needs.registers);
  if (budget.cliffs.registers_keep > 0) {
    line += fmt::format("; up to {} keep {} CTA{} per SM", budget.cliffs.registers_keep,
                        budget.occupancy.ctas, budget.occupancy.ctas == 1 ? "" : "s");
  }
  if (budget.cliffs.registers_gain > 0)
    line += fmt::format("; with at most {} one more would fit", budget.cliffs.registers_gain);
  return line;
}

std::string shared_line(const Budget& budget) {
  const int asked = budget.needs.static_shared_bytes + budget.needs.dynamic_shared_bytes;
  std::string line;
  if (budget.needs.registers == 0 && asked == 0) return "static arrays are not known here, dynamic none";
  const int taken = round_up(asked + budget.device.reserved_shared_bytes, kSharedUnit);
  line = fmt::format("{} per CTA ({} with the driver's share), {} of {} per SM", human_kb(asked),
                     human_kb(taken), human_kb(taken * budget.occupancy.ctas),
                     human_kb(budget.device.shared_bytes_per_sm));
  if (budget.cliffs.shared_bytes_keep >= 0) {
    line += fmt::format("; up to {} keep {} CTA{}", human_kb(budget.cliffs.shared_bytes_keep),
                        budget.occupancy.ctas, budget.occupancy.ctas == 1 ? "" : "s");
  }
  if (budget.cliffs.shared_bytes_gain >= 0)
    line += fmt::format("; with at most {} one more would fit", human_kb(budget.cliffs.shared_bytes_gain));
  return line;
}

}  // namespace

std::string render(const Budget& budget, const gemm::Step& step, const gemm::Variant& variant) {
  const DeviceInfo& device = budget.device;
  std::string text;
  const auto line = [&text](const char* name, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", name, value);
  };
  text += fmt::format("{} {}, {}, on {}: {} SMs, at most {:.0f} MHz\n", step.name, variant.name,
                      to_string(budget.shape), device.name, device.sm_count, device.clock_hz * 1e-6);
  line("tiles", fmt::format("{} x {} = {} of {} x {}; K in {} steps of {}", budget.tiles_m, budget.tiles_n,
                            budget.tiles_m * budget.tiles_n, budget.tile.m, budget.tile.n, budget.k_steps,
                            budget.tile.k));
  if (budget.occupancy.ctas == 0) {
    line("CTAs", fmt::format("{} of {} threads, but not one fits on an SM: {} run out", budget.ctas,
                             budget.needs.threads, budget.occupancy.limiter));
    line("registers", register_line(budget));
    line("shared", shared_line(budget));
    return text;
  }
  line("CTAs",
       fmt::format("{} of {} threads; {} on an SM at once ({} threads of {}), limited by {}", budget.ctas,
                   budget.needs.threads, budget.occupancy.ctas, budget.occupancy.ctas * budget.needs.threads,
                   device.max_threads_per_sm, budget.occupancy.limiter));
  line("waves",
       fmt::format(
           "{:.2f} of {} CTAs, the last one {:.0f} % full; the busiest SM has {:.1f} % more than the average",
           budget.waves, budget.slots, 100 * budget.last_wave, 100 * (1 / budget.balance - 1)));
  line("registers", register_line(budget));
  line("shared", shared_line(budget));
  line("work", fmt::format("{:.4g} GFLOP; whole tiles compute {:.1f} % more", budget.flop * 1e-9,
                           100 * (budget.padded_flop / budget.flop - 1)));
  line("bytes",
       fmt::format(
           "{} if A, B and D move once ({:.0f} FLOP per byte); {} requested from L2 ({:.0f} FLOP per byte)",
           human_bytes(budget.compulsory_bytes), budget.flop / budget.compulsory_bytes,
           human_bytes(budget.requested_bytes), budget.flop / budget.requested_bytes));
  if (budget.workspace_bytes == 0) line("workspace", "none: no tile is divided among CTAs");
  if (budget.workspace_bytes > 0)
    line("workspace", fmt::format("{} of device memory for each stream that launches it",
                                  human_bytes(static_cast<double>(budget.workspace_bytes))));
  text += "  time if nothing else were limited, longest first\n";
  for (const Limit& limit : budget.limits) {
    text += fmt::format("    {:<18} {:>10}   {}\n", limit.name, human_time(limit.seconds),
                        human_tflops(budget.flop / limit.seconds));
  }
  const std::string& limiter = budget.limits.front().name;
  std::string prediction =
      fmt::format("limited by {}: {} or longer, {} or less", limiter, human_time(budget.seconds),
                  human_tflops(budget.flop / budget.seconds));
  if (budget.peak_share > 0)
    prediction += fmt::format(", {:.0f} % of the {} peak", 100 * budget.peak_share, unit_name(budget.unit));
  line("prediction", prediction);
  if (limiter == kL2)
    line("",
         "shorter if SMs request the same lines at the same time, because the L2 then merges the requests");
  return text;
}

std::string budget_text(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                        const DeviceInfo& device) {
  const auto resources = [&]() -> KernelResources {
    try {
      return kernel_resources(variant.kernel);
    } catch (const Error&) {
      if (!device.driver_version.empty()) throw;
      return {};  // without a GPU the kernel's resources are not known, and the budget says so
    }
  }();
  return render(make_budget(step, variant, shape, device, resources), step, variant);
}

}  // namespace harness
