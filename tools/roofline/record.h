// What is measured, and the record of it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/backend/backend.h"

namespace roofline {

/// One number of the record: measured once in every round, reported as median and quartiles.
struct Figure {
  std::string name;  // "dram.read"; unique together with `parameters`
  std::string unit;  // "GB/s", "bytes/clock/SM", "FLOP/clock/SM", "TFLOP/s", "clocks", "us", "MHz"
  std::string what;  // one line: how it was measured
  nlohmann::json parameters = nlohmann::json::object();
  /// What the hardware cannot fall below or exceed; beyond it the compiler must have removed the work. 0: not
  /// known.
  double least = 0;
  double most = 0;
  std::vector<double> samples = {};
};

/// One experiment: a run gives one sample to each of its figures.
struct Probe {
  std::vector<Figure> figures;
  /// Writes one value to each figure's place. Throws harness::Error when the GPU fails.
  std::function<void(std::span<double>)> run;
  /// Leave the GPU idle for this long before each run, so that the power limit does not lower the clock.
  double idle_ms = 0;
};

struct Summary {
  double median = 0;
  double q1 = 0;
  double q3 = 0;
  double lowest = 0;
  double highest = 0;
};

/// Quantiles by linear interpolation between the two nearest samples (R type 7). `samples` must not be empty.
Summary summarize(std::vector<double> samples);

/// True when the median is not a positive finite number, or lies outside of `least` to `most`.
bool is_impossible(const Figure& figure);

struct Run {
  harness::DeviceInfo device;
  std::string commit;
  std::string date;  // ISO 8601, UTC
  bool quick = false;
  int rounds = 0;
  double idle_ms = 0;
  double seconds = 0;
};

/// {"schema": 1, "kind": "roofline", "device": {...}, "commit", "date", "quick", "rounds", "idle_ms",
/// "seconds",
///  "figures": [{"name", "unit", "what", "parameters", "median", "q1", "q3", "lowest", "highest", "samples",
///               "impossible"}]}
nlohmann::json to_json(const Run& run, const std::vector<Figure>& figures);

/// The figures as a table for the terminal. The names come last: with their parameters they are of any
/// length.
std::string human_table(const std::vector<Figure>& figures);

}  // namespace roofline
