// What a ledger is made of while it is recorded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "emulator/ledger/ledger.h"

namespace emulator {

inline constexpr std::uint64_t kRecordedCtas = 32;  // the first ones of a grid

/// Times of threads, of their engines and of barriers, by number; a barrier's time is the number of its
/// completed phases.
class LedgerClock {
 public:
  std::uint32_t at(std::uint32_t number) const { return number < times_.size() ? times_[number] : 0; }
  void raise(std::uint32_t number, std::uint32_t time);
  /// Whether something was new.
  bool join(const LedgerClock& other);
  void clear() { times_.clear(); }

 private:
  std::vector<std::uint32_t> times_;
};

/// Who arrives or waits in one phase.
struct LedgerParty {
  enum What : std::uint8_t { kThreads, kCommits, kCopies } what = kThreads;
  bool other = false;   // in another CTA of the cluster than the barrier is
  bool fenced = false;  // has executed fence.proxy.async since its last arrival anywhere
  int warp = 0;
  int times = 0;  // threads, or arrivals
  int ctas = 1;
  auto operator<=>(const LedgerParty&) const = default;  // NOLINT(modernize-use-nullptr)
};
using LedgerParties = std::vector<LedgerParty>;

/// What touches bytes.
enum class LedgerVia : std::uint8_t {
  kThreads,
  kCpAsync,
  kTma,
  kStAsync,
  kResponse,
  kWgmma,
  kTensorCores,
  kStore
};

struct LedgerPhase {
  std::uint64_t number = 0;
  std::map<std::tuple<LedgerParty::What, int, int, bool>, int> arrivals;  // kind, rank, warp, fenced -> times
  std::map<int, std::set<std::uint32_t>> waiters;                         // warp -> threads
  std::uint64_t expected = 0;
  std::map<std::pair<LedgerVia, bool>, std::uint64_t> brought;  // by whom, from another CTA -> bytes
};

struct LedgerOrder {
  LedgerVia before;
  bool before_writes;
  LedgerVia after;
  bool after_writes;
  auto operator<=>(const LedgerOrder&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct LedgerRange {
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  void add(std::uint64_t value);
  void add(const LedgerRange& other);
  bool empty() const { return least > most; }
};

/// One barrier of one CTA.
struct BarrierLog {
  std::string kind;
  std::string name;
  std::set<std::uint64_t> places;  // Where::packed
  std::uint32_t offset = 0;        // of an mbarrier
  std::uint32_t number = 0;        // its time in the clocks
  std::uint64_t count = 0;
  int rank = 0;       // of its CTA in the cluster
  int cta_warps = 0;  // of its CTA
  int ranks = 1;      // CTAs of the cluster
  std::uint64_t linear = 0;
  std::uint64_t launch = 0;  // in the order of the process
  LedgerClock arriving, completed;
  std::shared_ptr<const LedgerClock> known =
      std::make_shared<LedgerClock>();  // completed, for those who wait
  std::deque<LedgerPhase> open;         // the last is the present one
  // What all phases have in common.
  std::map<LedgerParties, std::uint64_t> arrivals, waits;
  std::map<std::set<std::pair<LedgerVia, bool>>, std::uint64_t> bringers;
  LedgerRange expected;
  std::map<int, std::uint32_t> first;                     // warp -> parity
  std::map<int, std::set<std::uint32_t>> passed_at_once;  // waits before the first phase was over, by warp
  bool arrives_at_cluster = false, waits_at_cluster = false;
  std::uint64_t phases = 0;
  std::map<LedgerOrder, std::unordered_set<std::uint64_t>> orders;  // -> CTA << 32 | line of 16 bytes

  LedgerPhase& present();
  /// The phase is over.
  void close();
  void settle(const LedgerPhase& phase);
  void settle_all();
};

/// The CTAs that the ledger has seen, without what it needed to see them.
struct LedgerRecord {
  std::vector<std::unique_ptr<BarrierLog>> barriers;
  struct WarpWork {
    std::set<LedgerVia> issues;
  };
  std::map<std::pair<std::uint64_t, int>, WarpWork> work;  // launch, warp
};

/// Makes the rows of them.
Ledger make_ledger(LedgerRecord& record);

}  // namespace emulator
