#include "emulator/report/report.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "emulator/async/hopper.h"
#include "emulator/machine/ranks.h"
#include "emulator/machine/watchdog.h"

namespace emulator {

std::string text(const uint3& id) {
  return fmt::format("({},{},{})", id.x, id.y, id.z);
}

std::string name_cta(const Grid& grid, std::uint32_t key) {
  return grid.rank >= 0 ? ranks::name_cta(key) : text(grid.cta_id(key - 1));
}

std::string name_cta(const Cta& cta) {
  const int rank = cta.gang->grid.rank;
  return text(cta.id) + (rank >= 0 ? fmt::format(" of rank {}", rank) : std::string());
}

std::string name_thread(const Thread& thread) {
  if (thread.cta->gang->grid.is_engine) return ranks::name_thread(thread.stamp());
  std::string name = fmt::format("thread {} (warp {}, lane {}) of CTA {}", text(thread.id), thread.warp(),
                                 thread.lane(), name_cta(*thread.cta));
  if (const HopperEngine* engine = thread.cta->gang->hopper) {
    const std::string activity = text(engine->thread(thread).activity);
    if (!activity.empty()) name += ", after its wait as " + activity;
  }
  return name;
}

std::string name_thread(const Grid& grid, Stamp stamp) {
  if (grid.rank >= 0) return ranks::name_thread(stamp);
  const std::uint32_t index = stamp_thread(stamp);
  const gemm::ptx::Extent& block = grid.shape.block;
  const uint3 id{index % block.x, index / block.x % block.y, index / block.x / block.y};
  return fmt::format("thread {} (warp {}, lane {}) of CTA {}", text(id), index / 32, index % 32,
                     name_cta(grid, stamp_cta(stamp)));
}

std::string ranges(const std::string& noun, const std::vector<std::uint32_t>& numbers) {
  std::string list;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!list.empty()) list += ", ";
    list += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return fmt::format("{}{} {}", noun, numbers.size() == 1 ? "" : "s", list);
}

std::string places_of_threads(const Cta& cta, bool polls) {
  struct Group {
    std::vector<std::uint32_t> threads;
    std::string state;
  };
  std::map<std::string, Group> groups;
  std::vector<std::string> order;
  for (const Thread& thread : cta.threads) {
    std::string state;
    if (thread.state == ThreadState::kExited) {
      state = "returned from the kernel";
    } else if (thread.state == ThreadState::kRunnable) {
      state = polls ? describe_poll(thread) : "can run";
    } else {
      state = fmt::format("wait at {} {}", thread.wait.where.text(), thread.wait.what);
      if (thread.wait.kind == WaitKind::kWarp && thread.wait.mask != 0xffffffffu) {
        state += fmt::format(" (mask {:#x})", thread.wait.mask);
      }
      if (thread.wait.detail) state += ": " + thread.wait.detail(thread);
    }
    Group& group = groups[state];
    if (group.threads.empty()) order.push_back(state);
    group.threads.push_back(thread.index);
  }
  std::string lines;
  for (const std::string& state : order) {
    const Group& group = groups[state];
    std::string verb = state;
    if (group.threads.size() == 1 && (verb.rfind("wait ", 0) == 0 || verb.rfind("poll ", 0) == 0))
      verb.insert(4, "s");
    lines += fmt::format("{}{} {}", lines.empty() ? "" : "\n", ranges("thread", group.threads), verb);
  }
  return lines;
}

Report& Report::line(const std::string& label, const std::string& value) {
  text_ += fmt::format("\n  {:<8} {}", label, value);
  return *this;
}

Report& Report::at(Where where, const Thread& thread) {
  return line("where", "{} by {}", where.text(), name_thread(thread));
}

Report& Report::block(const std::string& lines) {
  text_ += "\n  ";
  for (const char c : lines) {
    text_ += c;
    if (c == '\n') text_ += "  ";
  }
  return *this;
}

Report& Report::rule(const std::string& sentence, const std::string& source) {
  return line("rule", fmt::format("{} ({})", sentence, source));
}

Report& Report::course_rule(CourseRule rule) {
  const CourseRuleEntry& entry = entry_of(rule);
  return line("stricter", fmt::format("this rule is stricter than the PTX ISA; --{} {} {} ({})",
                                      entry.on ? "allow" : "strict", entry.name,
                                      entry.on ? "switches it off" : "has switched it on", entry.page));
}

}  // namespace emulator
