// Rules of this course that are stricter than the PTX ISA, or that it leaves open. Each can be switched.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace emulator {

enum class CourseRule : std::uint8_t {
  kWgmmaFenceAfterWait,
  kMbarrierInitFence,
  kExitInFlight,
  kSharedUninitialised,
  kProxyFenceByWriter,
  kCoResidency,
  kNarrowOffset,
  kConvergence,
  kTensorLoadWait,
  kTensorOperandFence,
  kTensorMapAcquire,
  kPrefetchBounds,
  kPairClusterScope,
  kLaunchControlFence,
  kRelaxedOrder,
  kCommitArrival,
  kProxyFenceAfterRead,
  kProxyFenceByReader,
  kWarpSynchronous,
  kBarrierDivergence,
  kReleaseForWarp,
  kTensorMemoryAddress,
  kResetOrder,
};

struct CourseRuleEntry {
  CourseRule rule;
  const char* name;      // as it stands in reports and behind --allow or --strict
  const char* sentence;  // what it forbids
  const char* page;      // where it is explained
  bool on;               // unless it is switched
};

/// In the order of the enumeration. A new rule is a line here, `course_rule_on` where it is checked, and
/// Report::course_rule at the end of its report.
inline constexpr std::array kCourseRules{
    CourseRuleEntry{CourseRule::kWgmmaFenceAfterWait, "wgmma-fence-after-wait",
                    "a wgmma.fence is needed between the wgmma.wait_group that returns accumulators and the "
                    "next wgmma on them, even if no thread has accessed them",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kMbarrierInitFence, "mbarrier-init-fence",
                    "the thread that initialises an mbarrier must execute fence.mbarrier_init (or "
                    "fence.proxy.async) before copies signal it, even without a cluster",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{
        CourseRule::kExitInFlight, "exit-in-flight",
        "a thread or a CTA may end only when no copy or wgmma that it issued can still use its shared memory",
        "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{
        CourseRule::kSharedUninitialised, "shared-uninitialised",
        "no thread may read shared memory that has never been written, even if nothing depends on the value",
        "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kProxyFenceByWriter, "proxy-fence-by-writer",
                    "each thread that wrote must execute fence.proxy.async before the barrier; another "
                    "thread's fence after the barrier does not count",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kCoResidency, "co-residency",
                    "a CTA may wait for a CTA outside its cluster only in a cooperative launch",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kNarrowOffset, "narrow-offset",
                    "no offset into global memory may be a product of sizes in 32 bits",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kConvergence, "convergence",
                    "after a branch that only some lanes of a warp take, the lanes must reconverge before "
                    "the next .aligned instruction",
                    "docs/convergence.md", false},
    CourseRuleEntry{CourseRule::kTensorLoadWait, "tcgen05-load-wait",
                    "a tcgen05.wait::ld is needed between a tcgen05.ld and the first use of its registers",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kTensorOperandFence, "tcgen05-operand-fence",
                    "a tcgen05.fence::after_thread_sync is needed between the wait for a tile in shared "
                    "memory and the tcgen05.mma that reads the tile",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{
        CourseRule::kTensorMapAcquire, "tensormap-acquire",
        "a thread of each CTA must acquire a tensor map in global memory with "
        "fence.proxy.tensormap::generic.acquire, even if nothing has changed the map since its first use",
        "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kPrefetchBounds, "prefetch-bounds",
                    "a prefetch must be of memory that has been allocated, although nothing is read",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kPairClusterScope, "pair-cluster-scope",
                    "a wait for another CTA's copies or multiplications must acquire at cluster scope",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kLaunchControlFence, "launch-control-fence",
                    "a thread that has read a response of clusterlaunchcontrol.try_cancel must execute "
                    "fence.proxy.async before the next request into the same bytes",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kRelaxedOrder, "relaxed-order",
                    "a relaxed load that follows a relaxed load of a flag needs a release and an acquire "
                    "before it, even where an older value would do",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kCommitArrival, "commit-arrival",
                    "before a CTA ends, one of its threads must have waited for the arrival of every "
                    "tcgen05.commit at its mbarriers",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{
        CourseRule::kProxyFenceAfterRead, "proxy-fence-after-read",
        "a thread that has read shared memory must execute fence.proxy.async before a copy overwrites it",
        "docs/proxies.md", true},
    CourseRuleEntry{CourseRule::kProxyFenceByReader, "proxy-fence-by-reader",
                    "fence.proxy.async is executed by each thread that read, before it hands the bytes back, "
                    "not by the one that waits for it and issues the copy",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kWarpSynchronous, "warp-synchronous",
                    "no lane reads through volatile what another lane of its warp has stored there, with "
                    "nothing between the two that orders them",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kBarrierDivergence, "barrier-divergence",
                    "all threads of a CTA come to the same __syncthreads, also threads that have nothing to "
                    "do and warps in other branches",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kReleaseForWarp, "release-for-warp",
                    "before a lane arrives for its warp, a __syncwarp must order what the other lanes have "
                    "read and written; no other instruction with .sync does",
                    "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{
        CourseRule::kTensorMemoryAddress, "tensor-memory-address",
        "the lane in the address of a tcgen05.ld or tcgen05.st must be the first of the warp's own, "
        "and no kernel may rely on the column where an allocation begins",
        "docs/emulator/stricter-rules.md", true},
    CourseRuleEntry{CourseRule::kResetOrder, "reset-order",
                    "a store to a word in global memory and an addition to it by another thread must be "
                    "ordered",
                    "docs/emulator/stricter-rules.md", true},
};

constexpr const CourseRuleEntry& entry_of(CourseRule rule) {
  return kCourseRules[static_cast<std::size_t>(rule)];
}

constexpr std::uint64_t course_rule_bit(CourseRule rule) {
  return std::uint64_t{1} << static_cast<unsigned>(rule);
}

/// The rules that are on, a bit each. Changes only between launches.
inline constinit std::uint64_t course_rules_on = [] {
  std::uint64_t bits = 0;
  for (const CourseRuleEntry& entry : kCourseRules) bits |= entry.on ? course_rule_bit(entry.rule) : 0;
  return bits;
}();

inline bool course_rule_on(CourseRule rule) {
  return (course_rules_on & course_rule_bit(rule)) != 0;
}

/// Switches rules off (`allow`) and on (`strict`), by name, on top of what is in force. Throws harness::Error
/// for a name that is none.
void switch_course_rules(const std::vector<std::string>& allow, const std::vector<std::string>& strict);

/// What GEMM_STEPS_ALLOW and GEMM_STEPS_STRICT say (names, separated by commas), once for the process.
void read_course_rules_of_environment();

/// One rule for a scope, for tests.
class ScopedCourseRule {
 public:
  ScopedCourseRule(CourseRule rule, bool on) : previous_(course_rules_on) {
    course_rules_on = on ? previous_ | course_rule_bit(rule) : previous_ & ~course_rule_bit(rule);
  }
  ~ScopedCourseRule() { course_rules_on = previous_; }
  ScopedCourseRule(const ScopedCourseRule&) = delete;
  ScopedCourseRule& operator=(const ScopedCourseRule&) = delete;

 private:
  std::uint64_t previous_;
};

}  // namespace emulator
