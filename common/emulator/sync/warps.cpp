#include "emulator/sync/warps.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emulator/async/hopper.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/lanes.h"

namespace emulator {
namespace {

constexpr const char* kRegisterSection = "PTX ISA, \"setmaxnreg\"";

// The most that ptxas 13 gives each thread of a kernel that executes setmaxnreg, with 128 and with 256
// threads.
constexpr std::uint32_t kMostRegisters = 248;

/// What a thread has when the CTA starts: __launch_bounds__(threads, ctas) lets the compiler use the whole
/// register file, in steps of 8. ptxas 13 takes no more than the largest operand of a setmaxnreg of the
/// kernel: the first raise of a warpgroup may ask for fewer.
std::uint32_t registers_at_start(const Cta& cta) {
  const auto threads = static_cast<std::uint32_t>(cta.warps.size()) * kWarpSize;
  const auto ctas = static_cast<std::uint32_t>(cta.gang->grid.shape.ctas_per_sm);
  return std::min(kMostRegisters, kRegistersPerSm / (threads * ctas) / 8 * 8);
}

std::uint32_t registers_of(const Warpgroup& warpgroup) {
  return warpgroup.registers != 0 ? warpgroup.registers : registers_at_start(*warpgroup.cta);
}

/// Registers that the warpgroups have together, and what they may have.
std::uint32_t in_use(const HopperCta& cta) {
  std::uint32_t sum = 0;
  for (const auto& warpgroup : cta.warpgroups) sum += registers_of(*warpgroup) * kWarpgroupSize;
  return sum;
}
std::uint32_t pool(const HopperCta& cta) {
  return static_cast<std::uint32_t>(cta.warpgroups.size()) * kWarpgroupSize * registers_at_start(*cta.cta);
}

std::string budget_text(const HopperCta& cta) {
  std::string text = fmt::format("{} registers in the CTA's pool; ", pool(cta));
  for (std::size_t i = 0; i < cta.warpgroups.size(); ++i) {
    text += fmt::format("{}warpgroup {} has {} per thread", i == 0 ? "" : ", ", i,
                        registers_of(*cta.warpgroups[i]));
    const std::size_t come = cta.warpgroups[i]->register_change.arrived.size();
    if (come > 0 && come < kWarpgroupSize)
      text += fmt::format(" (only {} of its 128 threads have executed the setmaxnreg that would change that)",
                          come);
  }
  return text;
}

std::string warp_wait_detail(const Thread& thread) {
  const HopperCta& cta = thread.cta->gang->hopper->cta(*thread.cta);
  const Warpgroup& warpgroup = *cta.warpgroups[thread.index / kWarpgroupSize];
  const RegisterChange& change = warpgroup.register_change;
  if (change.arrived.size() < kWarpgroupSize) {
    return fmt::format("{} of the warpgroup's 128 threads have reached it", change.arrived.size());
  }
  std::string sum;
  std::uint32_t wanted = 0;
  for (const auto& other : cta.warpgroups) {
    const std::uint32_t registers =
        other->register_change.raises ? other->register_change.registers : registers_of(*other);
    sum += fmt::format("{}{}", sum.empty() ? "" : " + ", registers);
    wanted += registers;
  }
  const std::uint32_t has = pool(cta) / kWarpgroupSize;
  return fmt::format("for {} registers per thread; {}{}", change.registers, budget_text(cta),
                     wanted > has
                         ? fmt::format("; the requests add up to {} = {} registers, counting one thread of "
                                       "each warpgroup, but there are only {} x {} = {}",
                                       sum, wanted, cta.warpgroups.size(), registers_at_start(*cta.cta), has)
                         : std::string());
}

/// Grants every complete raise that fits now.
void grant(HopperCta& cta) {
  for (const auto& warpgroup : cta.warpgroups) {
    RegisterChange& change = warpgroup->register_change;
    if (change.arrived.size() < kWarpgroupSize) continue;
    const std::uint32_t others = in_use(cta) - registers_of(*warpgroup) * kWarpgroupSize;
    if (change.raises && others + change.registers * kWarpgroupSize > pool(cta)) continue;
    warpgroup->registers = change.registers;
    const std::vector<Thread*> threads = std::move(change.arrived);
    const bool raised = change.raises;
    change = {};
    Gang& gang = *cta.cta->gang;
    for (Thread* thread : threads) {
      if (raised && thread != &running_thread()) gang.make_runnable(*thread);
    }
    ++gang.progress;
    if (!raised) return grant(cta);  // what was released may be what another waits for
  }
}

}  // namespace

bool elect(Where where) {
  return elect_of(0xffffffffu, where);
}

bool elect_of(std::uint32_t mask, Where where) {
  constexpr const char* kWhat = "elect_sync";
  const Thread& thread = this_thread(kWhat, where);
  bool elected = false;
  warp_collective(
      kWhat, mask, &elected,
      [](Rendezvous& meeting) {
        const int lowest = std::countr_zero(meeting.mask);
        const Thread& first = *meeting.lanes[static_cast<std::size_t>(lowest)];
        const Options& options = first.cta->gang->grid.options;
        Random random(options.seed ^ first.cta->linear << 8 ^ static_cast<std::uint64_t>(first.warp()));
        std::uint32_t lane = static_cast<std::uint32_t>(lowest);
        if (options.elect == Elect::kSeed) {
          const std::uint32_t start = random.below(32);
          for (std::uint32_t i = 0; i < kWarpSize; ++i) {
            lane = (start + i) % kWarpSize;
            if (meeting.mask >> lane & 1u) break;
          }
        }
        *static_cast<bool*>(meeting.arguments[lane]) = true;
      },
      true, false, where);
  static_cast<void>(thread);
  return elected;
}

void explain_registers(Report& report, const Gang& gang) {
  for (const auto& cta : gang.ctas) {
    const HopperCta& state = gang.hopper->cta(*cta);
    for (std::size_t i = 0; i < state.warpgroups.size(); ++i) {
      const RegisterChange& change = state.warpgroups[i]->register_change;
      if (change.arrived.empty() || change.arrived.size() == kWarpgroupSize) continue;
      std::vector<std::uint32_t> came;
      std::vector<std::uint32_t> away;
      std::vector<std::uint32_t> returned;
      for (std::uint32_t warp = 0; warp < kWarpgroupSize / kWarpSize; ++warp) {
        const auto number = static_cast<std::uint32_t>(i * kWarpgroupSize / kWarpSize) + warp;
        const bool here = std::any_of(
            change.arrived.begin(), change.arrived.end(),
            [&](const Thread* thread) { return static_cast<std::uint32_t>(thread->warp()) == number; });
        const Thread& first = cta->threads[std::size_t{number} * kWarpSize];
        (here ? came : first.state == ThreadState::kExited ? returned : away).push_back(number);
      }
      const auto list = [](const std::vector<std::uint32_t>& warps, const char* one, const char* many) {
        return warps.empty() ? std::string()
                             : fmt::format("; {} {}", ranges("warp", warps), warps.size() == 1 ? one : many);
      };
      report.missing(
          "the setmaxnreg at {}, to {} registers, by the other warps of warpgroup {} of CTA {}: {} executed "
          "it, and the registers change only when all four warps have{}{}. It belongs before every branch "
          "that separates a warpgroup's warps, even for warps that have nothing to do",
          change.where.text(), change.registers, i, text(cta->id), ranges("warp", came),
          list(returned, "has returned", "have returned"), list(away, "waits elsewhere", "wait elsewhere"));
      return;
    }
  }
}

void set_max_registers(const char* what, std::uint32_t registers, bool raises, Where where) {
  require_convergence(what, where);
  Thread& thread = this_thread(what, where);
  HopperEngine& engine = hopper_engine(what, where);
  HopperCta& cta = engine.cta(*thread.cta);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  auto fail = [&](const std::string& headline, const char* rule) {
    engine.fail(
        "setmaxnreg",
        Report(headline).at(where, thread).line("budget", budget_text(cta)).rule(rule, kRegisterSection));
  };
  if (thread.index / kWarpgroupSize >= cta.warpgroups.size()) {
    fail(fmt::format("a thread that is not in a whole warpgroup executes {}", what),
         "all warps in a warpgroup must execute the same setmaxnreg");
  }
  if (registers < 24 || registers > 256 || registers % 8 != 0) {
    fail(fmt::format("{} requests {} registers", what, registers),
         "the count must be 24 to 256, in steps of 8");
  }
  Warpgroup& warpgroup = *cta.warpgroups[thread.index / kWarpgroupSize];
  RegisterChange& change = warpgroup.register_change;
  if (change.registers == 0) {
    const std::uint32_t now = registers_of(warpgroup);
    const bool first_raise = raises && warpgroup.registers == 0;
    if (raises ? registers < now && !first_raise : registers > now) {
      fail(fmt::format("{} requests {} registers for a warpgroup that has {}", what, registers, now),
           raises ? "inc must not request fewer registers than the warpgroup has"
                  : "dec must not keep more registers than the warpgroup has");
    }
    change = {.registers = registers, .raises = raises, .where = where};
  } else if (change.registers != registers || change.raises != raises ||
             !change.where.is_line_of(where)) {
    fail(fmt::format(
             "{} requests {} registers while other threads of the warpgroup are at {}, for {} registers",
             what, registers, change.where.text(), change.registers),
         "all warps in a warpgroup must execute the same setmaxnreg");
  }
  note_warp_instruction(what, where);
  change.arrived.push_back(&thread);
  const bool last = change.arrived.size() == kWarpgroupSize;
  if (last) grant(cta);
  // A raise that was not granted is still there.
  if (raises && (!last || warpgroup.register_change.registers != 0)) {
    thread.cta->gang->block({.kind = WaitKind::kObject,
                             .what = what,
                             .where = where,
                             .detail = warp_wait_detail,
                             .rule = last ? "setmaxnreg" : nullptr});
  }
}

}  // namespace emulator
