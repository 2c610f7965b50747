#include "harness/cli/necessary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/verify/necessary.h"

namespace harness {
namespace {

constexpr double kSecondsOfSearch = 30;

/// "kernel.cuh:97" or ":97" of "steps/11_mbarrier_ring/kernel.cuh:97".
bool ends_with_name(const std::string& whole, const std::string& name) {
  if (name.find(':') == std::string::npos || !whole.ends_with(name)) return false;
  return whole == name || name.front() == ':' || whole[whole.size() - name.size() - 1] == '/';
}

/// The place, and then, if several statements are there, "mbarrier_arrive(empty)". A place that names callers
/// begins with the outermost.
bool names(const std::string& text, const OrderingStatement& statement) {
  for (const std::string& place : {statement.place, statement.place.substr(0, statement.place.find(" ("))}) {
    if (ends_with_name(place, text) || ends_with_name(place + " " + to_string(statement), text)) return true;
  }
  return false;
}

std::string list_of(const std::vector<OrderingStatement>& statements) {
  std::vector<std::string> words;
  for (const OrderingStatement& one : statements)
    words.push_back(fmt::format("'{} {}'", one.place.substr(one.place.rfind('/') + 1), to_string(one)));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

int run_necessary(const std::vector<Entry>& entries, const Options& options, bool has_seconds) {
  if (entries.size() != 1)
    throw Error("--necessary is for one variant of one step; name one, or leave --variant out");
  const gemm::Step& step = *entries.front().step;
  const gemm::Variant& variant = *entries.front().variant;
  const NecessaryPlan plan = necessary_plan(step, variant);
  fmt::print("{}\n",
             fitted(fmt::format(
                 "{} {}: each statement that orders something is left out in turn. Seeds: {} launches of "
                 "its check plan; where they decide nothing, every schedule at {} on {} SM{}",
                 step.name, variant.name, plan.seed_launches, to_string(plan.explored), plan.explored_sms,
                 plan.explored_sms == 1 ? "" : "s")));
  const auto begin = [&](const OrderingStatement& statement) {
    show_progress(fmt::format("without {} at {}", to_string(statement), statement.place));
  };
  const auto tell = [&](const Necessity& necessity) {
    clear_progress();
    fmt::print("| {} | {} | {} | {} |\n", to_string(necessity.statement), necessity.statement.place,
               necessity.statement.by, to_string(necessity));
    std::fflush(stdout);
  };
  const std::vector<Necessity> all =
      judge_statements(step, variant, has_seconds ? options.seconds : kSecondsOfSearch, tell, begin);
  if (!options.json.empty()) {
    nlohmann::ordered_json document = {{"schema", 1},
                                       {"step", step.name},
                                       {"variant", variant.name},
                                       {"explored", to_string(plan.explored)},
                                       {"sms", plan.explored_sms},
                                       {"seed_launches", plan.seed_launches}};
    document["statements"] = nlohmann::ordered_json::array();
    for (const Necessity& necessity : all) document["statements"].push_back(to_json(necessity));
    write_text(options.json, document.dump(2) + "\n");
  }
  return kExitOk;
}

void leave_out_named(const std::vector<OrderingStatement>& all, const std::string& text) {
  std::vector<OrderingStatement> named;
  for (const OrderingStatement& statement : all) {
    if (names(text, statement)) named.push_back(statement);
  }
  if (named.empty())
    throw Error(
        fmt::format("--without '{}' names no statement that orders something and is executed; these are {}",
                    text, list_of(all)));
  if (named.size() > 1)
    throw Error(fmt::format("--without '{}' names {} statements; take one of them: {}", text, named.size(),
                            list_of(named)));
  leave_out(named.front());
}

}  // namespace harness
