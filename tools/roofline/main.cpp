// roofline: what the memory and the arithmetic of this GPU can do, measured.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench.h"
#include "harness/base/output.h"
#include "harness/cli/program.h"
#include "harness/record/commit.h"
#include "harness/timing/clock.h"
#include "record.h"

namespace {

using harness::Clock;
using harness::seconds_since;

/// Every probe once, in order. Rounds go around all probes, so that a drift of the clock meets all figures
/// alike.
void run_round(const std::vector<roofline::Probe>& probes, std::vector<roofline::Figure>* figures) {
  std::size_t place = 0;
  for (const roofline::Probe& probe : probes) {
    if (probe.idle_ms > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(probe.idle_ms));
    std::vector<double> samples(probe.figures.size());
    probe.run(samples);
    if (figures == nullptr) continue;
    for (const double sample : samples) (*figures)[place++].samples.push_back(sample);
  }
}

int measure(bool quick, const std::string& json) {
  constexpr int kRounds = 15;
  constexpr int kQuickRounds = 3;
  constexpr double kLimitSeconds = 15;  // no further round is begun later than this
  if (!json.empty()) harness::check_writable(json);
  const auto start = Clock::now();

  harness::show_progress("filling the buffers");
  roofline::Bench bench;
  const std::string date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  harness::show_progress("warming up");
  roofline::warm_up(bench);
  roofline::add_dram(bench);
  roofline::add_l2(bench);
  roofline::add_l1(bench);
  roofline::add_shared(bench);
  roofline::add_latency(bench);
  roofline::add_arithmetic(bench);
  roofline::add_wgmma(bench);
  roofline::add_loads(bench);
  roofline::add_overheads(bench);

  std::vector<roofline::Figure> figures;
  for (const roofline::Probe& probe : bench.probes())
    figures.insert(figures.end(), probe.figures.begin(), probe.figures.end());

  run_round(bench.probes(), nullptr);  // loads the code of every kernel
  const int wanted = quick ? kQuickRounds : kRounds;
  int rounds = 0;
  while (rounds < wanted && (rounds < kQuickRounds || seconds_since(start) < kLimitSeconds)) {
    harness::show_progress(fmt::format("round {} of {}", rounds + 1, wanted));
    run_round(bench.probes(), &figures);
    ++rounds;
  }
  harness::show_progress("single lines of the L2");
  for (roofline::Figure& figure : roofline::l2_lines(bench)) figures.push_back(std::move(figure));
  for (roofline::Figure& figure : roofline::l2_sides(bench)) figures.push_back(std::move(figure));
  harness::clear_progress();

  const roofline::Run run{.device = bench.device(),
                          .commit = harness::commit_hash(),
                          .date = date,
                          .quick = quick,
                          .rounds = rounds,
                          .idle_ms = roofline::kIdleMs,
                          .seconds = seconds_since(start)};
  fmt::print("{}, {} SMs, {} rounds, {:.1f} s\n\n{}", run.device.name, run.device.sm_count, run.rounds,
             run.seconds, roofline::human_table(figures));
  fmt::print("\ndocs/memory-hierarchy.md and docs/shared-memory.md explain these numbers\n");
  if (!json.empty()) {
    harness::write_json(json, roofline::to_json(run, figures));
    fmt::print("the record, with every sample and how it was measured, is in {}\n", json);
  }
  for (const roofline::Figure& figure : figures) {
    if (!roofline::is_impossible(figure)) continue;
    throw harness::Error(
        fmt::format("{} is outside the range that the hardware can reach, so this program measured something "
                    "else; do not use its numbers",
                    figure.name));
  }
  return harness::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures the memory hierarchy and the arithmetic of the GPU it runs on.", "roofline"};
  bool quick = false;
  std::string json;
  app.add_flag("--quick", quick, "Three rounds instead of fifteen");
  app.add_option("--json", json, "Write the record of the run to this file")->check(harness::file_problem);
  return harness::run_program(app, argc, argv, [&] { return measure(quick, json); });
}
