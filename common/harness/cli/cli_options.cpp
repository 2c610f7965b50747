#include "harness/cli/cli_options.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/cli/program.h"
#include "harness/predict/budget.h"

namespace harness {
namespace {

constexpr const char* kFooter =
    R"(Without an action, the result is verified, and a GPU then times it briefly.
Without a shape, the emulator checks shapes that exercise the kernel (rings that wrap, several tiles per CTA, odd edges)
under several schedules.

Examples
  tools/run 03                            verify step 03 on whatever this machine has
  tools/run 03 1000x200x64 --check        any shape inside the step's contract
  tools/run 03 4096 --time --variant all  race its variants against cuBLASLt
  tools/run 02 128 --counters --backend emulator
                                          bytes, bank conflicts by source line
  tools/run 11 --ledger                   who arrives at each barrier, who waits, and what it orders
  tools/run 03 4096 --budget              what limits this variant
  tools/run 05 4096 --budget --gpu sm_86  the same on a GPU that is not here
  tools/run 11 --check --html page.html   if a rule is broken: a page about it
  tools/run 11 --trace out.json           which role waits for which, for Perfetto
  tools/run 11 --explore                  every schedule of one tile that differs in an order that matters
  tools/run 30 1000x520x264 --beta -2     D = A B^T - 2 C
  tools/run 52 300x512x128 --groups 40:zipf
                                          300 rows in 40 groups, each with its own B

Exit status: 0 verified, 1 wrong result, 2 bad input or no usable machine, 3 the emulator found a broken rule, 4 the GPU did not finish in time.)";

void add_trace_options(CLI::App& app, TraceOptions& trace) {
  app.add_option(
         "--trace", trace.path,
         "Record one launch as a timeline and write it to this file, for Perfetto (steps 05 and later)")
      ->check(file_problem);
  app.add_option("--trace-ctas", trace.ctas,
                 "Number of CTAs on the timeline; they are the first ones of the grid")
      ->capture_default_str()
      ->check(CLI::Range(1, 64))
      ->needs("--trace");
  app.add_option("--trace-ctas-per-sm", trace.ctas_per_sm,
                 "Number of CTAs that an SM holds at once in the model of the timeline (emulator; default: "
                 "as many as the launch promises)")
      ->check(CLI::Range(1, 32))
      ->needs("--trace");
  app.add_option("--trace-untraced", trace.untraced,
                 "The record of the ordinary build, from which the cost of tracing is computed (GPU; "
                 "tools/run passes it)")
      ->check(file_problem)
      ->needs("--trace");
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.footer(kFooter);
  app.add_flag(
      "--check", options.check,
      "Only verify: exact integers must match bit for bit, and random inputs must be within an error bound");
  app.add_flag("--time", options.time,
               "Verify, then time in interleaved rounds against cuBLAS (needs a GPU)");
  app.add_flag("--budget", options.budget,
               "Print tiles, waves, occupancy, bytes, FLOP per byte and the predicted limiter; run nothing");
  app.add_option(
         "--gpu", options.gpu,
         "The architecture of the GPU that --budget assumes: sm_80, sm_86, sm_89, sm_90 or sm_100, as "
         "documented")
      ->check(CLI::IsMember(documented_architectures()))
      ->needs("--budget");
  app.add_flag("--list", options.list, "List the variants");
  app.add_flag("--describe", options.describe,
               "Print what the step and its variants are as JSON, for programs");
  app.add_flag("--by-arithmetic", options.by_arithmetic,
               "For a step that chooses by shape: choose without the learned correction and without a choice "
               "that was timed");
  app.add_flag("--inject-faults", options.inject_faults,
               "Damage a correct result, at a shape of this action's own, in every way that the verifier "
               "must notice, and check that it does");
  app.add_option(
         "--pattern", options.pattern,
         "Inputs: exact, normal, uniform, identity, arange, special, cancelling (default: exact, normal "
         "and uniform in turn)")
      ->check(name_problem);
  app.add_option("--seed", options.seed, "Seed of the inputs")->capture_default_str()->check(seed_problem);
  app.add_option("--relaunch", options.relaunch, "Launch this many times back to back before checking")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--json", options.json, "Write the record of the run to this file")->check(file_problem);
  app.add_option("--html-data", options.html_data,
                 "Where a rule is broken or a result is wrong: write the report and what led to it to this "
                 "file as JSON, of which "
                 "tools/run --html FILE makes a page (emulator)")
      ->check(file_problem);
  add_trace_options(app, options.trace);
  auto* epilogue =
      app.add_option_group("Epilogue (steps 30 and later): D = activation(alpha A B^T + beta C + bias)");
  epilogue->add_option("--alpha", options.alpha, "Factor of the product (default: 1)")->check(factor_problem);
  epilogue
      ->add_option("--beta", options.beta,
                   "Factor of C; with 0, C is not read (default: what the step shows)")
      ->check(factor_problem);
  epilogue->add_option("--bias", options.bias, "column (one value for each column of D), row, or none")
      ->check(name_problem);
  epilogue
      ->add_option("--activation", options.activation,
                   "none, relu, leaky_relu, gelu (with tanh), gelu_erf or silu")
      ->check(name_problem);
  epilogue->add_flag("--in-place", options.in_place, "Store D in place of C");
  epilogue
      ->add_option("--c-pitch", options.c_pitch,
                   "Number of elements from one row of C to the next (default: N)")
      ->check(CLI::Range(1, 1 << 20));
  epilogue
      ->add_option("--c-offset", options.c_offset,
                   "Number of elements between an aligned address and the start of C")
      ->check(CLI::Range(0, 1 << 20));
  epilogue
      ->add_option("--bias-length", options.bias_length,
                   "Number of elements of the bias (default: as many as it needs)")
      ->check(CLI::Range(1, 1 << 20));
  epilogue
      ->add_option("--top-k", options.top_k,
                   "How many elements of a row are taken, if the epilogue takes the largest (default: 4)")
      ->check(CLI::Range(1, 1 << 20));
  epilogue
      ->add_option("--aux-pitch", options.aux_pitch,
                   "Number of elements (or bits of a bit mask) from one row of the auxiliary tensor to the "
                   "next (default: N, rounded up to 128 for a bit mask)")
      ->check(CLI::Range(1, 1 << 20));
  epilogue
      ->add_option(
          "--aux-offset", options.aux_offset,
          "Number of elements (or bits) between an aligned address and the start of the auxiliary tensor")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option_group("Groups (rows of A and D, each with its own B)")
      ->add_option(
          "--groups", options.groups,
          "The sizes of the groups (300,0,7), or a number, a distribution of the rows (equal, "
          "uniform, zipf, empty, one) and optionally a seed (40:zipf:3). Append +2 for two guard "
          "rows between groups; /64 (step 53) for room for 64 rows in each group; @5 (step 54) to "
          "place the groups anywhere, with the seed 5; @5x to give each an N and a K of its own as well")
      ->check(name_problem);
  auto* timing = app.add_option_group("Timing (GPU)");
  timing
      ->add_option("--mode", options.mode,
                   "burst (idle before each launch, so the clock is high), sustained (back to back, so the "
                   "power limit decides) or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"burst", "sustained", "both"}));
  timing->add_option("--rounds", options.rounds, "Number of rounds; with 0, until the medians are stable")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  timing
      ->add_option(
          "--seconds", options.seconds,
          "Time budget for each shape and mode; with --explore, of the search (there 300 by default)")
      ->capture_default_str()
      ->check(seconds_problem);
  timing->add_flag(
      "--autotune", options.autotune,
      "For a step that chooses by shape: first race the variants that its model finds best, and remember "
      "the one to take");
  timing->add_flag(
      "--quick", options.quick,
      "Give a first answer in a few seconds; on the emulator, run one schedule instead of several");
  timing->add_flag("--no-baselines", options.no_baselines,
                   "Time without cuBLAS and without the wgmma-only ceiling");
  auto* emulator = app.add_option_group("Emulator");
  emulator->add_flag("--counters", options.counters,
                     "Count bytes, sectors, bank conflicts and instructions by source line");
  emulator->add_flag("--ledger", options.ledger,
                     "Print the barrier ledger of one launch: who arrives at each barrier, who waits, and "
                     "which bytes it orders; --json FILE writes it for programs");
  emulator
      ->add_option("--schedule-seed", options.schedule_seed,
                   "Seed of the scheduler and of the asynchronous completion")
      ->capture_default_str()
      ->check(seed_problem);
  emulator
      ->add_option("--completion", options.completion,
                   "When asynchronous operations complete: random, earliest or latest")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "earliest", "latest"}));
  emulator
      ->add_option("--elect", options.elect,
                   "The lane that elect.sync chooses: any (the seed decides) or lowest (as on Hopper GPUs)")
      ->capture_default_str()
      ->check(CLI::IsMember({"any", "lowest"}));
  emulator->add_flag(
      "--explore", options.explore,
      "Run every schedule that differs from the others in an order that matters, at one tile of five "
      "k-tiles unless a shape is given, and print the shortest one that fails");
  emulator->add_flag(
      "--shrink", options.shrink,
      "Run the schedule that --schedule-seed and --completion say; if it fails, leave out what the "
      "failure does not need");
  emulator
      ->add_option("--schedule", options.schedule_file,
                   "The file for the failing schedule that --explore or --shrink has found (default: "
                   "failing.schedule, in build/ if there is one)")
      ->check(file_problem);
  emulator->add_option("--replay", options.replay, "Walk through the schedule in this file, step by step")
      ->check(file_problem);
  emulator
      ->add_option(
          "--events", options.events,
          "With --replay: write what happens to each mbarrier to this file, one JSON object per line")
      ->check(file_problem)
      ->needs("--replay");
  emulator->add_flag("--necessary", options.necessary,
                     "Leave out each statement that orders something (waits, arrivals, fences, barriers) in "
                     "turn, and say what is broken without it; --json FILE writes it for programs");
  emulator
      ->add_option("--without", options.without,
                   "Leave out the statement at this FILE:LINE in every thread; if several are there, "
                   "'FILE:LINE mbarrier_arrive(empty)' names one of them")
      ->check(name_problem);
  emulator->add_option("--sms", options.sms, "Number of SMs")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  std::string off_by_default;
  std::string on_by_default;
  for (const CourseRule& rule : course_rules()) {
    std::string& names = rule.on ? on_by_default : off_by_default;
    names += (names.empty() ? "" : ", ") + rule.name;
  }
  emulator
      ->add_option("--allow", options.allow,
                   "Switch off rules that are stricter than the PTX ISA" +
                       (on_by_default.empty() ? "" : ": " + on_by_default))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(name_problem);
  emulator
      ->add_option(
          "--strict", options.strict,
          "Switch on rules that are off by default" + (off_by_default.empty() ? "" : ": " + off_by_default))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(name_problem);
}

void refuse_conflicts(const CLI::App& app) {
  const auto given = [&app](const char* flag) {
    const CLI::Option* option = app.get_option_no_throw(flag);  // not every program has every flag
    return option != nullptr && option->count() > 0;
  };
  const std::vector<const char*> actions{"--check",         "--time",  "--budget", "--list",    "--describe",
                                         "--inject-faults", "--trace", "--json",   "--autotune"};
  const std::vector<const char*> inputs{"--pattern", "--seed", "--relaunch"};
  const std::vector<const char*> timing{"--mode", "--rounds", "--seconds", "--quick", "--no-baselines"};
  const std::vector<const char*> exploring{"--explore", "--shrink", "--replay"};
  const std::vector<const char*> emulator{
      "--counters", "--schedule-seed", "--completion", "--elect",    "--sms",       "--allow",  "--strict",
      "--explore",  "--shrink",        "--replay",     "--schedule", "--necessary", "--without"};
  const auto refuse = [&given](const char* action, const std::vector<const char*>& flags) {
    for (const char* flag : flags) {
      if (std::strcmp(action, flag) != 0 && given(action) && given(flag))
        throw Error(fmt::format("{} does not go with {}: leave one of them out", action, flag));
    }
  };
  refuse("--check", {"--time"});
  for (const char* action : exploring) {
    refuse(action, exploring);
    refuse(action,
           {"--ledger", "--time", "--inject-faults", "--trace", "--json", "--autotune", "--relaunch",
            "--counters", "--suite", "--population", "--mode", "--rounds", "--quick", "--no-baselines"});
  }
  refuse("--necessary",
         {"--check",      "--time",     "--budget",   "--list",     "--describe",      "--inject-faults",
          "--trace",      "--autotune", "--relaunch", "--counters", "--ledger",        "--suite",
          "--population", "--explore",  "--shrink",   "--replay",   "--schedule-seed", "--completion",
          "--sms",        "--pattern",  "--seed",     "--groups",   "--without",       "--html-data"});
  for (const char* action : {"--explore", "--replay"}) refuse(action, {"--schedule-seed", "--completion"});
  refuse("--replay", {"--schedule", "--seconds"});
  refuse("--ledger", {"--check", "--time", "--budget", "--list", "--describe", "--inject-faults", "--trace",
                      "--autotune", "--counters", "--pattern", "--relaunch", "--suite", "--population"});
  for (const char* action : {"--inject-faults", "--trace"}) {
    refuse(action, actions);
    refuse(action, inputs);
    refuse(action, timing);
    refuse(action, {"--counters"});
  }
  for (const char* action : {"--list", "--describe", "--budget"}) {
    refuse(action, actions);
    refuse(action, inputs);
    refuse(action, timing);
    refuse(action, emulator);
  }
  refuse("--html-data", {"--time", "--budget", "--list", "--describe", "--inject-faults", "--trace",
                         "--autotune", "--counters"});
  for (const char* action : {"--list", "--describe"})
    refuse(action, {"--variant", "--suite", "--population", "--by-arithmetic"});
  refuse("--autotune", {"--by-arithmetic"});
  std::vector<const char*> of_epilogue(std::begin(kEpilogueFlags), std::end(kEpilogueFlags));
  of_epilogue.insert(of_epilogue.end(), std::begin(kPlaceFlags), std::end(kPlaceFlags));
  for (const char* action : {"--list", "--describe", "--budget", "--inject-faults", "--trace", "--autotune",
                             "--suite", "--population"})
    refuse(action, of_epilogue);
  for (const char* action : {"--time", "--relaunch"}) refuse(action, {"--in-place"});
  for (const char* action : {"--list", "--describe", "--budget", "--inject-faults", "--autotune", "--suite",
                             "--population", "--alpha", "--beta", "--bias", "--activation"})
    refuse(action, {"--groups"});
}

}  // namespace harness
