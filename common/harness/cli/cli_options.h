// The flags that every step's program and the comparison share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/trace_run.h"

namespace harness {

struct Options {
  std::vector<std::string> positional;  // a shape; in the comparison also the steps
  std::string variant;
  std::string pattern;
  std::uint64_t seed = 1;
  int relaunch = 1;
  bool check = false;
  bool time = false;
  bool budget = false;
  bool list = false;
  bool inject_faults = false;
  bool counters = false;
  bool quick = false;
  bool no_baselines = false;
  std::string suite;   // "" for none, "public" or "deepgemm"
  int population = 0;  // random shapes
  bool autotune = false;
  std::string mode = "burst";
  int rounds = 0;
  double seconds = 10;
  std::string json;
  TraceOptions trace;
  std::uint64_t schedule_seed = 1;
  std::string completion = "random";
  std::string elect = "any";
  int sms = 4;
  std::vector<std::string> allow;   // rules of this course's own, switched off
  std::vector<std::string> strict;  // and on
};

/// Declares them.
void add_options(CLI::App& app, Options& options);

/// After parsing: a flag that would silently do nothing beside an action that was given is an Error.
void refuse_conflicts(const CLI::App& app);

}  // namespace harness
