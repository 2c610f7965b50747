// harness/backend/backend.h and its companions on the emulator.
#include <fmt/format.h>

#include <thread>

#include "emulator/async/async_memory.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/options.h"
#include "emulator/machine/ranks.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/causes/flags.h"
#include "emulator/report/causes/groups.h"
#include "emulator/report/causes/tile_owners.h"
#include "emulator/report/counters.h"
#include "emulator/report/course_rules.h"
#include "emulator/sync/dependent_launch.h"
#include "emulator/sync/streams_at_once.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/name_groups.h"
#include "harness/backend/outside_stores.h"

namespace harness {

DeviceInfo device_info() {
  DeviceInfo info;
  info.name = "emulator";
  info.is_emulator = true;
  info.compute_capability = 90;
  info.sm_count = emulator::options().sm_count;
  info.max_threads_per_sm = emulator::kMaxThreadsPerSm;
  info.max_ctas_per_sm = emulator::kMaxCtasPerSm;
  info.registers_per_sm = 65536;
  info.shared_bytes_per_sm = emulator::kSharedBytesPerSm;
  info.shared_bytes_per_cta = emulator::kMaxSharedBytes;
  info.reserved_shared_bytes = emulator::kReservedSharedBytes;
  info.l2_bytes = 50ll << 20;
  info.memory_bytes = emulator::device_bytes_total();
  info.memory_free_bytes = emulator::device_bytes_free();
  return info;
}

void* device_allocate(std::size_t bytes, std::string_view name) {
  return emulator::allocate_buffer(bytes, name);
}
void device_free(void* memory) noexcept {
  emulator::free_buffer(memory);
}
void copy_to_device(void* device, const void* host, std::size_t bytes) {
  if (emulator::has_ranks()) return emulator::ranks::copy_now(device, host, bytes);
  emulator::copy_in(device, host, bytes);
}
void copy_to_host(void* host, const void* device, std::size_t bytes) {
  if (emulator::has_ranks()) return emulator::ranks::copy_now(host, device, bytes);
  emulator::copy_out(host, device, bytes);
}
void fill_device(void* device, std::uint8_t value, std::size_t bytes) {
  if (emulator::has_ranks()) return emulator::ranks::fill_now(device, value, bytes);
  emulator::fill(device, value, bytes);
}
void synchronize() {  // a launch has returned when its grid was done, or has thrown
  if (emulator::has_ranks()) emulator::ranks::finish_device(emulator::current_device());
  emulator::complete_grids();
}

KernelResources kernel_resources(const void*) {
  KernelResources resources;
  resources.max_threads = emulator::kMaxThreads;
  return resources;
}

int resident_ctas_per_sm(const void*, int, int) {
  return 0;
}

bool device_fill(gemm::bf16*, const InputRule&) {
  return false;
}
bool device_reference(const gemm::Gemm&, double*, float*) {
  return false;
}
bool device_reference(const gemm::Shape&, const float*, const float*, double*, float*) {
  return false;
}
bool device_off_limits(const void* memory, std::size_t bytes) {
  emulator::put_off_limits(memory, bytes);
  return true;
}

void name_tiles(const gemm::Shape& shape, const gemm::TileShape& tile) {
  emulator::Options options = emulator::options();
  options.k = shape.k;
  options.k_tile = tile.k;
  options.n = shape.n;
  options.tile_m = tile.m;
  options.tile_n = tile.n;
  emulator::set_options(options);
}

void name_groups(const gemm::Problem& problem) {
  emulator::note_groups(problem.groups, problem.capacity, problem.counts);
}

std::string take_emulator_clue() {
  const std::string tile = emulator::take_misaligned_tile();
  return tile.empty() ? emulator::counters_left_over() : tile;
}

std::string take_outside_stores() {
  const std::string stores = emulator::take_outside_stores();
  const std::string cancelled = emulator::take_cancelled();
  return stores + (stores.empty() || cancelled.empty() ? "" : " ") + cancelled;
}

std::string tile_owners() {
  return emulator::tile_owners();
}

std::string take_outside_loads() {
  return emulator::take_outside_loads();
}

void control_emulator(const EmulatorControl& control) {
  emulator::Options options = emulator::options();
  options.seed = control.schedule_seed;
  switch (control.completion) {
    case Completion::kRandom:
      options.completion = emulator::Completion::kRandom;
      break;
    case Completion::kEarliest:
      options.completion = emulator::Completion::kEarliest;
      break;
    case Completion::kLatest:
      options.completion = emulator::Completion::kLatest;
      break;
  }
  options.cta_order = control.cta_order == CtaOrder::kSeed        ? emulator::CtaOrder::kSeed
                      : control.cta_order == CtaOrder::kAscending ? emulator::CtaOrder::kAscending
                                                                  : emulator::CtaOrder::kDescending;
  options.sm_count = control.sm_count;
  options.k = options.k_tile = options.n = options.tile_m = options.tile_n = 0;  // of another problem
  options.counters = control.counters;
  options.launch_seconds = control.launch_seconds;
  emulator::set_options(options);
}

void check_workspaces() {
  const std::string report = emulator::words_not_set_back();
  if (!report.empty()) throw EmulatorReport("workspace-left", "workspace-left: " + report);
}

void begin_streams_at_once() {
  emulator::begin_streams_at_once();
}
void end_streams_at_once() {
  emulator::end_streams_at_once();
}

void elect_lowest_lane(bool lowest) {
  emulator::Options options = emulator::options();
  options.elect = lowest ? emulator::Elect::kLowest : emulator::Elect::kSeed;
  emulator::set_options(options);
}

std::vector<CourseRule> course_rules() {
  std::vector<CourseRule> rules;
  for (const emulator::CourseRuleEntry& entry : emulator::kCourseRules) {
    rules.push_back({entry.name, entry.sentence, entry.page, entry.on});
  }
  return rules;
}

void switch_course_rules(const std::vector<std::string>& allow, const std::vector<std::string>& strict) {
  emulator::read_course_rules_of_environment();  // what is asked for here comes on top
  emulator::switch_course_rules(allow, strict);
}

EmulatorCounters take_emulator_counters() {
  const emulator::Counters counters = emulator::counters();
  emulator::reset_counters();
  EmulatorCounters taken{.lines = {}, .table = counters.to_text()};
  for (const emulator::LineCounters& line : counters.lines) {
    taken.lines.push_back({line.where, line.instruction, line.requests, line.bytes, line.sectors,
                           line.ideal_sectors, line.wavefronts, line.ideal_wavefronts});
  }
  return taken;
}

}  // namespace harness
