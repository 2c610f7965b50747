// The flags that every step's program and the comparison share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/trace_run.h"
#include "harness/verify/workload/workload.h"

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
  std::string gpu;  // the architecture that the budget assumes; "": as it comes
  bool list = false;
  bool describe = false;
  bool inject_faults = false;
  bool counters = false;
  bool ledger = false;
  bool quick = false;
  bool no_baselines = false;
  std::string suite;   // "" for none, "public", "deepgemm" or "grid"
  int population = 0;  // random shapes
  bool autotune = false;
  bool by_arithmetic = false;
  std::string mode = "burst";
  int rounds = 0;
  double seconds = 10;
  std::string json;
  std::string html_data;
  double alpha = 1;  // of the epilogue, where one is asked for
  double beta = 0;
  std::string bias = "none";
  std::string activation = "none";
  bool in_place = false;
  int c_pitch = 0;
  int c_offset = 0;
  int bias_length = 0;
  int top_k = 0;
  int aux_pitch = 0;
  int aux_offset = 0;
  std::string groups;         // of rows: see parse_groups
  ProblemForm form;           // made of these, and of what the steps compute unless asked
  bool own_epilogue = false;  // a flag says something of it
  TraceOptions trace;
  std::uint64_t schedule_seed = 1;
  std::string completion = "random";
  std::string elect = "any";
  int sms = 4;
  std::vector<std::string> allow;   // rules of this course's own, switched off
  std::vector<std::string> strict;  // and on
  bool explore = false;
  bool shrink = false;
  std::string replay;
  std::string schedule_file;
  std::string events;
  bool necessary = false;
  std::string without;
};

/// Declares them.
void add_options(CLI::App& app, Options& options);

/// The flags that say what the epilogue is and where its inputs lie.
inline constexpr const char* kEpilogueFlags[] = {"--alpha", "--beta", "--bias", "--activation", "--top-k"};
inline constexpr const char* kPlaceFlags[] = {"--in-place",    "--c-pitch",   "--c-offset",
                                              "--bias-length", "--aux-pitch", "--aux-offset"};

/// After parsing: a flag that would silently do nothing beside an action that was given is an Error.
void refuse_conflicts(const CLI::App& app);

}  // namespace harness
