#include "harness/verify/necessary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/explore_control.h"
#include "harness/base/problem.h"
#include "harness/base/stricter_rule.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

constexpr int kTilesOfPersistent = 3;   // two accumulators, or buffers, are used again
constexpr double kLaunchSeconds = 600;  // a machine with much else to do does not make a livelock
constexpr const char* kWrongResult = "wrong-result";

/// A shape, its inputs, and how it is launched.
class Launches {
 public:
  Launches(const gemm::Variant& variant, const gemm::Shape& shape, const ProblemForm& form, int sms,
           int count)
      : variant_(variant), sms_(sms), count_(count), workload_(shape, Pattern::kExact, 1, form) {}

  int count() const { return count_; }

  ScheduleResult run(const Schedule& schedule) {
    control_emulator({.schedule_seed = schedule.seed,
                      .completion = schedule.completion,
                      .sm_count = sms_,
                      .launch_seconds = kLaunchSeconds});
    return run();
  }

  /// Under the schedule that the search chooses.
  ScheduleResult run() {
    name_tiles(workload_.gemm().shape, variant_.tile);
    const gemm::Launcher launcher = gemm::prepare(variant_, workload_.problem());
    for (int i = 0; i < count_; ++i) {
      workload_.poison();
      launcher(nullptr);
      synchronize();
      const CheckResult result = workload_.check(variant_.tile);
      if (!result.ok) return {false, kWrongResult, result.report};
    }
    return {};
  }

 private:
  const gemm::Variant& variant_;
  int sms_;
  int count_;
  Workload workload_;
};

ScheduleResult guarded_run(const std::function<ScheduleResult()>& run) {
  try {
    return run();
  } catch (const EmulatorReport& report) {
    return {false, report.rule(), report.what()};
  }
}

/// Rules switched for a scope.
class SwitchedRules {
 public:
  SwitchedRules() = default;
  ~SwitchedRules() { switch_course_rules(on_, off_); }
  SwitchedRules(const SwitchedRules&) = delete;
  SwitchedRules& operator=(const SwitchedRules&) = delete;
  void switch_off(const std::string& rule) {
    switch_course_rules({rule}, {});
    off_.push_back(rule);
  }
  void switch_on(const std::string& rule) {
    switch_course_rules({}, {rule});
    on_.push_back(rule);
  }
  const std::vector<std::string>& off() const { return off_; }

 private:
  std::vector<std::string> off_, on_;
};

struct LeftOut {
  explicit LeftOut(const OrderingStatement& statement) { leave_out(statement); }
  ~LeftOut() { leave_nothing_out(); }
  LeftOut(const LeftOut&) = delete;
  LeftOut& operator=(const LeftOut&) = delete;
};

class Judge {
 public:
  Judge(const gemm::Step& step, const gemm::Variant& variant, double seconds)
      : plan_(necessary_plan(step, variant)),
        seconds_(seconds),
        explored_(variant, plan_.explored, form_of(step, variant), plan_.explored_sms, 1) {
    for (const CheckCase& one : plan_check(step, variant, 1, true)) {
      const ProblemForm form = form_of(one, variant, form_of(step, variant));
      cases_.push_back(
          {std::make_unique<Launches>(variant, one.shape, form, one.sms, one.launches), one.schedules});
    }
  }

  std::vector<OrderingStatement> list() {
    list_ordering_statements();
    ScheduleResult result = guarded_run([&] { return cases_.front().first->run(Schedule{}); });
    if (result.ok) result = guarded_run([&] { return explored_.run(Schedule{}); });
    std::vector<OrderingStatement> all = take_ordering_statements();
    if (!result.ok)
      throw Error("nothing can be left out of a kernel that is wrong as it is:\n" + result.report);
    for (const CourseRule& rule : course_rules()) {
      if (rule.on) continue;
      SwitchedRules stricter;
      stricter.switch_on(rule.name);
      if (!by_seeds(1)) kept_.push_back(rule.name);
    }
    const auto place = [](const OrderingStatement& one) {
      const std::size_t colon = one.place.rfind(':');
      return std::tuple(!one.place.starts_with("steps/"), one.place.substr(0, colon),
                        std::atoi(one.place.c_str() + colon + 1));
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& one, const auto& other) { return place(one) < place(other); });
    return all;
  }

  Necessity judge(const OrderingStatement& statement) {
    const LeftOut left_out(statement);
    Necessity necessity{.statement = statement};
    SwitchedRules rules;
    while (true) {
      std::optional<ScheduleResult> failure = by_seeds();
      bool explored = false;
      if (!failure) {
        failure = by_exploring(necessity);
        explored = true;
      }
      if (!failure) break;
      necessity.by_exploring = explored;
      necessity.rule = failure->rule;
      const std::string stricter = stricter_rule_of(failure->report);
      if (stricter.empty()) {
        necessity.verdict = Necessity::Verdict::kNeeded;
        return necessity;
      }
      rules.switch_off(stricter);
    }
    if (!rules.off().empty()) {
      necessity.verdict = Necessity::Verdict::kStricter;
      necessity.stricter = fmt::format("{}", fmt::join(rules.off(), ", "));
      return necessity;
    }
    for (const std::string& rule : kept_) {
      SwitchedRules stricter;
      stricter.switch_on(rule);
      const std::optional<ScheduleResult> failure = by_seeds(1);
      if (!failure) continue;
      necessity.verdict = Necessity::Verdict::kOffByDefault;
      necessity.stricter = rule;
      necessity.rule = failure->rule;
      break;
    }
    return necessity;
  }

 private:
  std::optional<ScheduleResult> by_seeds(std::size_t cases = ~std::size_t{0}) {
    for (const auto& [launches, schedules] : cases_) {
      if (cases-- == 0) break;
      for (const Schedule& schedule : schedules) {
        const ScheduleResult result =
            guarded_run([&one = *launches, &schedule] { return one.run(schedule); });
        if (!result.ok) return result;
      }
    }
    return {};
  }

  std::optional<ScheduleResult> by_exploring(Necessity& necessity) {
    control_emulator({.sm_count = plan_.explored_sms, .launch_seconds = kLaunchSeconds});
    const Explored explored = explore_quietly([&] { return explored_.run(); }, seconds_);
    if (explored.fails) return explored.failure;
    necessity.schedules = explored.schedules;
    necessity.verdict =
        explored.end == Explored::End::kAll ? Necessity::Verdict::kNotNeeded : Necessity::Verdict::kUndecided;
    return {};
  }

  NecessaryPlan plan_;
  double seconds_;
  std::vector<std::pair<std::unique_ptr<Launches>, std::vector<Schedule>>> cases_;
  Launches explored_;
  std::vector<std::string> kept_;  // rules that are off by default, and that the kernel keeps as it is
};

}  // namespace

NecessaryPlan necessary_plan(const gemm::Step& step, const gemm::Variant& variant) {
  NecessaryPlan plan;
  const int k_tiles = std::max(5, variant.stages + 2);
  plan.explored = {variant.tile.m, variant.tile.n, k_tiles * variant.tile.k};
  gemm::Shape several = plan.explored;
  control_emulator({});
  const int cluster = check_facts(variant, several).cluster;
  control_emulator({.sm_count = cluster});
  several.m *= kTilesOfPersistent * cluster;
  plan.explored_sms = cluster;
  const CheckFacts facts = check_facts(variant, several);
  if (facts.persistent || cluster > 1) plan.explored = several;
  if (!facts.persistent && cluster > 1) plan.explored.m = variant.tile.m * cluster;
  for (const CheckCase& one : plan_check(step, variant, 1, true))
    plan.seed_launches += one.schedules.size() * static_cast<std::size_t>(one.launches);
  return plan;
}

std::vector<Necessity> judge_statements(const gemm::Step& step, const gemm::Variant& variant, double seconds,
                                        const std::function<void(const Necessity&)>& tell,
                                        const std::function<void(const OrderingStatement&)>& begin) {
  Judge judge(step, variant, seconds);
  std::vector<Necessity> all;
  for (const OrderingStatement& statement : judge.list()) {
    if (begin) begin(statement);
    all.push_back(judge.judge(statement));
    if (tell) tell(all.back());
  }
  return all;
}

std::vector<OrderingStatement> ordering_statements(const gemm::Step& step, const gemm::Variant& variant) {
  return Judge(step, variant, 0).list();
}

std::string to_string(const OrderingStatement& statement) {
  return statement.detail.empty() ? statement.what : fmt::format("{}({})", statement.what, statement.detail);
}

std::string to_string(const Necessity& necessity) {
  const std::string schedules =
      fmt::format("{} schedule{}", necessity.schedules, necessity.schedules == 1 ? "" : "s");
  switch (necessity.verdict) {
    case Necessity::Verdict::kNeeded:
      return fmt::format("needed: {}{}", necessity.rule,
                         necessity.by_exploring ? ", found by exploring" : "");
    case Necessity::Verdict::kStricter:
      return fmt::format("needed by a stricter rule only: {}", necessity.stricter);
    case Necessity::Verdict::kOffByDefault:
      return fmt::format("needed by a rule that is off by default: {}", necessity.stricter);
    case Necessity::Verdict::kNotNeeded:
      return fmt::format("not needed at this bound, {}", schedules);
    case Necessity::Verdict::kUndecided:
      break;
  }
  return fmt::format("not needed in {}, and there are more", schedules);
}

nlohmann::ordered_json to_json(const Necessity& necessity) {
  static constexpr const char* kNames[] = {"needed", "stricter rule", "rule off by default", "not needed",
                                           "undecided"};
  return {{"statement", necessity.statement.what},
          {"detail", necessity.statement.detail},
          {"place", necessity.statement.place},
          {"by", necessity.statement.by},
          {"verdict", kNames[static_cast<int>(necessity.verdict)]},
          {"rule", necessity.rule},
          {"stricter", necessity.stricter},
          {"found_by", necessity.rule.empty()   ? ""
                       : necessity.by_exploring ? "exploring"
                                                : "seeds"},
          {"schedules", necessity.schedules}};
}

}  // namespace harness
