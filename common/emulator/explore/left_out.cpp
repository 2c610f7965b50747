#include "emulator/explore/left_out.h"

#include <algorithm>
#include <compare>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/async/hopper.h"
#include "emulator/machine/machine.h"
#include "emulator/report/report.h"
#include "emulator/sync/mbarrier.h"
#include "harness/backend/ordering_control.h"

namespace emulator {

constinit OrderingMode ordering_mode = OrderingMode::kOff;

namespace explore {
namespace {

constexpr const char* kClusterArrive = "barrier_cluster_arrive";

struct Key {
  const char* what;
  std::uint64_t where;
  std::uint64_t number;                          // or the offset of the mbarrier
  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Listed {
  harness::OrderingStatement statement;
  std::set<std::uint32_t> warps;
};

std::mutex mutex;  // of all OS threads
std::map<Key, std::size_t> known;
std::vector<Listed> listed;
harness::OrderingStatement left_out;
std::set<const Thread*> without_arrival;  // at the cluster's barrier

/// "full" of "mbarrier full[1] (shared + 0x18048)". Elements of an array are used alike.
std::string array_of(const Mbarrier& barrier) {
  std::string name = name_mbarrier(barrier).substr(std::strlen("mbarrier "));
  if (name.starts_with("shared + ")) return {};
  return name.substr(0, name.find_first_of("[ "));
}

bool ask(const Key& key, Where where, const std::string& detail) {
  const auto [found, is_new] = known.try_emplace(key, listed.size());
  if (is_new) {
    const harness::OrderingStatement statement{key.what, where.text(), detail, ""};
    const auto same = std::find_if(listed.begin(), listed.end(), [&](const Listed& other) {
      return harness::is_same(other.statement, statement);
    });
    found->second = static_cast<std::size_t>(same - listed.begin());
    if (same == listed.end()) listed.push_back({statement, {}});
  }
  Listed& one = listed[found->second];
  if (ordering_mode != OrderingMode::kListing) return harness::is_same(one.statement, left_out);
  one.warps.insert(static_cast<std::uint32_t>(running_thread().warp()));
  return false;
}

}  // namespace

bool ask_left_out(const char* what, Where where, std::uint64_t number) {
  const std::lock_guard lock(mutex);
  const bool skips =
      ask({what, where.packed(), number}, where, number == kNoNumber ? "" : std::to_string(number));
  if (skips && std::strcmp(what, kClusterArrive) == 0) without_arrival.insert(&running_thread());
  return skips;
}

bool ask_left_out_at(const char* what, Where where, const Cta& cta, std::uint32_t offset) {
  const std::lock_guard lock(mutex);
  const Key key{what, where.packed(), offset};
  const auto& barriers = cta.gang->hopper->cta(cta).barrier_at;
  const auto barrier = barriers.find(offset);
  const bool is_known = known.contains(key) || barrier == barriers.end();
  return ask(key, where, is_known ? std::string() : array_of(*barrier->second));
}

bool ask_left_out_cluster_wait(Where where) {
  const std::lock_guard lock(mutex);
  return without_arrival.erase(&running_thread()) > 0 ||
         ask({"barrier_cluster_wait", where.packed(), kNoNumber}, where, "");
}

}  // namespace explore
}  // namespace emulator

namespace harness {

using emulator::OrderingMode;

void list_ordering_statements() {
  emulator::explore::known.clear();
  emulator::explore::listed.clear();
  emulator::ordering_mode = OrderingMode::kListing;
}

std::vector<OrderingStatement> take_ordering_statements() {
  emulator::ordering_mode = OrderingMode::kOff;
  std::vector<OrderingStatement> all;
  for (const emulator::explore::Listed& one : emulator::explore::listed) {
    all.push_back(one.statement);
    all.back().by = emulator::ranges("warp", std::vector<std::uint32_t>(one.warps.begin(), one.warps.end()));
  }
  return all;
}

void leave_out(const OrderingStatement& statement) {
  emulator::explore::known.clear();
  emulator::explore::listed.clear();
  emulator::explore::without_arrival.clear();
  emulator::explore::left_out = statement;
  emulator::ordering_mode = OrderingMode::kLeavingOut;
}

void leave_nothing_out() {
  emulator::ordering_mode = OrderingMode::kOff;
}

}  // namespace harness
