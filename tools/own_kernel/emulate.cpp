// The program that tools/emulate makes of a kernel's file: runs the file's check_kernel under many schedules.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "emulator/instrument/cuda_program.h"
#include "emulator/instrument/program_memory.h"
#include "emulator/instrument/streams.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/options.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/trace_control.h"
#include "harness/base/output.h"
#include "harness/cli/program.h"
#include "harness/trace/trace_timeline.h"
#include "host_watch.h"
#include "own_kernel/emulate.h"
#include "product.h"

// Where tools/emulate puts the variables of the kernel's object.
extern "C" const char __start_emulate_bss __attribute__((weak));   // NOLINT(readability-identifier-naming)
extern "C" const char __stop_emulate_bss __attribute__((weak));    // NOLINT(readability-identifier-naming)
extern "C" const char __start_emulate_data __attribute__((weak));  // NOLINT(readability-identifier-naming)
extern "C" const char __stop_emulate_data __attribute__((weak));   // NOLINT(readability-identifier-naming)

void emulate::detail::name_next_allocation(const std::string& name) {
  emulator_cuda::name_next_allocation(name);
}

namespace {

using harness::Completion;

struct Options {
  std::uint64_t seed = 1;
  int seeds = 12;
  std::uint64_t schedule_seed = 0;  // 0: many
  std::string completion = "random";
  std::string elect = "any";
  int sms = 4;
  bool counters = false;
  double seconds = 60;
  double total_seconds = 0;  // 0: no limit
  std::string trace;
  int trace_ctas = 4;
  std::vector<std::string> allow, strict;
};

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};

const char* name_of(Completion completion) {
  if (completion == Completion::kEarliest) return "earliest";
  return completion == Completion::kLatest ? "latest" : "random";
}

std::vector<Schedule> schedules_of(const Options& options) {
  std::vector<Schedule> schedules;
  Completion wanted = Completion::kRandom;
  if (options.completion == "earliest") wanted = Completion::kEarliest;
  if (options.completion == "latest") wanted = Completion::kLatest;
  if (options.schedule_seed != 0) return {{options.schedule_seed, wanted}};
  for (int seed = 1; seed <= options.seeds; ++seed) {
    schedules.push_back({static_cast<std::uint64_t>(seed), wanted});
    // Both ends, early: what shows there shows at once.
    if (seed == 1 && wanted == Completion::kRandom) {
      schedules.push_back({1, Completion::kEarliest});
      schedules.push_back({1, Completion::kLatest});
    }
  }
  return schedules;
}

void declare(CLI::App& app, Options& options) {
  app.add_option("--seed", options.seed, "Seed of the inputs")
      ->capture_default_str()
      ->check(harness::seed_problem);
  app.add_option("--seeds", options.seeds, "Number of schedules to try, besides earliest and latest")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--schedule-seed", options.schedule_seed,
                 "Run one schedule: the one that a report has named")
      ->check(harness::seed_problem);
  app.add_option("--completion", options.completion,
                 "When asynchronous operations complete: random, earliest or latest")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "earliest", "latest"}));
  app.add_option("--elect", options.elect,
                 "The lane that elect.sync chooses: any (the seed decides) or lowest (as on Hopper GPUs)")
      ->capture_default_str()
      ->check(CLI::IsMember({"any", "lowest"}));
  app.add_option("--sms", options.sms, "Number of SMs")->capture_default_str()->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds,
                 "Limit for a launch, after which it is reported as a livelock, and for host code, which is "
                 "then ended")
      ->capture_default_str()
      ->check(harness::seconds_problem);
  app.add_option("--total", options.total_seconds,
                 "Limit for all schedules together, after which no other one is started; without it, all run")
      ->check(harness::seconds_problem);
  app.add_flag("--counters", options.counters,
               "Count bytes, sectors, bank conflicts and instructions by source line");
  app.add_option("--trace", options.trace,
                 "Record one run as a timeline and write it to this file, for Perfetto")
      ->check(harness::file_problem);
  app.add_option("--trace-ctas", options.trace_ctas, "Number of CTAs on the timeline")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--allow", options.allow, "Switch off rules that are stricter than the PTX ISA")
      ->delimiter(',');
  app.add_option("--strict", options.strict, "Switch on rules that are off by default")->delimiter(',');
}

/// What Run::work was told, and the CPU time of the launches.
struct Speed {
  std::map<std::string, std::size_t> work;
  double cpu_seconds = 0;
  std::size_t expectations = 0;
  std::uint64_t launches = 0;
};

/// Host code that calls exit() ends this schedule, not the program: emulate-cc redirects the call to
/// emulator_exit. Its frames are left without their destructors, as exit() leaves them.
struct HostCode {
  std::jmp_buf end;
  bool is_running = false;
  const std::thread::id thread = std::this_thread::get_id();
  std::string ending;  // how it ended, when it did not return
};
HostCode host_code;

[[noreturn]] void end_host_code(const std::string& ending) {
  if (!host_code.is_running || std::this_thread::get_id() != host_code.thread ||
      emulator::is_running_grid()) {
    harness::complain(
        fmt::format("error: {} was called in a kernel or in another thread of the host code, where the "
                    "emulator cannot follow it\n",
                    ending.empty() ? "exit(0)" : ending));
    std::_Exit(harness::kExitUsage);
  }
  host_code.ending = ending;
  std::longjmp(host_code.end, 1);  // NOLINT(cert-err52-cpp): exit() does not return, and throws nothing
}

void run_host_code(emulate::Run& run) {
  struct Running {
    Running() { host_code.is_running = true, host_code.ending.clear(); }
    ~Running() { host_code.is_running = false; }
  } running;
  // NOLINTNEXTLINE(cert-err52-cpp)
  if (setjmp(host_code.end) == 0) {
    emulate::detail::run_once(run);
  } else {
    run.expect(true, {});  // main has ended with exit(0), or the sentence is the one below
  }
  if (!host_code.ending.empty())
    throw emulate::Mismatch(fmt::format("the host code ended with {}", host_code.ending));
}

/// Whatever happens, the next run finds no buffers.
void run_once(const Options& options, Speed& speed) {
  struct Cleanup {
    ~Cleanup() { emulator_cuda::free_everything(); }
  } cleanup;
  const HostWatch watch(options.seconds);
  emulate::Run run(options.seed, true);
  const double before = emulator::cpu_seconds_of_grids();
  const std::uint64_t launches_before = emulator::launches_so_far();
  emulator::forget_allocations();
  run_host_code(run);
  emulator_cuda::finish_all();  // what streams have left to do
  speed.cpu_seconds += emulator::cpu_seconds_of_grids() - before;
  speed.expectations += run.expectations();
  speed.launches += emulator::launches_so_far() - launches_before;
  for (const auto& [unit, count] : run.work()) speed.work[unit] += count;
  if (const std::string sentence = emulator::take_host_access(); !sentence.empty())
    throw harness::Error(sentence);
}

void control(const Options& options, const Schedule& schedule) {
  harness::control_emulator({.schedule_seed = schedule.seed,
                             .completion = schedule.completion,
                             .sm_count = options.sms,
                             .counters = options.counters,
                             .launch_seconds = options.seconds});
  emulator::Options emulated = emulator::options();
  emulated.stall_seconds = std::min(emulated.stall_seconds, options.seconds);
  emulator::set_options(emulated);
}

int trace(const Options& options) {
  harness::check_writable(options.trace);
  const Schedule schedule = schedules_of(options).front();
  control(options, schedule);
  Speed speed;
  const harness::TraceData data =
      harness::record_launch([&] { run_once(options, speed); }, options.trace_ctas);
  const std::vector<harness::TraceTimeline> all = harness::timelines(data, 1);
  if (all.empty())
    throw harness::Error("the kernel has nothing to trace: a timeline shows waits, copies and wgmma");
  nlohmann::ordered_json about;
  about["schedule_seed"] = schedule.seed;
  about["time_axis"] = harness::time_axis(data);
  harness::write_text(options.trace, harness::trace_json(data, all, about));
  fmt::print("the timeline of the first {} of {} CTAs is in {}; the time axis is {}\n",
             std::min(options.trace_ctas, data.ctas), data.ctas, options.trace, harness::time_axis(data));
  return harness::kExitOk;
}

/// What was found, and what nobody has looked at.
std::string verdict(const Options& options, const Speed& speed) {
  if (speed.launches == 0) return "no kernel was launched, so nothing was checked";
  std::string text = speed.expectations > 0
                         ? "no rule is broken, and the results are right"
                         : "no rule is broken; the results were not looked at, because check_kernel calls "
                           "none of the functions run.expect, run.expect_equal, run.expect_close and "
                           "run.expect_gemm";
  if (!options.allow.empty())
    text += fmt::format("; not checked, as --allow says: {}", fmt::join(options.allow, ", "));
  return text;
}

/// Runs the schedule; a broken rule or a wrong result ends the process with its report.
std::optional<int> run_schedule(const Options& options, const Schedule& schedule, const std::string& again,
                                Speed& speed) {
  control(options, schedule);
  try {
    run_once(options, speed);
  } catch (const emulate::Mismatch& mismatch) {
    harness::complain(fmt::format("wrong result: {}\n  again    {}\n", mismatch.what(), again));
    if (const std::string clue = harness::take_emulator_clue(); !clue.empty())
      harness::complain(fmt::format("  perhaps  {}\n", clue));
    return harness::kExitMismatch;
  } catch (const harness::EmulatorReport& report) {
    throw harness::EmulatorReport(report.rule(), fmt::format("{}\n  again    {}", report.what(), again));
  }
  return std::nullopt;
}

/// The same in a process of its own: the file's variables begin with the values that they have when a program
/// starts, in every schedule.
std::optional<int> run_in_child(const Options& options, const Schedule& schedule, const std::string& again,
                                const std::string& progress, Speed& speed) {
  std::array<int, 2> pipe{};
  std::fflush(nullptr);
  if (::pipe(pipe.data()) != 0) return run_schedule(options, schedule, again, speed);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    Speed own;
    if (const std::optional<int> status = run_schedule(options, schedule, again, own)) return status;
    nlohmann::json told = {{"cpu_seconds", own.cpu_seconds},
                           {"work", own.work},
                           {"expectations", own.expectations},
                           {"launches", own.launches}};
    const std::string text = told.dump();
    const bool is_told = ::write(pipe[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::fflush(nullptr);
    std::_Exit(is_told ? harness::kExitOk : harness::kExitUsage);
  }
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return run_schedule(options, schedule, again, speed);
  }
  std::string text;
  int status = 0;
  {
    const harness::Progress shown(progress);
    std::array<char, 4096> part{};
    for (ssize_t bytes = 0; (bytes = ::read(pipe[0], part.data(), part.size())) != 0;) {
      if (bytes > 0) text.append(part.data(), static_cast<std::size_t>(bytes));
      if (bytes < 0 && errno != EINTR) break;
    }
    ::close(pipe[0]);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (WIFSIGNALED(status)) {  // this process ends as the host code did
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  if (text.empty())
    throw harness::Error("the host code ended the program and not by returning, exit() or abort()");
  const nlohmann::json told = nlohmann::json::parse(text);
  speed.cpu_seconds += told["cpu_seconds"].get<double>();
  speed.expectations += told["expectations"].get<std::size_t>();
  speed.launches += told["launches"].get<std::uint64_t>();
  for (const auto& [unit, count] : told["work"].items()) speed.work[unit] += count.get<std::size_t>();
  return std::nullopt;
}

int check(const Options& options) {
  const std::vector<Schedule> schedules = schedules_of(options);
  const bool is_one = schedules.size() == 1 || options.counters;  // the counters are those of one run
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const std::size_t planned = is_one ? 1 : schedules.size();
  std::size_t done = 0;
  Speed speed;
  for (std::size_t i = 0; i < planned; ++i) {
    if (i > 0 && options.total_seconds > 0 && seconds_passed() >= options.total_seconds) break;
    ++done;
    const Schedule& schedule = schedules[i];
    const std::string again = fmt::format("--schedule-seed {} --completion {} --sms {}", schedule.seed,
                                          name_of(schedule.completion), options.sms);
    const std::string progress = fmt::format("schedule {} of {}: {}", i + 1, schedules.size(), again);
    std::optional<int> status;
    if (is_one) {
      const harness::Progress shown(progress);
      status = run_schedule(options, schedule, again, speed);
    } else {
      status = run_in_child(options, schedule, again, progress, speed);
    }
    if (status) return *status;
  }
  if (options.counters) fmt::print("{}", harness::fitted_table(harness::take_emulator_counters().table));
  const std::string count = done < planned ? fmt::format("{} of {} schedules, within --total {:g},", done,
                                                         planned, options.total_seconds)
                                           : harness::counted(done, "schedule");
  fmt::print("{} on {} SMs: {} ({:.1f} s)\n", count, options.sms, verdict(options, speed), seconds_passed());
  for (const auto& [unit, count] : speed.work) {
    fmt::print("{:.0f} {} per second of CPU time: {} in {:.2f} s of launches\n",
               static_cast<double>(count) / std::max(speed.cpu_seconds, 1e-6), unit, count,
               speed.cpu_seconds);
  }
  return harness::kExitOk;
}

}  // namespace

/// What objcopy makes of the C library's exit, _exit and abort in a kernel's object.
extern "C" [[noreturn]] void emulator_exit(int status);
extern "C" void emulator_exit(int status) {
  end_host_code(status == 0 ? std::string() : fmt::format("exit({})", status));
}
extern "C" [[noreturn]] void emulator_exit_now(int status);
extern "C" void emulator_exit_now(int status) {
  emulator_exit(status);
}
extern "C" [[noreturn]] void emulator_abort();
extern "C" void emulator_abort() {
  end_host_code("abort()");
}

int main(int argc, char** argv) {
  Options options;
  // What follows -- is for the file's main.
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    emulate::detail::arguments_of_main.assign(argv + i + 1, argv + argc);
    argc = i;
  }
  CLI::App app("Runs a file with a kernel on the emulator, under many schedules.", "tools/emulate FILE.cu");
  declare(app, options);
  return harness::run_program(app, argc, argv, [&] {
    emulator::register_program_memory(&__start_emulate_bss, &__stop_emulate_bss);
    emulator::register_program_memory(&__start_emulate_data, &__stop_emulate_data);
    harness::switch_course_rules(options.allow, options.strict);
    harness::elect_lowest_lane(options.elect == "lowest");
    return options.trace.empty() ? check(options) : trace(options);
  });
}
