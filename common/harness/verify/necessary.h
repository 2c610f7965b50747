// Each statement of a kernel that orders something is left out in turn, and the kernel is checked without it:
// under seeds, and where they find nothing, under every schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/ordering_control.h"

namespace harness {

struct Necessity {
  enum class Verdict {
    kNeeded,        // without it a rule of the manuals is broken, or the result is wrong
    kStricter,      // without it a rule of this course is broken that is stricter than the PTX ISA
    kOffByDefault,  // without it such a rule is broken that is off unless it is asked for
    kNotNeeded,     // every schedule was right
    kUndecided,     // those that were run
  } verdict = Verdict::kUndecided;
  OrderingStatement statement;
  std::string rule;             // that is broken, or "wrong-result"
  std::string stricter;         // the rule of this course that had to be switched off, or on
  bool by_exploring = false;    // no seed has found it
  std::uint64_t schedules = 0;  // explored without it, all right
};

struct NecessaryPlan {
  gemm::Shape
      explored;  // a ring goes round; where the grid is persistent, one CTA, or cluster, has all tiles
  int explored_sms = 1;
  std::uint64_t seed_launches = 0;  // of the check plan, for a statement that nothing decides before
};
NecessaryPlan necessary_plan(const gemm::Step& step, const gemm::Variant& variant);

/// Judges the statements of the variant, in the order of the source. Throws Error where the kernel is wrong
/// as it is. `seconds`: of each search.
std::vector<Necessity> judge_statements(const gemm::Step& step, const gemm::Variant& variant, double seconds,
                                        const std::function<void(const Necessity&)>& tell = {},
                                        const std::function<void(const OrderingStatement&)>& begin = {});

/// The statements that a launch at the plan's shape executes, in the order of the source.
std::vector<OrderingStatement> ordering_statements(const gemm::Step& step, const gemm::Variant& variant);

/// "mbarrier_arrive(empty)"
std::string to_string(const OrderingStatement& statement);
/// "needed: shared-race", "not needed at this bound: 1 schedule".
std::string to_string(const Necessity& necessity);
nlohmann::ordered_json to_json(const Necessity& necessity);

}  // namespace harness
