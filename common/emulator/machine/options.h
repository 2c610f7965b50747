// What a user of the emulator may choose. Process-wide; takes effect at the next launch.
#pragma once

#include <cstdint>

namespace emulator {

/// When an asynchronous operation takes effect: whenever the seed says, as soon as it is issued, or not
/// before something waits for it.
enum class Completion { kRandom, kEarliest, kLatest };

/// The lane that elect.sync chooses: the PTX ISA leaves it open, every Hopper GPU tried took the lowest.
enum class Elect { kSeed, kLowest };

/// Which CTAs go on first, as far as they can: with kAscending that with the lowest number.
enum class CtaOrder { kSeed, kAscending, kDescending };

struct Options {
  std::uint64_t seed = 1;  // of the scheduler and of asynchronous completion
  Completion completion = Completion::kRandom;
  CtaOrder cta_order = CtaOrder::kSeed;
  std::uint64_t slow_warps = 0;  // a bit for each warp of a CTA: these go on only where nothing else can
  int sm_count = 4;              // what kernels and the harness are told; bounds co-resident grids
  int os_threads = 0;            // that run CTAs in parallel; 0: one per hardware thread, at most 16
  bool counters = false;
  Elect elect = Elect::kSeed;
  int k = 0;  // of A and B, and of a k-tile: reports that can tell say which k-tile bytes belong to
  int k_tile = 0;
  int n = 0;  // of D, and the tiles of D: the same for elements of D
  int tile_m = 0;
  int tile_n = 0;
  double launch_seconds = 0;  // after which a launch that still makes progress is a livelock; 0: never
  double stall_seconds = 10;  // of processor time in which a thread neither waits nor gives way: a livelock
};

const Options& options();
void set_options(const Options& options);

/// The first number of the compute capability that host code is told: 9, unless the program says another,
/// which it does before main (the result is for a static variable).
int compute_capability_major();
bool set_compute_capability_major(int major);

/// Sets options for a scope, for tests.
class ScopedOptions {
 public:
  explicit ScopedOptions(const Options& next) : previous_(options()) { set_options(next); }
  ~ScopedOptions() { set_options(previous_); }
  ScopedOptions(const ScopedOptions&) = delete;
  ScopedOptions& operator=(const ScopedOptions&) = delete;

 private:
  Options previous_;
};

}  // namespace emulator
