// The program that tools/emulate makes of a kernel's file: runs the file's check_kernel under many schedules.
#include <fcntl.h>
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
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/instrument/cuda_program.h"
#include "emulator/instrument/program_memory.h"
#include "emulator/instrument/stream_order.h"
#include "emulator/instrument/streams.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/options.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/explore_control.h"
#include "harness/backend/ordering_control.h"
#include "harness/backend/trace_control.h"
#include "harness/base/output.h"
#include "harness/base/stricter_rule.h"
#include "harness/cli/guarded.h"
#include "harness/cli/necessary.h"
#include "harness/cli/page_data.h"
#include "harness/cli/program.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/necessary.h"
#include "host_watch.h"
#include "outcome.h"
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

constexpr double kSeconds = 60;

struct Options {
  std::uint64_t seed = 1;
  int seeds = 12;
  std::uint64_t schedule_seed = 0;  // 0: many
  std::string completion = "random";
  std::string elect = "any";
  int sms = 4;
  bool counters = false;
  bool ledger = false;
  bool json = false;
  double seconds = kSeconds;
  double total_seconds = 0;  // 0: no limit
  std::string html_data;
  std::string trace;
  int trace_ctas = 4;
  std::vector<std::string> allow, strict;
  bool explore = false;
  bool shrink = false;
  std::string schedule = "failing.schedule";
  std::string replay;
  std::string events;
  std::string without;
  bool necessary = false;
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
  CLI::Option* explore = app.add_flag(
      "--explore", options.explore,
      "Run every schedule that differs from the others in an order that matters, and print the shortest "
      "one that fails (docs/emulator/every-schedule.md); --total limits the search (default: 300)");
  CLI::Option* shrink =
      app.add_flag("--shrink", options.shrink,
                   "Run the schedule that --schedule-seed and --completion say; if it fails, leave "
                   "out what the failure does not need")
          ->excludes(explore);
  app.add_option("--schedule", options.schedule,
                 "The file for the failing schedule that --explore or --shrink has found")
      ->capture_default_str()
      ->check(harness::file_problem);
  CLI::Option* replay =
      app.add_option("--replay", options.replay, "Walk through the schedule in this file, step by step")
          ->check(harness::file_problem)
          ->excludes(explore)
          ->excludes(shrink);
  app.add_option("--events", options.events,
                 "With --replay: write what happens to each mbarrier to this file, one JSON object per line")
      ->check(harness::file_problem)
      ->needs(replay);
  CLI::Option* counters = app.add_flag(
      "--counters", options.counters, "Count bytes, sectors, bank conflicts and instructions by source line");
  CLI::Option* ledger =
      app.add_flag(
             "--ledger", options.ledger,
             "Run one schedule and print its barrier ledger: who arrives at each barrier, who waits, and "
             "which bytes it orders")
          ->excludes(counters);
  CLI::Option* trace = app.add_option("--trace", options.trace,
                                      "Record one run as a timeline and write it to this file, for Perfetto")
                           ->check(harness::file_problem);
  CLI::Option* json =
      app.add_flag("--json", options.json,
                   "Print one JSON document to standard output, and everything else to standard error "
                   "(docs/schemas/emulate.schema.json)")
          ->excludes(counters)
          ->excludes(trace)
          ->excludes(explore)
          ->excludes(shrink)
          ->excludes(replay);
  CLI::Option* necessary = app.add_flag(
      "--necessary", options.necessary,
      "Leave out each wait, arrival, fence and barrier in turn, and say what is broken without it");
  for (CLI::Option* option : {explore, shrink, replay, necessary})
    option->excludes(counters)->excludes(trace)->excludes(ledger);
  CLI::Option* html =
      app.add_option(
             "--html-data", options.html_data,
             "Where a rule is broken or a result is wrong: write the report and what led to it to this "
             "file as JSON, of which "
             "tools/emulate --html FILE makes a page")
          ->check(harness::file_problem)
          ->excludes(counters)
          ->excludes(trace);
  app.add_option(
         "--without", options.without,
         "Leave out the wait, arrival, fence or barrier at this FILE:LINE in every thread; if several are "
         "there, 'FILE:LINE mbarrier_arrive(empty)' names one of them")
      ->excludes(necessary);
  for (CLI::Option* option : {explore, shrink, replay, json, html}) necessary->excludes(option);
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
  harness::EmulatorLedger ledger{};  // of the latest schedule
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

/// Where a schedule's own process tells how the schedule has ended; -1 where it has none.
int outcome_pipe = -1;

bool tell(const nlohmann::json& told) {
  const std::string text = told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return ::write(outcome_pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// The host code cannot go on, and nothing can be left in order.
[[noreturn]] void give_up(const std::string& sentence) {
  if (outcome_pipe >= 0) {
    tell(nlohmann::json(Outcome{.status = harness::kExitUsage, .text = sentence}));
  } else {
    const std::string line =
        fmt::format("error: {}\n", sentence);  // not by the streams: the host's code may hold their locks
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  std::_Exit(harness::kExitUsage);
}

[[noreturn]] void end_host_code(const std::string& ending) {
  if (!host_code.is_running || std::this_thread::get_id() != host_code.thread ||
      emulator::is_running_grid()) {
    give_up(
        fmt::format("{} was called in a kernel or in another thread of the host code, where the emulator "
                    "cannot follow it",
                    ending.empty() ? "exit(0)" : ending));
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

/// What streams have left to do when the host code has ended, and what is known of the host code then.
void finish_streams() {
  emulator_cuda::finish_all();
  emulator_cuda::throw_host_report();
}

/// Whatever happens, the next run finds no buffers.
void run_once(const Options& options, Speed& speed) {
  struct Cleanup {
    ~Cleanup() { emulator_cuda::free_everything(); }
  } cleanup;
  const HostWatch watch(options.seconds, give_up);
  emulate::Run run(options.seed, true);
  const double before = emulator::cpu_seconds_of_grids();
  const std::uint64_t launches_before = emulator::launches_so_far();
  emulator::forget_allocations();
  try {
    run_host_code(run);
  } catch (const emulate::Mismatch&) {
    finish_streams();  // where a rule is broken, it is the reason
    throw;
  }
  finish_streams();
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
                             .counters = options.counters || options.ledger,
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

/// What nobody has looked at, although no rule is broken.
std::vector<std::string> not_checked(const Options& options, const Speed& speed) {
  std::vector<std::string> all;
  if (speed.launches == 0) return {"anything, because no kernel was launched"};
  if (speed.expectations == 0)
    all.emplace_back(
        "the results, because check_kernel calls none of the functions run.expect, run.expect_equal, "
        "run.expect_close and run.expect_gemm");
  for (const std::string& rule : options.allow) all.push_back(rule + ", as --allow says");
  return all;
}

/// The same in the sentence that ends a run without a report.
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

/// The arguments that repeat a schedule: its own, and those that the caller has set.
std::vector<std::string> arguments_of(const Options& options, const Schedule& schedule) {
  std::vector<std::string> words = {"--schedule-seed", fmt::format("{}", schedule.seed),
                                    "--completion",    name_of(schedule.completion),
                                    "--sms",           fmt::format("{}", options.sms)};
  const Options usual;
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  if (options.seed != usual.seed) add("--seed", fmt::format("{}", options.seed));
  if (options.elect != usual.elect) add("--elect", options.elect);
  if (options.seconds != usual.seconds) add("--seconds", fmt::format("{:g}", options.seconds));
  if (!options.allow.empty()) add("--allow", fmt::format("{}", fmt::join(options.allow, ",")));
  if (!options.strict.empty()) add("--strict", fmt::format("{}", fmt::join(options.strict, ",")));
  if (!options.without.empty()) add("--without", options.without);
  return words;
}

/// Runs the schedule. What was thrown and is no report and no wrong result goes on.
Outcome run_schedule(const Options& options, const Schedule& schedule, Speed& speed) {
  control(options, schedule);
  struct Recording {
    const Options& options;
    Speed& speed;
    Recording(const Options& wanted, Speed& into) : options(wanted), speed(into) {
      if (options.ledger) harness::begin_emulator_ledger();
    }
    ~Recording() {
      if (options.ledger) speed.ledger = harness::take_emulator_ledger();
    }
  } const recording(options, speed);
  const std::string again = fmt::format("\n  again    {}", fmt::join(arguments_of(options, schedule), " "));
  try {
    run_once(options, speed);
  } catch (const emulate::Mismatch& mismatch) {
    std::string text = fmt::format("wrong result: {}{}", mismatch.what(), again);
    if (const std::string clue = harness::take_emulator_clue(); !clue.empty())
      text += fmt::format("\n  perhaps  {}", clue);
    return {.status = harness::kExitMismatch, .rule = "wrong-result", .text = text};
  } catch (const harness::EmulatorReport& report) {
    return {.status = harness::kExitEmulator, .rule = report.rule(), .text = report.what() + again};
  }
  return {};
}

/// The same in a process of its own: the file's variables begin with the values that they have when a program
/// starts, in every schedule.
Outcome run_in_child(const Options& options, const Schedule& schedule, const std::string& progress,
                     Speed& speed) {
  std::array<int, 2> pipe{};
  std::fflush(nullptr);
  if (::pipe(pipe.data()) != 0) return run_schedule(options, schedule, speed);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    outcome_pipe = pipe[1];
    Speed own;
    Outcome outcome;
    const int status = harness::guarded(
        [&] {
          outcome = run_schedule(options, schedule, own);
          return harness::kExitOk;
        },
        [&](const std::string& sentence) { outcome = {.status = harness::kExitUsage, .text = sentence}; });
    if (status != harness::kExitOk) outcome.status = status;
    nlohmann::json told = outcome;
    told["cpu_seconds"] = own.cpu_seconds;
    told["work"] = own.work;
    told["expectations"] = own.expectations;
    told["launches"] = own.launches;
    told["ledger"] = own.ledger.json;
    const bool is_told = tell(told);
    std::fflush(nullptr);
    std::_Exit(is_told ? harness::kExitOk : harness::kExitUsage);
  }
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return run_schedule(options, schedule, speed);
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
  if (WIFSIGNALED(status))
    return {.status = 128 + WTERMSIG(status), .text = told_of_signal(WTERMSIG(status))};
  const nlohmann::json told = nlohmann::json::parse(text, nullptr, false);
  if (told.is_discarded())
    return {.status = harness::kExitUsage,
            .text = "the host code ended the program and not by returning, exit() or abort()"};
  speed.cpu_seconds += told.value("cpu_seconds", 0.0);
  speed.expectations += told.value("expectations", std::size_t{0});
  speed.launches += told.value("launches", std::uint64_t{0});
  speed.ledger.json = told.value("ledger", std::string());
  for (const auto& [unit, count] : told.value("work", std::map<std::string, std::size_t>{}))
    speed.work[unit] += count;
  return told.get<Outcome>();
}

/// Says how a schedule has ended badly, to people; returns the program's exit status.
int complain_of(const Outcome& outcome, bool may_raise) {
  if (outcome.status > 128 && may_raise) {  // this process ends as the host code did
    std::fflush(nullptr);
    std::signal(outcome.status - 128, SIG_DFL);
    std::raise(outcome.status - 128);
  }
  harness::complain(fmt::format("{}{}\n", outcome.rule.empty() ? "error: " : "", outcome.text));
  return outcome.status > 128 ? harness::kExitUsage : outcome.status;
}

/// A report of a stricter rule ends the run, and may come before a mistake that every reading of the PTX ISA
/// forbids: runs the schedules again without such rules, for a few seconds, until there is one. Its text, or
/// "".
std::string harder_report(Options options, const std::vector<Schedule>& schedules, Outcome outcome) {
  constexpr std::size_t kRules = 3;
  constexpr std::chrono::seconds kAtMost(5);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kRules && !harness::stricter_rule_of(outcome.text).empty(); ++i) {
    options.allow.push_back(harness::stricter_rule_of(outcome.text));
    harness::switch_course_rules(options.allow, options.strict);
    outcome = {};
    for (const Schedule& schedule : schedules) {
      if (outcome.status != harness::kExitOk || std::chrono::steady_clock::now() - begin > kAtMost) break;
      Speed unused;
      outcome = run_in_child(options, schedule, "without " + options.allow.back(), unused);
    }
  }
  return harness::stricter_rule_of(outcome.text).empty() && !outcome.rule.empty() ? outcome.text
                                                                                  : std::string();
}

/// What has been run so far, for the document.
struct Progressed {
  std::size_t planned = 0;
  std::size_t run = 0;
};

nlohmann::ordered_json document_of(const Options& options, const Progressed& schedules, const Speed& speed,
                                   const Outcome& outcome, const Schedule& last) {
  nlohmann::ordered_json document = begin_document();
  const bool is_right = outcome.status == harness::kExitOk && speed.expectations > 0;
  document["result"] =
      outcome.status == harness::kExitMismatch ? "wrong" : (is_right ? "right" : "not judged");
  document["exit_status"] = outcome.status > 128 ? harness::kExitUsage : outcome.status;
  document["schedules"] = {{"planned", schedules.planned}, {"run", schedules.run}, {"sms", options.sms}};
  document["launches"] = speed.launches;
  document["reports"] = nlohmann::ordered_json::array();
  if (!outcome.rule.empty()) {
    nlohmann::ordered_json report = report_of(outcome);
    report["schedule"] = {
        {"seed", last.seed}, {"completion", name_of(last.completion)}, {"sms", options.sms}};
    report["repeat"] = command_of(arguments_of(options, last), emulate::detail::arguments_of_main);
    document["reports"].push_back(report);
  } else if (outcome.status != harness::kExitOk) {
    document["error"] = {{"kind", "host"}, {"message", outcome.text}};
  }
  if (options.ledger && !speed.ledger.json.empty())
    document["ledger"] = nlohmann::ordered_json::parse(speed.ledger.json);
  document["not_checked"] = outcome.status == harness::kExitOk
                                ? not_checked(options, speed)
                                : std::vector<std::string>{"what follows the place where the run ended"};
  return document;
}

/// Runs the schedule once more, in a process of its own, for a page about its report.
void tell_page(const Options& options, const Schedule& schedule, const nlohmann::ordered_json& report) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int status = harness::guarded([&] {
      nlohmann::ordered_json about = {
          {"file", begin_document()["file"]},
          {"SMs", fmt::format("{}", options.sms)},
          {"schedule", fmt::format("seed {}, completion {}", schedule.seed, name_of(schedule.completion))}};
      control(options, schedule);
      const auto again = [&] {
        Speed unused;
        try {
          run_once(options, unused);
        } catch (const emulate::Mismatch&) {  // as the first time
        }
      };
      harness::write_page_data(
          options.html_data, report, about, again, 1, [&](const harness::TraceData& data) {
            return nlohmann::ordered_json{{"sms", options.sms}, {"time", harness::time_axis(data)}};
          });
      return harness::kExitOk;
    });
    std::fflush(nullptr);
    std::_Exit(status);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) throw harness::Error("the run could not be recorded for --html");
}

/// False where it cannot be written. Only the first document is written.
bool write_document(std::FILE* json, const nlohmann::ordered_json& document) {
  static bool is_written = false;
  if (std::exchange(is_written, true)) return true;
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return std::fprintf(json, "%s\n", text.c_str()) >= 0 && std::fflush(json) == 0;
}

/// While every schedule is run, what the host code prints goes nowhere.
class Silence {
 public:
  Silence() : kept_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  ~Silence() {
    std::fflush(stdout);
    if (kept_ < 0) return;
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int kept_;
};

/// Of the reader's file, or of the program.
std::string name_of_file(const char* program) {
  const char* const file = std::getenv("EMULATE_FILE");  // NOLINT(concurrency-mt-unsafe)
  return std::filesystem::path(file != nullptr && *file != 0 ? file : program).filename().string();
}

/// Those that one run executes.
std::vector<harness::OrderingStatement> ordering_statements(const Options& options) {
  control(options, schedules_of(options).front());
  harness::list_ordering_statements();
  try {
    const Silence silence;
    Speed unused;
    run_once(options, unused);
  } catch (const emulate::Mismatch&) {  // what is wrong is said when the file is run
  } catch (const harness::EmulatorReport&) {
  }
  return harness::take_ordering_statements();
}

/// As it is typed.
std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = word.find_first_of(" \t\"$&|;<>()*?#~`\\!{}") == std::string::npos;
    line += (line.empty() ? "" : " ") + (is_plain ? word : "'" + word + "'");
  }
  return line;
}

/// --explore, --shrink, --replay.
int explore(const Options& options, const std::string& file) {
  control(options, schedules_of(options).front());
  const auto run = [&] {
    const Silence silence;
    Speed unused;
    try {
      run_once(options, unused);
    } catch (const emulate::Mismatch& mismatch) {
      return harness::ScheduleResult{false, "wrong-result", fmt::format("wrong result: {}", mismatch.what())};
    }
    return harness::ScheduleResult{};
  };
  harness::ScheduleRequest request{.output = {harness::check_writable, harness::write_text, harness::fitted,
                                              harness::show_progress, harness::clear_progress}};
  request.subject = fmt::format("{}, seed {}", file, options.seed);
  if (options.total_seconds > 0) request.seconds = options.total_seconds;
  request.file = options.replay.empty() ? options.schedule : options.replay;
  request.events = options.events;
  std::vector<std::string> words = arguments_of(options, schedules_of(options).front());
  words.erase(words.begin(), words.begin() + 4);  // the schedule is the file's
  words.insert(words.end(), {"--replay", request.file});
  request.replay_command = shell_line(command_of(words, emulate::detail::arguments_of_main));
  if (options.explore) return harness::explore_schedules(request, run);
  return options.shrink ? harness::shrink_schedule(request, run) : harness::replay_schedule(request, run);
}

int check(const Options& options, std::FILE* json) {
  if (!options.html_data.empty()) harness::check_writable(options.html_data);
  const std::vector<Schedule> schedules = schedules_of(options);
  // The counters, and the ledger, are those of one run.
  const bool is_one = schedules.size() == 1 || options.counters || options.ledger;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Progressed so_far{.planned = options.counters || options.ledger ? 1 : schedules.size()};
  Speed speed;
  Outcome outcome;
  for (std::size_t i = 0; i < so_far.planned && outcome.status == harness::kExitOk; ++i) {
    const std::string progress = fmt::format("schedule {} of {}: {}", i + 1, schedules.size(),
                                             fmt::join(arguments_of(options, schedules[i]), " "));
    if (so_far.run > 0 && options.total_seconds > 0 && seconds_passed() >= options.total_seconds) break;
    ++so_far.run;
    if (is_one && !json) {
      const harness::Progress shown(progress);
      outcome = run_schedule(options, schedules[i], speed);
    } else {
      outcome = run_in_child(options, schedules[i], progress, speed);
    }
  }
  std::string harder;
  if (outcome.status != harness::kExitOk && !json && !is_one &&
      !harness::stricter_rule_of(outcome.text).empty())
    harder = harder_report(options, schedules, outcome);
  if (!options.html_data.empty() && !outcome.rule.empty()) {
    const nlohmann::ordered_json document =
        document_of(options, so_far, speed, outcome, schedules[so_far.run - 1]);
    nlohmann::ordered_json report = document["reports"][0];
    if (!harder.empty()) report["without_that_rule"] = harder;
    tell_page(options, schedules[so_far.run - 1], report);
  }
  if (json && !write_document(json, document_of(options, so_far, speed, outcome, schedules[so_far.run - 1])))
    throw harness::Error("standard output cannot be written");
  if (options.ledger && !json)
    fmt::print("{}{}\n", outcome.status == harness::kExitOk ? "" : "the ledger up to the report:\n",
               speed.ledger.text);
  if (outcome.status != harness::kExitOk) {
    const int status = complain_of(outcome, json == nullptr);
    if (!harder.empty()) harness::complain("without that rule, another one is broken:\n" + harder + "\n");
    return status;
  }
  if (options.counters) fmt::print("{}", harness::fitted_table(harness::take_emulator_counters().table));
  const std::string count = so_far.run < so_far.planned
                                ? fmt::format("{} of {} schedules, within --total {:g},", so_far.run,
                                              so_far.planned, options.total_seconds)
                                : harness::counted(so_far.run, "schedule");
  fmt::print("{} on {} SMs: {} ({:.1f} s)\n", count, options.sms, verdict(options, speed), seconds_passed());
  for (const auto& [unit, count] : speed.work) {
    fmt::print("{:.0f} {} per second of CPU time: {} in {:.2f} s of launches\n",
               static_cast<double>(count) / std::max(speed.cpu_seconds, 1e-6), unit, count,
               speed.cpu_seconds);
  }
  return harness::kExitOk;
}

/// What the schedules find without the statement, and again without each stricter rule that they name.
harness::Necessity judge(Options options, const harness::OrderingStatement& statement) {
  using Verdict = harness::Necessity::Verdict;
  const std::string progress =
      fmt::format("without {} at {}", harness::to_string(statement), statement.place);
  harness::Necessity necessity{.statement = statement};
  std::vector<std::string> stricter;
  harness::leave_out(statement);
  while (true) {
    Outcome outcome;
    necessity.schedules = 0;
    for (const Schedule& schedule : schedules_of(options)) {
      Speed unused;
      outcome = run_in_child(options, schedule, progress, unused);
      if (outcome.status != harness::kExitOk) break;
      ++necessity.schedules;
    }
    if (outcome.status == harness::kExitOk) break;
    const std::string rule = harness::stricter_rule_of(outcome.text);
    if (rule.empty()) {
      necessity.verdict = Verdict::kNeeded;
      necessity.rule = outcome.rule.empty() ? outcome.text : outcome.rule;
      break;
    }
    stricter.push_back(rule);
    options.allow.push_back(rule);
    harness::switch_course_rules({rule}, {});
  }
  harness::leave_nothing_out();
  harness::switch_course_rules({}, stricter);
  if (necessity.verdict != Verdict::kNeeded && !stricter.empty()) {
    necessity.verdict = Verdict::kStricter;
    necessity.stricter = fmt::format("{}", fmt::join(stricter, ", "));
  }
  return necessity;
}

/// --necessary.
int judge_statements(const Options& options) {
  if (const int status = check(options, nullptr); status != harness::kExitOk) return status;
  for (const harness::OrderingStatement& statement : ordering_statements(options)) {
    const harness::Necessity necessity = [&] {
      const Silence silence;
      return judge(options, statement);
    }();
    fmt::print("| {} | {} | {} | {} |\n", harness::to_string(statement), statement.place, statement.by,
               harness::to_string(necessity));
    std::fflush(stdout);
  }
  return harness::kExitOk;
}

/// With --json, what the program and the file's main print goes to standard error, and the document to the
/// stream that this returns.
std::FILE* take_standard_output() {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  if (kept < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return nullptr;
  ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  return ::fdopen(kept, "w");
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
  bool wants_json = false;
  // What follows -- is for the file's main.
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") wants_json = true;
    if (std::string_view(argv[i]) != "--") continue;
    emulate::detail::arguments_of_main.assign(argv + i + 1, argv + argc);
    argc = i;
  }
  CLI::App app("Runs a file with a kernel on the emulator, under many schedules.", "tools/emulate FILE.cu");
  declare(app, options);
  const auto run = [&](std::FILE* json) {
    emulator::register_program_memory(&__start_emulate_bss, &__stop_emulate_bss);
    emulator::register_program_memory(&__start_emulate_data, &__stop_emulate_data);
    harness::switch_course_rules(options.allow, options.strict);
    harness::elect_lowest_lane(options.elect == "lowest");
    if (!options.without.empty()) harness::leave_out_named(ordering_statements(options), options.without);
    if (options.necessary) return judge_statements(options);
    if (options.explore || options.shrink || !options.replay.empty())
      return explore(options, name_of_file(argv[0]));
    return options.trace.empty() ? check(options, json) : trace(options);
  };
  if (!wants_json) return harness::run_program(app, argc, argv, [&] { return run(nullptr); });
  std::FILE* const json = take_standard_output();
  return harness::guarded(
      [&] {
        if (!json) throw harness::Error("standard output cannot be written");
        const std::optional<int> status = harness::parse_arguments(app, argc, argv);
        return status ? *status : run(json);
      },
      [&](const std::string& sentence) {
        harness::complain(fmt::format("error: {}\n", sentence));
        if (json) write_document(json, document_of_error("input", sentence));
      });
}
