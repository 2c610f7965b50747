#include "emulator/memory/atomics.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/machine/frames.h"
#include "emulator/machine/ranks.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/co_residency.h"
#include "emulator/memory/device_memory.h"
#include "emulator/memory/shared_space.h"
#include "emulator/report/causes/flags.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "emulator/sync/lanes.h"

namespace emulator {

/// What a word that atomics touch has told in this launch.
struct FlagWord {
  VectorClock device;      // released by fences of device scope
  VectorClock cta;         // released by fences of CTA scope: only the parts of the same CTA count
  VectorClock system;      // released by fences of system scope: what counts for other ranks
  int rank = -1;           // in a run of several devices: the one that `device` is about
  VectorClock sequential;  // before a fence.sc that comes before a write of the word
  AtomicWriter writer;
  bool changed = false;  // in this launch

  struct Store {
    Stamp stamp = 0;
    Where where;
    const char* what = "";
    bool system = false;       // its scope
    VectorClock released;      // to other ranks
    Where latest_fence;        // of its thread, wider than a CTA
    bool repeats = false;      // the value that was there
    bool old = false;          // and that is from before the launch
    Stamp first = 0;           // or was stored by this thread
    VectorClock device;        // what it released
    VectorClock knew;          // its thread, beyond that
    Where fence;               // before it, of the same thread
    std::uint64_t number = 0;  // among the loads
    bool sets = false;         // no matter what was there
    bool adds = false;         // to what was there
  };
  struct Load {
    Stamp stamp = 0;
    Where where;
    const char* what = "";
    bool system = false;  // its scope
    std::uint64_t number = 0;
    std::uint64_t value = 0;
    bool old = false;          // the value is from before the launch
    Stamp from = 0;            // who had stored it
    bool updates = false;      // by a read-modify-write
    std::uint64_t looked = 0;  // the thread's latest `number` with a result: a red has none
  };
  /// What the threads of one CTA have done to the word.
  struct Changes {
    std::uint32_t cta = 0;  // key
    std::uint32_t count = 0;
    std::uint64_t value = 0;   // that the latest has left
    std::uint64_t before = 0;  // that it found
    bool added = false;        // by a read-modify-write
    Where where;
  };
  /// Accesses of CTA scope: the latest of each thread.
  struct Narrow {
    Stamp stamp = 0;
    Where where;
    const char* what = "";
    bool writes = false;
  };
  std::vector<Narrow> narrow;
  const void* address = nullptr;
  unsigned bytes = 0;
  bool shared = false;
  std::uint64_t at_first = 0;  // what this launch found
  std::uint64_t found = 0;     // by the access in progress
  std::uint64_t looked = 0;    // Load::looked of its thread, before it
  bool updates = false;        // it reads, modifies and writes
  std::vector<Changes> changes;
  /// Updates that left the value as it was: the latest of each CTA.
  struct Idle {
    std::uint32_t cta = 0;  // key
    Where where;
  };
  std::vector<Idle> idle;
  std::vector<Store> stores;  // and updates: the latest of each thread
  std::vector<Load> loads;
  /// What these were before a store that is not known yet to change the value.
  VectorClock device_before, cta_before, system_before, sequential_before;
};

/// What the launch before has left in a word.
struct LeftWord {
  std::uint64_t at_first = 0;  // what that launch found
  std::uint64_t value = 0;
  unsigned bytes = 0;
  Stamp writer = 0;
  Where where;
  std::uint64_t launch = 0;
};

/// Atomics on global memory come from several OS threads: addresses are spread over a few locks.
struct Shard {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::unordered_map<std::uintptr_t, FlagWord> flags;
  std::unordered_map<std::uintptr_t, LeftWord> left;
};

namespace {

Access access_of(AtomicKind kind) {
  if (kind == AtomicKind::kLoad) return Access::kAtomicLoad;
  return kind == AtomicKind::kStore ? Access::kAtomicStore : Access::kAtomic;
}

constexpr const char* kAdditions[] = {"add", "Add", "sub", "Sub", "inc", "Inc", "dec", "Dec"};

constexpr std::size_t kShards = 64;
Shard* all_shards() {
  static Shard* shards = new Shard[kShards];
  return shards;
}
Shard& shard_of(std::uintptr_t address) {
  return all_shards()[address / 16 * 0x9e3779b97f4a7c15u >> 58];
}

/// The thread's entry, or a new one; of many threads the latest are kept.
template <typename Entry>
Entry& entry_of(std::vector<Entry>& entries, Stamp stamp) {
  constexpr std::size_t kKept = 16;
  for (Entry& entry : entries) {
    if (entry.stamp >> 32 == stamp >> 32) return entry;
  }
  if (entries.size() == kKept) entries.erase(entries.begin());
  return entries.emplace_back();
}

/// Whether the update adds: a store before it leaves another value than one after it.
bool is_addition(std::string_view what) {
  return std::any_of(std::begin(kAdditions), std::end(kAdditions),
                     [&](const char* name) { return what.find(name) != std::string_view::npos; });
}

std::atomic<std::uint64_t> loads_so_far{0};
std::atomic<std::uint64_t> changes_so_far{0};

bool is_shared(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return !find_buffer(value) && !is_kernel_heap(value);
}

std::uint64_t word_at(const void* address, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, address, std::min<std::size_t>(sizeof value, bytes));
  return value;
}

/// What the shard's launch has left in its words of global memory.
std::unordered_map<std::uintptr_t, LeftWord> left_words(const Shard& shard) {
  std::unordered_map<std::uintptr_t, LeftWord> left;
  for (const auto& [key, flag] : shard.flags) {
    if (flag.shared || flag.changes.empty()) continue;
    left[key] = {.at_first = flag.at_first,
                 .value = flag.changes.back().value,
                 .bytes = flag.bytes,
                 .writer = flag.writer.writer,
                 .where = flag.writer.where,
                 .launch = shard.launch};
  }
  return left;
}

/// A new launch begins: what the one before has left is kept for its reports.
void begin_launch(Shard& shard, std::uint64_t launch) {
  shard.left = left_words(shard);
  shard.flags.clear();
  shard.launch = launch;
}

/// Shared memory of different CTAs may have the same address, one after the other.
std::uintptr_t flag_key(const void* address, const Thread& thread) {
  auto value = reinterpret_cast<std::uintptr_t>(address);
  if (!is_shared(address)) return value;
  const Cta* owner = shared_owner(value, thread);
  return value ^ (owner ? owner : thread.cta)->tag << 48;
}

/// ", which lowered it from 17 by 1 (it added 4294967295)"; "" where it did not.
std::string lowered_text(const FlagWord& flag, const FlagWord::Changes& changes) {
  if (!changes.added || changes.value >= changes.before) return {};
  const std::uint64_t less = changes.before - changes.value;
  if (changes.value == 0) return fmt::format(", from {}", changes.before);
  const std::uint64_t mask = flag.bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * flag.bytes) - 1;
  return fmt::format(", which lowered it from {} by {} (an addition of {}, which is -{})", changes.before,
                     less, (changes.value - changes.before) & mask, less);
}

/// "; CTA (0,0,0) has changed it 3 times, CTA (1,0,0), which has returned, 2 times (to 4 at the last)".
std::string changes_text(const FlagWord& flag, const Gang& gang) {
  constexpr std::size_t kShown = 8;
  std::string list;
  std::size_t shown = 0;
  std::vector<FlagWord::Changes> changes = flag.changes;
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.cta < b.cta; });
  for (const FlagWord::Changes& of : changes) {
    if (shown++ == kShown) {
      list += fmt::format(" and {} more CTAs", changes.size() - kShown);
      break;
    }
    const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                  [&](const auto& other) { return other->key == of.cta; });
    const bool returned = cta != gang.ctas.end() && (*cta)->exited == (*cta)->thread_count;
    list += fmt::format("{}CTA {}{} changed it {} time{}, most recently at {} to {}{}",
                        list.empty() ? "; " : ", ", name_cta(gang.grid, of.cta),
                        returned ? " (which has returned)" : "", of.count, of.count == 1 ? "" : "s",
                        of.where.text(), of.value, lowered_text(flag, of));
  }
  // At a counter all CTAs arrive.
  const bool counts = std::any_of(flag.stores.begin(), flag.stores.end(), [](const FlagWord::Store& store) {
    return std::string_view(store.what).find("_add") != std::string_view::npos;
  });
  shown = 0;
  for (const auto& cta : gang.ctas) {
    const bool added = std::any_of(changes.begin(), changes.end(),
                                   [&](const FlagWord::Changes& of) { return of.cta == cta->key; });
    if (!counts || changes.empty() || added || cta->exited < cta->thread_count) continue;
    if (shown++ == kShown) break;
    list += fmt::format("; CTA {} has returned and never added to it", text(cta->id));
  }
  return list;
}

/// A store and an addition by another thread, which nothing orders: what the word then holds depends on which
/// of them comes last. A load that has seen the one orders it before what is behind the load. The first such
/// pair of a launch is kept until the launch ends: what hangs or races because of it says more.
struct UnorderedReset {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::string report;
};
UnorderedReset& unordered_reset() {
  static UnorderedReset& instance = *new UnorderedReset;
  return instance;
}

void check_reset(const FlagWord& flag) {
  const Thread& thread = running_thread();
  // A search tries both orders, and counts schedules by what they end with.
  if (flag.shared || flag.rank >= 0 || explore::searching() || !course_rule_on(CourseRule::kResetOrder))
    return;
  const auto knows = [&](Stamp stamp) {
    return same_cta_before(stamp, context) || thread.clock.covers(stamp);
  };
  const auto is_of_thread = [&](Stamp stamp) { return stamp >> 32 == thread.stamp() >> 32; };
  const auto find = [&](const auto& matches) {
    return std::find_if(flag.stores.begin(), flag.stores.end(), matches);
  };
  const auto mine = find([&](const FlagWord::Store& store) { return is_of_thread(store.stamp); });
  const auto is_ordered = [&](const FlagWord::Store& other) {
    return knows(other.stamp) || flag.looked > other.number ||
           std::any_of(flag.loads.begin(), flag.loads.end(), [&](const FlagWord::Load& load) {
             return load.looked > other.number && !is_of_thread(load.stamp) && knows(load.stamp);
           });
  };
  const auto other = find([&](const FlagWord::Store& store) {
    return !is_of_thread(store.stamp) && (mine->sets ? store.adds : mine->adds && store.sets) &&
           !is_ordered(store);
  });
  if (other == flag.stores.end()) return;
  const FlagWord::Store& addition = mine->sets ? *other : *mine;
  const FlagWord::Store& store = mine->sets ? *mine : *other;
  const Grid& grid = thread.cta->gang->grid;
  UnorderedReset& first = unordered_reset();
  const std::lock_guard lock(first.mutex);
  if (first.launch == grid.launch) return;
  first.launch = grid.launch;
  first.report =
      Report("nothing orders a store to a word and an addition to it by another thread")
          .line("bytes", "{} ({} bytes)", name_address(reinterpret_cast<std::uintptr_t>(flag.address)),
                flag.bytes)
          .line("store", "{} at {} by {}", store.what, store.where.text(), name_thread(grid, store.stamp))
          .line("addition", "{} at {} by {}", addition.what, addition.where.text(),
                name_thread(grid, addition.stamp))
          .line("result",
                "if the addition comes last, what it adds is still there after the store, and a counter that "
                "the store sets back for the next launch is wrong when that launch begins")
          .missing(
              "an order: the addition at {} must come before a release of its thread (the atomic that counts "
              "those that are done, for example), and the thread that stores must acquire it before {}",
              addition.where.text(), store.where.text())
          .rule("writes to one word that causality order does not order may come in either order",
                "PTX ISA, \"Memory Consistency Model: Coherence Order\"")
          .course_rule(CourseRule::kResetOrder)
          .str();
}

}  // namespace

AtomicWriter last_atomic_writer(const void* address, const Thread& thread) {
  Shard& shard = shard_of(reinterpret_cast<std::uintptr_t>(address));
  const std::lock_guard lock(shard.mutex);
  if (shard.launch != thread.cta->gang->grid.launch) return {};
  const auto found = shard.flags.find(flag_key(address, thread));
  return found == shard.flags.end() ? AtomicWriter{} : found->second.writer;
}

std::string other_atomic_writers(const void* address, const Thread& thread) {
  constexpr std::size_t kShown = 3;
  Shard& shard = shard_of(reinterpret_cast<std::uintptr_t>(address));
  const std::lock_guard lock(shard.mutex);
  if (shard.launch != thread.cta->gang->grid.launch) return {};
  const auto found = shard.flags.find(flag_key(address, thread));
  if (found == shard.flags.end()) return {};
  const FlagWord& flag = found->second;
  std::string text;
  std::size_t shown = 0;
  for (auto store = flag.stores.rbegin(); store != flag.stores.rend() && shown < kShown; ++store) {
    if (store->stamp >> 32 == flag.writer.writer >> 32) continue;
    text += fmt::format("{}{} at {}", shown++ == 0 ? "; it was also written by " : ", by ",
                        name_thread(thread.cta->gang->grid, store->stamp), store->where.text());
  }
  return text + changes_text(flag, *thread.cta->gang);
}

std::string uneven_counts(const void* address, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  Shard& shard = shard_of(reinterpret_cast<std::uintptr_t>(address));
  const std::lock_guard lock(shard.mutex);
  if (shard.launch != gang.grid.launch) return {};
  const auto found = shard.flags.find(flag_key(address, thread));
  if (found == shard.flags.end()) return {};
  const FlagWord& flag = found->second;
  const auto added = [](const FlagWord::Changes& of) { return of.added && of.value > of.before; };
  const auto mine = std::find_if(flag.changes.begin(), flag.changes.end(),
                                 [&](const FlagWord::Changes& of) { return of.cta == thread.cta->key; });
  if (mine == flag.changes.end() || !added(*mine)) return {};
  std::string fewer;
  std::string left;
  for (const auto& cta : gang.ctas) {
    if (cta->exited < cta->thread_count) continue;
    const auto of = std::find_if(flag.changes.begin(), flag.changes.end(),
                                 [&](const FlagWord::Changes& other) { return other.cta == cta->key; });
    const std::uint64_t times = of == flag.changes.end() ? 0 : of->count;
    if (times >= mine->count) continue;
    fewer += fmt::format("{}CTA {} has added to it {} time{} and returned", fewer.empty() ? "" : ", ",
                         text(cta->id), times, times == 1 ? "" : "s");
    const auto idle = std::find_if(flag.idle.begin(), flag.idle.end(),
                                   [&](const FlagWord::Idle& other) { return other.cta == cta->key; });
    if (idle != flag.idle.end() && left.empty())
      left = fmt::format(". Its addition at {} was of 0", idle->where.text());
  }
  if (fewer.empty()) return {};
  return fmt::format(
      "arrivals at {}: CTA {}, which waits there, has added to it {} time{}; {}{}. A CTA that leaves for "
      "good must add, at once, one for each time that the others will still wait: the total is the number of "
      "times that the CTA with the most waits arrives (rounded up, not down)",
      name_address(reinterpret_cast<std::uintptr_t>(address)), name_cta(*thread.cta), mine->count,
      mine->count == 1 ? "" : "s", fewer, left);
}

std::string lowered_before_seen(const void* address, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  Shard& shard = shard_of(reinterpret_cast<std::uintptr_t>(address));
  const std::lock_guard lock(shard.mutex);
  if (shard.launch != gang.grid.launch) return {};
  const auto found = shard.flags.find(flag_key(address, thread));
  if (found == shard.flags.end()) return {};
  const FlagWord& flag = found->second;
  const auto of_cta = [&](bool mine) {
    return std::find_if(flag.changes.begin(), flag.changes.end(), [&](const FlagWord::Changes& of) {
      return (of.cta == thread.cta->key) == mine && !of.added && (of.value < of.before) == mine;
    });
  };
  const auto lowered = of_cta(true);
  const auto raised = of_cta(false);
  if (lowered == flag.changes.end() || raised == flag.changes.end() || lowered->before != raised->value ||
      lowered->value != word_at(address, flag.bytes))
    return {};
  return fmt::format(
      "a barrier between the polls and the store that lowers {}: a thread of CTA {} stored {} at {} after it "
      "had seen {} (from CTA {}, at {}), before thread {} of the same CTA had seen it. Either all threads "
      "that poll a flag must meet before one of them lowers it, or one thread polls and lowers it and a "
      "barrier lets the others proceed",
      name_address(reinterpret_cast<std::uintptr_t>(address)), name_cta(*thread.cta), lowered->value,
      lowered->where.text(), lowered->before, name_cta(gang.grid, raised->cta), raised->where.text(),
      text(thread.id));
}

std::string left_by_earlier_launches(const void* address, const Thread& thread) {
  constexpr std::size_t kShown = 4;
  const Grid& grid = thread.cta->gang->grid;
  const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(address));
  if (!buffer) return {};
  std::map<std::uintptr_t, std::string> lines;
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    const bool touched = shard.launch == grid.launch;  // in this launch
    std::unordered_map<std::uintptr_t, LeftWord> untouched;
    if (!touched) untouched = left_words(shard);
    for (const auto& [key, left] : touched ? shard.left : untouched) {
      const auto found = shard.flags.find(key);
      if (find_buffer(key) != buffer) continue;
      const std::uint64_t held = touched && found != shard.flags.end()
                                     ? found->second.at_first
                                     : word_at(reinterpret_cast<const void*>(key), left.bytes);
      if (left.launch + 1 != grid.launch || left.at_first != 0 || left.value == 0 || held != left.value)
        continue;
      lines[key] = fmt::format(
          "{} held {} when this launch began: the previous launch, which had found 0, left it there, last "
          "written at {} by {}. It is not reset to 0 at the end of a launch",
          name_address(key), left.value, left.where.text(), name_thread(grid, left.writer));
    }
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [key, line] : lines) {
    if (shown++ == kShown) break;
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

std::string counters_left_over() {
  constexpr std::size_t kShown = 3;
  std::uint64_t latest = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(all_shards()[i].mutex);
    latest = std::max(latest, all_shards()[i].launch);
  }
  std::map<std::uintptr_t, std::string> words;
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != latest) continue;
    for (const auto& [key, left] : shard.left) {
      const auto found = shard.flags.find(key);
      if (found == shard.flags.end() || left.launch + 1 != latest || left.at_first != 0 || left.value == 0 ||
          found->second.at_first != left.value || !find_buffer(key))
        continue;
      const FlagWord& flag = found->second;
      const std::string now = flag.changes.empty()
                                  ? std::string()
                                  : fmt::format(", and this launch continues from there at {}",
                                                flag.changes.front().where.text());
      words[key] = fmt::format(
          "{} held {} when this launch began: the previous launch found 0 and left that value, at {}{}",
          name_address(key), left.value, left.where.text(), now);
    }
  }
  if (words.empty()) return {};
  std::string text;
  std::size_t shown = 0;
  for (const auto& [key, word] : words) {
    if (shown++ == kShown) {
      text += fmt::format("; and {} more words", words.size() - kShown);
      break;
    }
    text += (text.empty() ? "" : "; ") + word;
  }
  return text + ". No thread has reset " + (words.size() == 1 ? "it" : "them") + " to 0 for the next launch";
}

std::string store_without_order(std::uint64_t launch) {
  UnorderedReset& first = unordered_reset();
  const std::lock_guard lock(first.mutex);
  return first.launch == launch ? first.report : "";
}

std::string words_not_set_back() {
  constexpr std::size_t kShown = 4;
  const auto latest =
      std::max_element(all_shards(), all_shards() + kShards, [](const auto& a, const auto& b) {
        return a.launch < b.launch;
      })->launch;
  std::map<std::uintptr_t, std::string> words;
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != latest) continue;
    for (const auto& [key, flag] : shard.flags) {
      const Buffer* const buffer = find_buffer(key);
      if (buffer == nullptr || buffer->name != "workspace" || flag.changes.empty()) continue;
      const std::uint64_t value = word_at(flag.address, flag.bytes);
      if (value == 0) continue;
      words[key] = fmt::format("{} was {} when the launch began and is {} behind it, since {}",
                               name_address(key), flag.at_first, value, flag.writer.where.text());
    }
  }
  if (words.empty()) return {};
  Report report("a launch leaves words of its workspace that are not 0");
  std::size_t shown = 0;
  for (const auto& [key, word] : words) {
    if (shown++ < kShown) report.line("word", word);
  }
  if (words.size() > kShown) report.line("and", "{} more words", words.size() - kShown);
  report.missing(
      "a store of 0 by the last CTA that uses the word, behind all that is added to it: in the next launch, "
      "waits for this word end too early or never");
  report.rule("flags and counters in a workspace are 0 between launches: it is zeroed only once",
              "this course, docs/verification.md");
  return report.str();
}

std::string written_neighbours(const void* address, const Thread& thread) {
  constexpr std::size_t kShown = 3;
  const Grid& grid = thread.cta->gang->grid;
  const auto polled = reinterpret_cast<std::uintptr_t>(address);
  const Buffer* const buffer = find_buffer(polled);
  if (!buffer) return {};
  std::map<std::uintptr_t, FlagWord::Changes> changed;  // by distance
  unsigned bytes = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != grid.launch) continue;
    for (const auto& [key, flag] : shard.flags) {
      if (key == polled) {
        if (!flag.changes.empty()) return {};  // its own writers say more
        bytes = flag.bytes;
      }
      if (find_buffer(key) == buffer && !flag.shared && !flag.changes.empty())
        changed[key] = flag.changes.back();
    }
  }
  if (bytes == 0) return {};
  if (changed.empty()) {
    return fmt::format(
        "no thread has changed a word of {} in this launch: the thread that sets {} has not reached that "
        "point, or has returned without doing so",
        buffer->name, name_address(polled));
  }
  std::vector<std::uintptr_t> keys;
  for (const auto& [key, changes] : changed) keys.push_back(key);
  const auto distance = [polled](std::uintptr_t key) { return key < polled ? polled - key : key - polled; };
  std::sort(keys.begin(), keys.end(), [&](auto one, auto other) { return distance(one) < distance(other); });
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, keys.size()); ++i) {
    const FlagWord::Changes& changes = changed[keys[i]];
    list += fmt::format("{}{} (word {} from there) by CTA {} at {}", list.empty() ? "" : ", ",
                        name_address(keys[i]),
                        (static_cast<std::int64_t>(keys[i]) - static_cast<std::int64_t>(polled)) /
                            static_cast<std::int64_t>(bytes),
                        name_cta(grid, changes.cta), changes.where.text());
  }
  const auto [lowest, highest] = std::minmax_element(keys.begin(), keys.end());
  std::string outside;
  if (polled < *lowest && (*lowest - polled) % bytes == 0)
    outside = fmt::format(
        ". It lies {} word{} before the first word that any thread sets, as element {} of these: an index "
        "(of a slot, a worker or a tile) has gone below its range, for example in a loop that steps back "
        "once too often",
        (*lowest - polled) / bytes, *lowest - polled == bytes ? "" : "s",
        -static_cast<std::int64_t>((*lowest - polled) / bytes));
  if (polled > *highest && (polled - *highest) % bytes == 0)
    outside = fmt::format(
        ". It lies {} word{} after the last word that any thread has set: either its owner has not reached "
        "it yet, or the index has gone past its range",
        (polled - *highest) / bytes, polled - *highest == bytes ? "" : "s");
  return fmt::format(
      "no thread sets {}. Neighbouring words were set in this launch: {}; {} in all, from {} to {}. Either "
      "the polled word has no owner (a wrong index), or its owner has returned without setting it{}",
      name_address(polled), list, keys.size(), name_address(*lowest), name_address(*highest), outside);
}

void fence(Scope scope, const char* what, Where where, FenceOrder order) {
  Thread& thread = this_thread(what, where);
  if (is_left_out(what, where)) return;
  if (context.counters) count_instruction(what, where, 0, 1);
  // Acquire what relaxed atomics have seen.
  if (scope == Scope::kSystem) {
    thread.clock.join(thread.seen_system);
    thread.seen_system.clear();
  }
  if (scope != Scope::kCta) {
    thread.clock.join(thread.seen_device);
    thread.clock.join_only(thread.cta->key, thread.seen_cta);
    thread.seen_device.clear();
    thread.seen_cta.clear();
    if (order == FenceOrder::kSequential) {
      thread.clock.join(thread.sequential_seen);
      thread.sequential_seen.clear();
    }
  } else {
    thread.clock.join_only(thread.cta->key, thread.seen_device);
    thread.clock.join_only(thread.cta->key, thread.seen_cta);
  }
  // What a later relaxed atomic releases.
  SyncObject snapshot;
  thread.release_into(snapshot);
  if (scope == Scope::kSystem && thread.cta->gang->grid.rank >= 0) thread.fenced_system = snapshot.clock;
  if (scope != Scope::kCta) {
    thread.fenced_device = snapshot.clock;
    if (order == FenceOrder::kSequential) thread.sequential_past.join(snapshot.clock);
  }
  thread.fenced_cta = std::move(snapshot.clock);
  if (scope != Scope::kCta) {
    thread.fence_where = where.packed();
    thread.fence_time = thread.time;
  }
  thread.cta->gang->yield();
}

/// One of the kinds of operation that the search for schedules tells apart.
static void explore_word(const void* address, unsigned bytes, const char* what, Where where,
                         AtomicKind kind) {
  using explore::OperationKind;
  const bool has_result = !std::string_view(what).starts_with("red");
  const OperationKind operation = kind == AtomicKind::kLoad    ? OperationKind::kLoad
                                  : kind == AtomicKind::kStore ? OperationKind::kStore
                                  : has_result                 ? OperationKind::kUpdate
                                                               : OperationKind::kAdd;
  explore::before({.kind = operation, .what = what, .where = where, .object = address, .bytes = bytes});
}

AtomicAccess::AtomicAccess(const void* address, unsigned bytes, const char* what, Where where,
                           AtomicKind kind, bool asks) {
  if (asks)
    forget_returned_frames();  // so that nothing of them is left between the variables of the frame below
  const auto begin = [&]() __attribute__((noinline)) {
    Thread& thread = this_thread(what, where);
    if (kind != AtomicKind::kLoad) let_lanes_catch_up(what, where);
    if (!explore::is_choosing()) thread.cta->gang->yield();  // any thread may come first
    if (explore::is_on()) explore_word(address, bytes, what, where, kind);
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    if (is_program_data(value)) adopt_variable(value);
    if (is_shared(address)) {
      if (context.counters) count_shared(address, bytes, Access::kAtomic, where);
      check_shared(address, bytes, access_of(kind), where);
    } else if (find_buffer(value)) {
      if (context.counters) count_global(address, bytes, Access::kAtomic, where);
      check_global(address, bytes, access_of(kind), where);
    }
    shard_ = &shard_of(value);
    shard_->mutex.lock();
    const std::uint64_t launch = thread.cta->gang->grid.launch;
    if (shard_->launch != launch) begin_launch(*shard_, launch);
    FlagWord& flag = shard_->flags[flag_key(address, thread)];
    if (flag.address == nullptr) {
      flag.address = address;
      flag.bytes = bytes;
      flag.shared = is_shared(address);
      flag.at_first = word_at(address, bytes);
    }
    if (watches_co_residency(thread.cta->gang->grid) && !is_shared(address)) {
      std::string report;
      if (kind != AtomicKind::kStore && asks) {
        std::uint64_t word = 0;
        std::memcpy(&word, address, std::min<std::size_t>(sizeof word, bytes));
        report = note_question(thread, address, what, where, word, flag.writer);
      }
      if (!report.empty()) {
        shard_->mutex.unlock();
        fail("co-residency", report);
      }
      if (kind != AtomicKind::kLoad) note_atomic_write(thread);
    }
    const int rank = thread.cta->gang->grid.rank;
    if (kind != AtomicKind::kLoad && std::exchange(flag.rank, rank) != rank) {
      // What the other rank has told its own threads means nothing to these.
      flag.device.clear();
      flag.sequential.clear();
    }
    const bool of_rank = flag.rank == rank;
    if (kind == AtomicKind::kStore) {
      flag.system_before = std::exchange(flag.system, {});
      flag.device_before = std::exchange(flag.device, {});
      flag.cta_before = std::exchange(flag.cta, {});
      flag.sequential_before = flag.sequential;  // later writes in coherence order count as well
    }
    flag_ = &flag;
    where_ = where;
    check_scope(what, kind);
    if (rank >= 0) check_ranks(what, kind);
    const auto looked = std::find_if(flag.loads.begin(), flag.loads.end(), [&](const FlagWord::Load& load) {
      return load.stamp >> 32 == thread.stamp() >> 32;
    });
    flag.looked = looked == flag.loads.end() ? 0 : looked->looked;
    flag.found = word_at(address, bytes);
    flag.updates = kind == AtomicKind::kUpdate;
    if (kind != AtomicKind::kStore) {
      note_poll({.what = what, .address = address, .bytes = bytes, .where = where});
    }
    if (kind != AtomicKind::kLoad && !thread.fenced_device.empty()) {
      flag.device.join(thread.fenced_device);
      flag.device.unshare();
    }
    if (kind != AtomicKind::kLoad && !thread.fenced_system.empty() && rank >= 0) {
      flag.system.join(thread.fenced_system);
      flag.system.unshare();
    }
    if (kind != AtomicKind::kLoad && !thread.fenced_cta.empty()) {
      flag.cta.join_only(thread.cta->key, thread.fenced_cta);
      flag.cta.unshare();
    }
    if (kind != AtomicKind::kLoad && !thread.sequential_past.empty()) {
      flag.sequential.join(thread.sequential_past);
      flag.sequential.unshare();
    }
    if (kind == AtomicKind::kLoad) {
      FlagWord::Load& load = entry_of(flag.loads, thread.stamp());
      load = {.stamp = thread.stamp(),
              .where = where,
              .what = what,
              .system = thread.system_atomics,
              .number = ++loads_so_far};
      load.looked = load.number;
    } else {
      FlagWord::Store& store = entry_of(flag.stores, thread.stamp());
      store = {.stamp = thread.stamp(),
               .where = where,
               .what = what,
               .system = thread.system_atomics,
               .latest_fence = Where::from_packed(thread.fence_where),
               .device = thread.fenced_device,
               .number = ++loads_so_far,
               .sets = kind == AtomicKind::kStore};
      store.device.unshare();
      if (rank >= 0) {
        store.released = thread.fenced_system;
        store.released.unshare();
      }
      if (thread.fence_time != 0 && thread.fence_time != thread.time) {  // it has met others since
        store.fence = Where::from_packed(thread.fence_where);
        store.knew = thread.clock;
        store.knew.raise_base(thread.cta->key, thread.base);
        store.knew.unshare();
      }
      if (kind == AtomicKind::kUpdate) {
        FlagWord::Load& load = entry_of(flag.loads, thread.stamp());
        load = {.stamp = thread.stamp(),
                .where = where,
                .what = what,
                .system = thread.system_atomics,
                .number = ++loads_so_far,
                .value = flag.found,
                .old = !flag.changed,
                .from = flag.writer.writer,
                .updates = true};
        load.looked = std::string_view(what).starts_with("red") ? flag.looked : load.number;
      }
    }
    if (kind == AtomicKind::kStore) return;
    if (!flag.system.empty()) {
      thread.seen_system.join(flag.system);
      thread.seen_system.unshare();
    }
    if (!flag.sequential.empty() && of_rank) {
      thread.sequential_seen.join(flag.sequential);
      thread.sequential_seen.unshare();
    }
    if (!flag.device.empty() && of_rank) {
      thread.seen_device.join(flag.device);
      thread.seen_device.unshare();
    }
    if (!flag.cta.empty()) {
      thread.seen_cta.join_only(thread.cta->key, flag.cta);
      thread.seen_cta.unshare();
    }
    if (kind == AtomicKind::kUpdate && !flag.shared && flag.writer.number != 0 &&
        flag.writer.writer >> 32 != thread.stamp() >> 32 && !thread.clock.covers(flag.writer.writer) &&
        course_rule_on(CourseRule::kRelaxedOrder))
      remember_writer(true);
  };
  begin();
}

/// Of two ranks' atomics on one word, both must have the system's scope.
void AtomicAccess::check_ranks(const char* what, AtomicKind kind) {
  const Thread& thread = running_thread();
  const FlagWord& flag = *flag_;
  const int rank = thread.cta->gang->grid.rank;
  const bool writes = kind != AtomicKind::kLoad;
  struct Other {
    Stamp stamp = 0;
    Where where;
    const char* what = "";
    bool system = false;
  } other;
  const auto look = [&](const auto& access, bool other_writes) {
    if (other.stamp != 0 || (thread.system_atomics && access.system) || !(writes || other_writes) ||
        ranks::rank_of(stamp_cta(access.stamp)) == rank || thread.clock.covers(access.stamp))
      return;
    other = {access.stamp, access.where, access.what, access.system};
  };
  for (const FlagWord::Store& store : flag.stores) look(store, true);
  for (const FlagWord::Load& load : flag.loads) look(load, load.updates);
  if (other.stamp == 0) return;
  const Grid& grid = thread.cta->gang->grid;
  std::string narrow;
  if (!other.system) narrow = fmt::format("{} at {}", other.what, other.where.text());
  if (!thread.system_atomics)
    narrow += fmt::format("{}{} at {}", narrow.empty() ? "" : " and for ", what, where_.text());
  const std::string report =
      Report("scope too small: rank {} and rank {} use a word, and not both with the system's scope", rank,
             ranks::rank_of(stamp_cta(other.stamp)))
          .line("bytes", "{} ({} bytes)", name_address(reinterpret_cast<std::uintptr_t>(flag.address)),
                flag.bytes)
          .line("one", "{} at {} by {}", other.what, other.where.text(), name_thread(grid, other.stamp))
          .line("other", "{} at {} by {}", what, where_.text(), name_thread(thread))
          .missing("system scope for {}: .sys, thread_scope_system, or the function with _system", narrow)
          .rule(
              "an atomic of gpu scope is one for the threads of its own GPU only; for another GPU it neither "
              "orders anything nor has to become visible",
              "PTX ISA, \"Memory Consistency Model: Scope\", \"Morally strong operations\"")
          .str();
  std::exchange(shard_, nullptr)->mutex.unlock();
  fail("scope-too-small", report);
}

/// An atomic of CTA scope is one for its own CTA only: to others it is a plain access.
void AtomicAccess::check_scope(const char* what, AtomicKind kind) {
  const Thread& thread = running_thread();
  FlagWord& flag = *flag_;
  const bool writes = kind != AtomicKind::kLoad;
  const auto conflicts = [&](Stamp stamp, bool other_writes) {
    return stamp != 0 && stamp_cta(stamp) != thread.cta->key && (writes || other_writes) &&
           !thread.clock.covers(stamp);
  };
  FlagWord::Narrow other;
  bool found = false;
  if (thread.narrow_atomics) {
    for (const FlagWord::Store& store : flag.stores) {
      if (found || !conflicts(store.stamp, true)) continue;
      other = {store.stamp, store.where, store.what, true};
      found = true;
    }
    for (const FlagWord::Load& load : flag.loads) {
      if (found || !conflicts(load.stamp, load.updates)) continue;
      other = {load.stamp, load.where, load.what, load.updates};
      found = true;
    }
    entry_of(flag.narrow, thread.stamp()) = {thread.stamp(), where_, what, writes};
  } else {
    for (const FlagWord::Narrow& narrow : flag.narrow) {
      if (found || !conflicts(narrow.stamp, narrow.writes)) continue;
      other = narrow;
      found = true;
    }
  }
  if (!found) return;
  const std::string report =
      Report("race on global memory: an atomic of block scope touches bytes that another block accesses too")
          .line("bytes", "{} ({} bytes)", name_address(reinterpret_cast<std::uintptr_t>(flag.address)),
                flag.bytes)
          .line("one", "{} at {} by {}", other.what, other.where.text(),
                name_thread(thread.cta->gang->grid, other.stamp))
          .line("other", "{} at {} by {}", what, where_.text(), name_thread(thread))
          .missing("device scope at {}: thread_scope_device, .gpu, or the function without _block",
                   thread.narrow_atomics ? where_.text() : other.where.text())
          .rule(
              "an atomic of block scope is atomic only for the threads of its own block, and an update by "
              "another block may be lost",
              "PTX ISA, \"Memory Consistency Model: Morally strong operations\"")
          .str();
  std::exchange(shard_, nullptr)->mutex.unlock();
  fail("global-race", report);
}

AtomicAccess::~AtomicAccess() {
  if (shard_ && flag_ && flag_->updates && !flag_->shared &&
      word_at(flag_->address, flag_->bytes) == flag_->found) {
    constexpr std::size_t kKept = 16;
    const std::uint32_t cta = running_thread().cta->key;
    std::erase_if(flag_->idle, [cta](const FlagWord::Idle& other) { return other.cta == cta; });
    if (flag_->idle.size() < kKept) flag_->idle.push_back({cta, where_});
  }
  if (shard_) shard_->mutex.unlock();
}

void AtomicAccess::changed() {
  flag_->writer = {running_thread().stamp(), where_, ++changes_so_far};
  flag_->changed = true;
  const std::uint32_t cta = running_thread().cta->key;
  auto changes = std::find_if(flag_->changes.begin(), flag_->changes.end(),
                              [cta](const FlagWord::Changes& other) { return other.cta == cta; });
  if (changes == flag_->changes.end()) {
    flag_->changes.push_back({.cta = cta});
    changes = std::prev(flag_->changes.end());
  }
  ++changes->count;
  changes->value = word_at(flag_->address, flag_->bytes);
  changes->before = flag_->found;
  changes->added = flag_->updates;
  changes->where = where_;
  // The latest CTA last.
  std::rotate(changes, std::next(changes), flag_->changes.end());
  ++running_thread().cta->gang->progress;
  if (flag_->updates) {
    FlagWord::Store& store = entry_of(flag_->stores, running_thread().stamp());
    store.adds = is_addition(store.what);
  }
  check_reset(*flag_);
}

void AtomicAccess::repeated(std::uint64_t value) {
  flag_->device.meet(flag_->device_before);
  flag_->system.meet(flag_->system_before);
  flag_->cta.meet(flag_->cta_before);
  flag_->sequential = std::move(flag_->sequential_before);
  FlagWord::Store& store = entry_of(flag_->stores, running_thread().stamp());
  store.repeats = value != 0;
  store.old = !flag_->changed;
  store.first = flag_->writer.writer;
  flag_->writer = {running_thread().stamp(), where_};
  check_reset(*flag_);
}

void AtomicAccess::saw(std::uint64_t value) {
  FlagWord::Load& load = entry_of(flag_->loads, running_thread().stamp());
  load.value = value;
  load.old = !flag_->changed;
  load.from = flag_->writer.writer;
  if (!flag_->shared && flag_->writer.number != 0 && course_rule_on(CourseRule::kRelaxedOrder))
    check_relaxed_order();
}

/// A thread that has seen another one's store by a relaxed load may still see what was in a word before an
/// earlier store of that thread: nothing but a release and an acquire orders the two.
void AtomicAccess::check_relaxed_order() {
  Thread& thread = running_thread();
  const AtomicWriter& writer = flag_->writer;
  if (writer.writer >> 32 == thread.stamp() >> 32) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(thread.seen_count, thread.seen.size()); ++i) {
    const Thread::Seen& seen = thread.seen[i];
    // The same load, of another word: it looks through what several threads have said.
    if (seen.writer >> 32 != writer.writer >> 32 || seen.number <= writer.number ||
        seen.address == flag_->address || seen.load == where_.packed() || thread.clock.covers(writer.writer))
      continue;
    // A counter that was raised after a fence: CUDA's own samples read what it counts without a second fence.
    if (seen.by_update && thread.seen_device.covers(writer.writer)) continue;
    const Grid& grid = thread.cta->gang->grid;
    const auto name = [](const void* address) {
      return name_address(reinterpret_cast<std::uintptr_t>(address));
    };
    const std::string report =
        Report(
            "a relaxed load may still see an old value, although the thread has already seen a later store")
            .line("bytes", "{}, loaded at {} by {}", name(flag_->address), where_.text(), name_thread(thread))
            .line("stored", "at {} by {}, which stored {} afterwards, at {}", writer.where.text(),
                  name_thread(grid, writer.writer), name(seen.address), Where::from_packed(seen.store).text())
            .line("flag", "the thread has seen that later store at {}", Where::from_packed(seen.load).text())
            .missing(
                "a release by the storing thread (__threadfence between {} and {}) and an acquire by the "
                "loading thread (__threadfence between {} and {})",
                writer.where.text(), Where::from_packed(seen.store).text(),
                Where::from_packed(seen.load).text(), where_.text())
            .rule("other threads may see volatile and relaxed accesses to different words in any order",
                  "PTX ISA, \"Memory Consistency Model: Causality order\"")
            .course_rule(CourseRule::kRelaxedOrder)
            .str();
    std::exchange(shard_, nullptr)->mutex.unlock();
    fail("relaxed-order", report);
  }
  if (thread.clock.covers(writer.writer)) return;
  remember_writer(false);
}

void AtomicAccess::remember_writer(bool by_update) {
  Thread& thread = running_thread();
  const AtomicWriter& writer = flag_->writer;
  Thread::Seen* entry = nullptr;
  for (Thread::Seen& seen : thread.seen) {
    if (seen.address == flag_->address && seen.writer >> 32 == writer.writer >> 32) entry = &seen;
  }
  if (entry == nullptr) entry = &thread.seen[thread.seen_count++ % thread.seen.size()];
  *entry = {writer.writer, writer.number, flag_->address, where_.packed(), writer.where.packed(), by_update};
}

namespace {

/// A word that a warpgroup of one CTA has loaded last of all, and what another CTA has said by it.
struct PassedFlag {
  std::uintptr_t address = 0;
  FlagWord::Load load;
  std::optional<FlagWord::Store> store;  // by the other CTA
};

/// Two threads of one warpgroup of one CTA.
bool same_warpgroup(Stamp one, Stamp other) {
  return one >> 39 == other >> 39;
}

/// visit(address, flag, load) for the loads of all words of global memory in this launch.
template <typename Visit>
void for_loads(std::uint64_t launch, const Visit& visit) {
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != launch) continue;
    for (const auto& [address, flag] : shard.flags) {
      if (!find_buffer(address)) continue;
      for (const FlagWord::Load& load : flag.loads) visit(address, flag, load);
    }
  }
}

/// `updates`: by a read-modify-write, which may be a wait's end or just a count.
std::optional<PassedFlag> passed_flag(std::uint64_t launch, Stamp reader, Stamp writer,
                                      bool updates = false) {
  std::optional<PassedFlag> found;
  const auto rank = [&](const FlagWord::Load& load) {
    return std::pair(same_warpgroup(load.stamp, reader), load.number);
  };
  for_loads(launch, [&](std::uintptr_t address, const FlagWord& flag, const FlagWord::Load& load) {
    if (stamp_cta(load.stamp) != stamp_cta(reader) || load.updates != updates) return;
    if (found && rank(load) < rank(found->load)) return;
    const FlagWord::Store* by = nullptr;
    for (const FlagWord::Store& store : flag.stores) {
      if (stamp_cta(store.stamp) != stamp_cta(writer)) continue;
      const bool seen = store.stamp >> 32 == load.from >> 32;  // by this load
      if (by == nullptr || seen ||
          (by->stamp >> 32 != load.from >> 32 && same_warpgroup(store.stamp, writer)))
        by = &store;
    }
    // Before anybody has said anything: a value from before, or a wait that has not ended.
    if (by == nullptr && !load.old) return;
    found = PassedFlag{address, load, by ? std::optional(*by) : std::nullopt};
    if (by != nullptr) {
      found->store->device.unshare();
      found->store->knew.unshare();
    }
  });
  return found;
}

/// One thread reads and the other one writes in the same line: both update the bytes there, perhaps.
bool in_one_line(Where one, Access access, Where other, Access of_other) {
  const bool plain = (access == Access::kRead && of_other == Access::kWrite) ||
                     (access == Access::kWrite && of_other == Access::kRead);
  return plain && one.is_line_of(other);
}

void explain_lost_update(Report& report, const Grid& grid, Stamp one, Stamp other, Where where) {
  report.missing(
      "an atomic at {} (atomicAdd, for example), because a thread reads these bytes there and stores an "
      "updated value, as += does: CTAs {} and {} both do so, and one of the two updates may be lost. "
      "Alternatively, a flag that makes one CTA wait until the other has finished",
      where.text(), name_cta(grid, stamp_cta(one)), name_cta(grid, stamp_cta(other)));
}

/// Where a thread of the launch has acquired a word of global memory, first of all one of the reader's CTA.
std::optional<FlagWord::Load> acquire_in_launch(std::uint64_t launch, Stamp reader) {
  std::optional<FlagWord::Load> found;
  const auto rank = [&](const FlagWord::Load& load) {
    return std::pair(stamp_cta(load.stamp) == stamp_cta(reader), load.number);
  };
  for_loads(launch, [&](std::uintptr_t, const FlagWord&, const FlagWord::Load& load) {
    if (load.updates || std::string_view(load.what).find("acquire") == std::string_view::npos ||
        same_warpgroup(load.stamp, reader) || (found && rank(load) < rank(*found)))
      return;
    found = load;
  });
  return found;
}

void explain_no_flag(Report& report, const Grid& grid, Stamp reader, Stamp writer) {
  const auto cta = [&](Stamp stamp) { return name_cta(grid, stamp_cta(stamp)); };
  const std::optional<FlagWord::Load> other = acquire_in_launch(grid.launch, reader);
  const std::string by_another = other ? fmt::format(" (as {} waits at {} for its warpgroup)",
                                                     name_thread(grid, other->stamp), other->where.text())
                                       : std::string();
  report.missing(
      "a wait: no thread of CTA {} had passed a flag raised by CTA {} when {} read. One thread must acquire "
      "the flag, and a barrier after the acquire must hold the others back. If a thread of warpgroup {} does "
      "acquire it{}, that barrier is missing: this thread read before the wait had ended",
      cta(reader), cta(writer), name_thread(grid, reader), stamp_thread(reader) / 128, by_another);
}

/// Whether such a warpgroup of any CTA has counted at this place, in any word.
bool warpgroup_counts(std::uint64_t launch, Where where, std::uint32_t warpgroup) {
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != launch) continue;
    for (const auto& [address, flag] : shard.flags) {
      if (std::any_of(flag.stores.begin(), flag.stores.end(), [&](const FlagWord::Store& store) {
            return store.where.packed() == where.packed() && stamp_thread(store.stamp) / 128 == warpgroup;
          }))
        return true;
    }
  }
  return false;
}

/// A counter that the reader's warpgroup took as high enough before that which writes had raised it. False
/// where it is not known to be one.
bool explain_low_count(Report& report, const Grid& grid, Stamp reader, Stamp writer) {
  std::optional<FlagWord::Load> load;
  std::uintptr_t counter = 0;
  std::vector<FlagWord::Changes> changes;
  bool counted = false;  // by the warpgroup that writes
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = all_shards()[i];
    const std::lock_guard lock(shard.mutex);
    if (shard.launch != grid.launch) continue;
    for (const auto& [address, flag] : shard.flags) {
      if (!find_buffer(address)) continue;
      for (const FlagWord::Load& other : flag.loads) {
        if (other.updates || !same_warpgroup(other.stamp, reader) || (load && other.number < load->number))
          continue;
        load = other;
        counter = address;
        changes = flag.changes;
        counted = std::any_of(flag.stores.begin(), flag.stores.end(), [&](const FlagWord::Store& store) {
          return same_warpgroup(store.stamp, writer);
        });
      }
    }
  }
  if (!load || load->value == 0 || counted || changes.empty() ||
      !std::all_of(changes.begin(), changes.end(), [&](const FlagWord::Changes& of) { return of.added; }) ||
      !warpgroup_counts(grid.launch, changes.back().where, stamp_thread(writer) / 128))
    return false;
  const auto cta = [&](std::uint32_t key) { return name_cta(grid, key); };
  std::string by;
  std::uint32_t times = 0;
  for (const FlagWord::Changes& of : changes) {
    by += fmt::format("{}CTA {} {} time{}", by.empty() ? "" : ", ", cta(of.cta), of.count,
                      of.count == 1 ? "" : "s");
    if (of.cta == stamp_cta(writer)) times = of.count;
  }
  report.line("counter", "{}: {} read {} from it with {} at {}, and proceeded; raised at {} so far by {}",
              name_address(counter), name_thread(grid, load->stamp), load->value, load->what,
              load->where.text(), changes.back().where.text(), by);
  report.missing(
      "a higher count in the wait at {}: it ended at {}, before warpgroup {} of CTA {}, whose values are "
      "read, had counted{}. Each warpgroup that writes must count for itself, and the wait must be for all "
      "of them",
      load->where.text(), load->value, stamp_thread(writer) / 128, cta(stamp_cta(writer)),
      times > 0 ? " (only another warpgroup of that CTA had)" : "");
  return true;
}

const Thread* thread_of(const Gang& gang, Stamp stamp) {
  for (const auto& cta : gang.ctas) {
    if (cta->key == stamp_cta(stamp)) return &cta->threads[stamp_thread(stamp)];
  }
  return nullptr;
}

}  // namespace

bool explain_overwritten_slot(Report& report, const Thread& thread, Where where, Stamp reader, Stamp held,
                              Where held_where) {
  const Grid& grid = thread.cta->gang->grid;
  if (held == 0 || is_agent(held) || is_agent(reader) || stamp_cta(held) != thread.cta->key ||
      stamp_cta(reader) == thread.cta->key)
    return false;
  const std::optional<PassedFlag> passed = passed_flag(grid.launch, reader, held);
  // Where the reader has spoken to this thread since, it is not known what for.
  if (!passed || !passed->store || !passed->store->device.covers(held) ||
      thread.clock.covers(passed->load.stamp))
    return false;
  const FlagWord::Load& load = passed->load;
  const std::string own = name_cta(*thread.cta);
  const std::string other = name_cta(grid, stamp_cta(reader));
  report.line("before", "written at {} by {}, in this launch", held_where.text(), name_thread(grid, held));
  report.line("flag", "{}: {} raised it at {} after that, and {} read {} from it at {}",
              name_address(passed->address), name_thread(grid, passed->store->stamp),
              passed->store->where.text(), name_thread(grid, load.stamp), load.value, load.where.text());
  report.missing(
      "a separate slot for each of two results: CTA {} wrote one of them there, for which CTA {} has waited, "
      "and overwrites it with another, at {}, before CTA {} has signalled that it has read the first. Either "
      "a CTA's two partial tiles need separate slots, or the second must wait until the first has been read",
      own, other, where.text(), other);
  return true;
}

bool explain_rank_scope(Report& report, const Thread& thread, Stamp earlier) {
  const Gang& gang = *thread.cta->gang;
  std::optional<PassedFlag> passed = passed_flag(gang.grid.launch, thread.stamp(), earlier);
  if (!passed || !passed->store) return false;
  const FlagWord::Store& store = *passed->store;
  const FlagWord::Load& load = passed->load;
  const bool released = store.released.covers(earlier);
  const Thread* const loader = thread_of(gang, load.stamp);
  const bool fenced = loader != nullptr && loader->fence_time > stamp_time(load.stamp);
  const bool unseen = released && fenced && loader->seen_system.covers(earlier);
  if (!unseen && (released || !store.device.covers(earlier))) return false;
  report.line("flag", "{}: {} raised it with {} at {}, and {} read {} from it with {} at {}",
              name_address(passed->address), name_thread(gang.grid, store.stamp), store.what,
              store.where.text(), name_thread(gang.grid, load.stamp), load.value, load.what,
              load.where.text());
  report.missing(
      "system scope for the fence at {} (fence.acq_rel.sys, __threadfence_system): the scope of the flag's "
      "own "
      "{} does not help a fence of gpu scope",
      unseen ? Where::from_packed(loader->fence_where).text() : store.latest_fence.text(),
      unseen ? "load" : "store");
  return true;
}

bool explain_flag(Report& report, const Thread& thread, Where where, Stamp earlier, Where earlier_where,
                  Access earlier_access, Access access) {
  const bool earlier_reads = earlier_access == Access::kRead;
  const Gang& gang = *thread.cta->gang;
  const Grid& grid = gang.grid;
  std::optional<PassedFlag> passed = passed_flag(grid.launch, thread.stamp(), earlier);
  if (!passed && !earlier_reads && in_one_line(earlier_where, earlier_access, where, access)) {
    explain_lost_update(report, grid, earlier, thread.stamp(), where);
    return true;
  }
  if ((!passed || !passed->store) && !earlier_reads) {  // a ticket, perhaps
    std::optional<PassedFlag> counted = passed_flag(grid.launch, thread.stamp(), earlier, true);
    if (counted && counted->store) passed = std::move(counted);
  }
  const bool stale = [&] {
    const auto is_stale = [](const std::optional<PassedFlag>& flag) {
      return flag && flag->load.value != 0 && (flag->load.old || (flag->store && flag->store->repeats));
    };
    if (is_stale(passed)) return true;
    if (!earlier_reads) return false;
    // Read by a flag that says too much, and written only now.
    std::optional<PassedFlag> other = passed_flag(grid.launch, earlier, thread.stamp());
    if (!is_stale(other)) return false;
    passed = std::move(other);
    return true;
  }();
  if (!passed && earlier_reads) {
    passed = passed_flag(grid.launch, earlier, thread.stamp());
    if (explain_low_count(report, grid, earlier, thread.stamp())) return true;
    if (!passed || passed->load.value != 0 || passed->load.stamp >> 32 == earlier >> 32 ||
        !same_warpgroup(passed->load.stamp, earlier)) {
      if (in_one_line(earlier_where, earlier_access, where, access)) {
        explain_lost_update(report, grid, earlier, thread.stamp(), where);
        return true;
      }
      explain_no_flag(report, grid, earlier, thread.stamp());
      return true;
    }
    report.line("flag", "{}: {} still waits for it at {}", name_address(passed->address),
                name_thread(grid, passed->load.stamp), passed->load.where.text());
    report.missing("a barrier between the acquire at {} and the read at {}", passed->load.where.text(),
                   earlier_where.text());
    return true;
  }
  if (!passed || !(passed->store || stale)) {
    if (access != Access::kRead) return false;
    if (explain_low_count(report, grid, thread.stamp(), earlier)) return true;
    if (passed && passed->load.value == 0 && same_warpgroup(passed->load.stamp, thread.stamp()) &&
        passed->load.stamp >> 32 != thread.stamp() >> 32) {
      report.line("flag", "{}: {} of the same warpgroup still waits for it at {}",
                  name_address(passed->address), name_thread(grid, passed->load.stamp),
                  passed->load.where.text());
      report.missing("a barrier between the acquire at {} and this read", passed->load.where.text());
      return true;
    }
    explain_no_flag(report, grid, thread.stamp(), earlier);
    return true;
  }
  const FlagWord::Load& load = passed->load;
  const std::string flag = name_address(passed->address);
  report.line("flag", "{}: {} read {} from it with {} at {}", flag, name_thread(grid, load.stamp), load.value,
              load.what, load.where.text());
  if (stale) {
    const bool repeats = passed->store && passed->store->repeats;
    const bool old = !repeats || passed->store->old;
    const std::string what =
        repeats ? fmt::format(
                      "it already holds {} when {} stores that value at {}, so the load may have seen the "
                      "older value",
                      load.value, name_thread(grid, passed->store->stamp), passed->store->where.text())
                : fmt::format(
                      "it has held {} since before this launch, and no thread has stored that value in this "
                      "launch",
                      load.value);
    report.missing(
        what +
        (old ? ": lower the flag before the launch ends"
             : fmt::format(
                   ", stored by {}: either each needs its own flag, or the flag must be lowered in between",
                   name_thread(grid, passed->store->first))));
    return true;
  }
  const FlagWord::Store& store = *passed->store;
  report.line("raised", "by {} at {}: {}", name_thread(grid, store.stamp), store.where.text(), store.what);
  if (store.device.empty()) {
    report.missing("a release: {} at {} does not order earlier accesses; use {} before it", store.what,
                   store.where.text(),
                   grid.rank >= 0 ? "st_release_sys, or a __threadfence_system()"
                                  : "st_release_gpu, or a __threadfence()");
    return true;
  }
  if (!store.device.covers(earlier) && store.knew.covers(earlier)) {
    report.missing(
        "a release: {} at {} does not order earlier accesses, and the latest fence before it, at {}, comes "
        "before the barrier (or the acquire) by which its thread knows of the {} at {}. A __threadfence() is "
        "needed between that and the store; alternatively, every thread that writes executes one before the "
        "barrier, and every thread that reads executes one after it has waited",
        store.what, store.where.text(), store.fence.text(), earlier_reads ? "read" : "write",
        earlier_where.text());
    return true;
  }
  if (!store.device.covers(earlier) && stamp_cta(store.stamp) == stamp_cta(earlier) &&
      !same_warpgroup(store.stamp, earlier)) {
    report.missing(
        "a barrier between {} and the release at {} that includes warpgroup {} of {}, or a separate flag for "
        "that warpgroup: warpgroup {} raised this one",
        earlier_where.text(), store.where.text(), stamp_thread(earlier) / 128, name_thread(grid, earlier),
        stamp_thread(store.stamp) / 128);
    return true;
  }
  if (!store.device.covers(earlier)) {
    const bool own = earlier >> 32 == store.stamp >> 32;
    report.missing(own ? fmt::format("the release at {} precedes the access at {} but must follow it",
                                     store.where.text(), earlier_where.text())
                       : fmt::format("a barrier between {} and the release at {}: a release covers its own "
                                     "thread's accesses, and those of other threads only after a barrier",
                                     earlier_where.text(), store.where.text()));
    return true;
  }
  const Thread* const loader = thread_of(gang, load.stamp);
  if (loader != nullptr && !loader->clock.covers(earlier) &&
      std::string_view(load.what).find("acquire") != std::string_view::npos) {
    report.missing("a wait for this store: the load at {} read the value from before it", load.where.text());
    return true;
  }
  if (loader != nullptr && !loader->clock.covers(earlier)) {
    report.missing("an acquire: {} at {} does not order later accesses; use {} after it", load.what,
                   load.where.text(),
                   grid.rank >= 0 ? "ld_acquire_sys, or a __threadfence_system()"
                                  : "ld_acquire_gpu, or a __threadfence()");
    return true;
  }
  if (loader != &thread) {
    report.missing(
        "a barrier between the acquire at {} and this access: an acquire holds for its own thread, and for "
        "other threads only after a barrier",
        load.where.text());
  }
  return true;
}

Ballot vote(const char* what, unsigned mask, int predicate, Where where) {
  struct Vote {
    int predicate;
    Ballot result;
  } own{predicate, {}};
  warp_collective(
      what, mask, &own,
      [](Rendezvous& meeting) {
        unsigned result = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (meeting.mask >> lane & 1 && static_cast<Vote*>(meeting.arguments[lane])->predicate)
            result |= 1u << lane;
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (meeting.mask >> lane & 1)
            static_cast<Vote*>(meeting.arguments[lane])->result = {result, meeting.mask};
        }
        meeting.result = result;
      },
      false, false, where);
  return own.result;
}

void shuffle_bytes(const char* what, Shuffle kind, unsigned mask, void* value, unsigned bytes, int operand,
                   int width, Where where) {
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width))) {
    const Thread& thread = this_thread(what, where);
    fail("warp-shuffle", Report("{} has the width {}", what, width)
                             .line("where", where.text())
                             .line("by", name_thread(thread))
                             .rule("the width must be 1, 2, 4, 8, 16 or 32",
                                   "CUDA C++ Programming Guide, \"Warp Shuffle Functions\"")
                             .str());
  }
  struct Exchange {
    void* value;
    unsigned bytes;
    Shuffle kind;
    int operand;
    int width;
    const char* what;
    Where where;
    std::uint64_t result;
    int missing;  // the source lane that does not take part, or -1
  } exchange{value, bytes, kind, operand, width, what, where, 0, -1};
  warp_collective(
      what, mask, &exchange,
      [](Rendezvous& meeting) {
        for (int lane = 0; lane < 32; ++lane) {
          if (!(meeting.mask >> lane & 1)) continue;
          auto& mine = *static_cast<Exchange*>(meeting.arguments[static_cast<std::size_t>(lane)]);
          const int segment = lane & ~(mine.width - 1);
          const int in_segment = lane - segment;
          int source = lane;
          switch (mine.kind) {
            case Shuffle::kIndex:
              source = segment + (mine.operand & (mine.width - 1));
              break;
            case Shuffle::kUp:
              source = in_segment < mine.operand ? lane : lane - mine.operand;
              break;
            case Shuffle::kDown:
              source = in_segment + mine.operand >= mine.width ? lane : lane + mine.operand;
              break;
            case Shuffle::kXor: {
              const int target = lane ^ mine.operand;
              // Earlier segments may be read, later ones answer with the lane's own value.
              source = target < segment + mine.width ? target : lane;
              break;
            }
          }
          source &= 31;
          if (!(meeting.mask >> source & 1)) {
            mine.missing = source;
            continue;
          }
          const auto& other = *static_cast<Exchange*>(meeting.arguments[static_cast<std::size_t>(source)]);
          std::memcpy(&mine.result, other.value, mine.bytes);
        }
        const auto lowest = static_cast<std::size_t>(std::countr_zero(meeting.mask));
        meeting.result = static_cast<Exchange*>(meeting.arguments[lowest])->result;
      },
      false, false, where);
  if (exchange.missing >= 0) {
    fail("warp-shuffle", Report("{} reads from lane {}, which {}", what, exchange.missing,
                                mask >> exchange.missing & 1 ? std::string("has returned from the kernel")
                                                             : fmt::format("is not in the mask {:#x}", mask))
                             .line("where", where.text())
                             .line("by", name_thread(running_thread()))
                             .rule("a value read from a lane that does not take part is undefined",
                                   "CUDA C++ Programming Guide, \"Warp Shuffle Functions\"")
                             .str());
  }
  std::memcpy(value, &exchange.result, bytes);
}

void* dynamic_shared(std::size_t bytes, Where where) {
  const Thread& thread = this_thread("dynamic_shared", where);
  const Cta& cta = *thread.cta;
  if (bytes > cta.dynamic_window.bytes) {
    fail("shared-out-of-bounds",
         Report("dynamic_shared needs {} bytes, but the launch gave the CTA {}", bytes,
                cta.dynamic_window.bytes)
             .line("where", where.text())
             .rule("LaunchShape::shared_bytes must be at least the size of the shared-memory struct",
                   "CUDA C++ Programming Guide, \"Execution Configuration\"")
             .str());
  }
  return cta.shared;
}

std::uint32_t shared_address(const void* pointer, Where where) {
  const Thread& thread = this_thread("shared_address", where);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto in_cluster = [](const Cta& cta, std::uint32_t offset) {
    return static_cast<std::uint32_t>(cta.rank_in_cluster) << 24 | offset;
  };
  if (const std::optional<std::uint32_t> own = shared_offset(*thread.cta, pointer, where))
    return in_cluster(*thread.cta, *own);
  std::uintptr_t in_place = address;
  if (const Cta* owner = shared_owner(in_place, thread); owner && owner != thread.cta) {
    const StaticVariable* variable = thread.cta->gang->static_shared.find(in_place);
    return in_cluster(*owner,
                      variable ? variable->offset + static_cast<std::uint32_t>(in_place - variable->address)
                               : static_cast<std::uint32_t>(in_place - owner->dynamic_window.begin));
  }
  // A little past the last byte: kernels compute addresses that they do not use, as lanes 16 to 31 do for an
  // ldmatrix.x2. A use is reported.
  constexpr std::uintptr_t kPast = 4096;
  constexpr std::uint32_t kNowhere = 0xff0000;  // where no variable is
  for (const auto& cta : thread.cta->gang->ctas) {
    const Window& window = cta->dynamic_window;
    if (window.bytes == 0 || address - window.begin > window.bytes + kPast) continue;
    const auto offset = static_cast<std::uint32_t>(address - window.begin);
    const bool is_taken = thread.cta->gang->static_shared.at(offset) != nullptr;
    return in_cluster(*cta, is_taken ? kNowhere + offset - static_cast<std::uint32_t>(window.bytes) : offset);
  }
  if (!near_static_shared(address, 0).empty()) return in_cluster(*thread.cta, kNowhere);
  fail("shared-out-of-bounds",
       Report("shared_address was given a pointer that does not point into shared memory")
           .line("where", where.text())
           .line("by", name_thread(thread))
           .rule("cvta.to.shared takes an address in the shared window",
                 "PTX ISA, \"Data Movement and Conversion Instructions: cvta\"")
           .str());
}

void trap(Where where) {
  const Thread& thread = this_thread("__trap", where);
  fail("trap",
       Report("the kernel executed __trap")
           .line("where", where.text())
           .line("by", name_thread(thread))
           .rule("__trap ends the kernel with an error", "CUDA C++ Programming Guide, \"Trap function\"")
           .str());
}

}  // namespace emulator
