#include "emulator/async/tcgen05.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/async/hopper.h"
#include "emulator/async/tensor_core.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/machine/poison.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/lanes.h"
#include "emulator/timeline/timeline.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

constexpr const char* kAllocSection =
    "PTX ISA, \"tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit\"";
constexpr const char* kLoadSection = "PTX ISA, \"tcgen05.ld\", \"tcgen05.wait\"";
constexpr const char* kStoreSection = "PTX ISA, \"tcgen05.st\"";
constexpr const char* kAccessSection = "PTX ISA, \"Tensor Memory: Access restrictions\"";
constexpr const char* kMultiplySection = "PTX ISA, \"tcgen05.mma\"";
constexpr const char* kScalesSection =
    "PTX ISA, \"tcgen05.mma\", \"Block Scaling\": \"Scale Factor A ID\", \"Scale Factor B ID\"";
constexpr const char* kCopySection = "PTX ISA, \"tcgen05.cp\"";
constexpr const char* kShiftSection = "PTX ISA, \"tcgen05.shift\"";
constexpr const char* kPipelineSection =
    "PTX ISA, \"tcgen05 Memory Consistency Model: Pipelined tcgen05 Instructions\"";
constexpr const char* kCommitSection = "PTX ISA, \"tcgen05.commit\"";
constexpr const char* kFenceSection =
    "PTX ISA, \"tcgen05.fence\"; \"tcgen05 Memory Consistency Model: Canonical synchronization patterns\"";
constexpr const char* kPatternSection =
    "PTX ISA, \"tcgen05 Memory Consistency Model: Canonical synchronization patterns\"";
constexpr const char* kIssueSection = "PTX ISA, \"TensorCore 5th Generation: Issue Granularity\"";
constexpr const char* kPairSection = "PTX ISA, \"TensorCore 5th Generation: CTA Pair\"";
constexpr const char* kOverwrittenSentence =
    "an accumulator may be overwritten only after its readers have finished: tcgen05.wait::ld, "
    "fence::before_thread_sync, a synchronisation, fence::after_thread_sync";
constexpr std::uint32_t kWholeWarp = 0xffffffffu;
constexpr std::uint32_t kUnitColumns = 32;  // of an allocation
constexpr unsigned kColumnsOfA = kSlabDepth / 2;
constexpr std::size_t kRememberedMultiplications = 1024;
// For the k-tile of a WgmmaOperand: no operand, but an mbarrier; the source of a tcgen05.cp; nothing.
constexpr int kIsCommit = -2;
constexpr int kIsCopy = -3;
constexpr int kIsShift = -4;
constexpr unsigned kShiftedColumns = 8;

constexpr OperandRules kTensorOperandRules{
    .instruction = "tcgen05.mma",
    .descriptor = "tcgen05-descriptor",
    .uninitialised = "tcgen05-operand-uninitialised",
    .race = "tcgen05-operand-race",
    .descriptor_section = "PTX ISA, \"TensorCore 5th Generation: Shared memory descriptor\"",
    .section = kMultiplySection,
    .reader = "the issuing thread"};

constexpr OperandRules kCopySourceRules{.instruction = "tcgen05.cp",
                                        .descriptor = "tcgen05-descriptor",
                                        .uninitialised = "tcgen05-operand-uninitialised",
                                        .race = "tcgen05-operand-race",
                                        .descriptor_section = kTensorOperandRules.descriptor_section,
                                        .section = kCopySection,
                                        .reader = "the issuing thread"};

struct CopyForm {
  unsigned rows, units;  // of the source; a unit is 16 bytes of a row
};
constexpr CopyForm form_of(TensorCopyShape shape) {
  switch (shape) {
    case TensorCopyShape::k128x256b:
      return {128, 2};
    case TensorCopyShape::k128x128b:
      return {128, 1};
    case TensorCopyShape::k4x256b:
      return {4, 2};
    case TensorCopyShape::k32x128bWarps0123:
      return {32, 1};
    default:
      return {64, 1};
  }
}

/// Calls change(bits, unit) for units of 16 bytes of a row.
void for_units(SlabRow& row, unsigned units, unsigned bits, void (*change)(unsigned, std::uint8_t*)) {
  for (unsigned unit = 0; unit < units; ++unit)
    change(bits, reinterpret_cast<std::uint8_t*>(row) + std::size_t{16} * unit);
}

/// The row of the source that a tcgen05.cp copies to this lane, or -1.
constexpr int row_of_lane(TensorCopyShape shape, unsigned lane) {
  switch (shape) {
    case TensorCopyShape::k4x256b:
      return lane % 32 == 0 ? static_cast<int>(lane / 32) : -1;
    case TensorCopyShape::k64x128bWarps02And13:
      return static_cast<int>(lane % 64);
    case TensorCopyShape::k64x128bWarps01And23:
      return static_cast<int>(lane / 64 * 32 + lane % 32);
    case TensorCopyShape::k32x128bWarps0123:
      return static_cast<int>(lane % 32);
    default:
      return static_cast<int>(lane);
  }
}

/// Waits at mbarriers that the thread has passed so far.
std::uint64_t waits_passed(const Thread& thread) {
  std::uint64_t count = 0;
  for (const LastWait& wait : thread.cta->gang->hopper->thread(thread).waits) count += wait.count;
  return count;
}

const char* name_of(TensorWork work) {
  return work == TensorWork::kCopy    ? "tcgen05.cp"
         : work == TensorWork::kShift ? "tcgen05.shift"
                                      : "tcgen05.mma";
}

std::string operand_use_text(const OperandUse& use) {
  const auto& operation = *static_cast<const TensorOperation*>(use.object);
  return fmt::format("m{}n{}k{} at {} by {}", operation.instruction.m, operation.instruction.n,
                     operation.kind ? gemm::ptx::scaled_depth(*operation.kind) : 16, use.where.text(),
                     name_thread(*use.issuer));
}

std::string copy_use_text(const OperandUse& use) {
  return fmt::format("{} at {} by {}", *static_cast<const char* const*>(use.object), use.where.text(),
                     name_thread(*use.issuer));
}

std::string columns_text(std::uint32_t column, std::uint32_t columns) {
  return columns == 1 ? fmt::format("column {} of tensor memory", column)
                      : fmt::format("columns {}-{} of tensor memory", column, column + columns - 1);
}

/// Lane of tensor memory where row `row` of an operand or of D is.
constexpr std::uint32_t lane_of_row(unsigned m, std::uint32_t first_lane, unsigned row) {
  return m == kTensorLanes ? row : row / 16 * 32 + row % 16 + first_lane;
}
static_assert(lane_of_row(64, 16, 17) == 49);

/// Whether rows of an m-high matrix are in this half of a quarter.
constexpr bool uses_half(unsigned m, std::uint32_t first_lane, unsigned half) {
  return m == kTensorLanes || half % 2 == first_lane / kLanesOfHalf;
}

/// The same for what `work` writes.
bool uses_half(const TensorAccumulation& work, unsigned half) {
  switch (work.work) {
    case TensorWork::kCopy:
      return work.copy.shape != TensorCopyShape::k4x256b || half % 2 == 0;
    case TensorWork::kShift:
      return half / 2 == work.lane / kWarpSize;
    default:
      return work.folded() || uses_half(work.m, work.lane, half);
  }
}

/// Whether multiplications of one thread into these are in order: one shape, and one place. The two may be
/// records of their own, for instance where the thread turned to another accumulator in between.
bool same_accumulator(const TensorAccumulation& one, const TensorAccumulation& other) {
  return one.work == TensorWork::kMultiply && other.work == TensorWork::kMultiply &&
         one.issuer == other.issuer && one.peer == other.peer && one.column == other.column &&
         one.lane == other.lane && one.m == other.m && one.n == other.n && one.kind == other.kind;
}

/// Whether the two execute in the order in which one thread has issued them. PTX ISA, "Pipelined tcgen05
/// Instructions".
bool pipelined(const TensorAccumulation& earlier, const TensorAccumulation& later) {
  if (earlier.issuer != later.issuer || earlier.peer != later.peer) return false;
  switch (later.work) {
    case TensorWork::kMultiply:
      return earlier.work != TensorWork::kMultiply || same_accumulator(earlier, later);
    case TensorWork::kShift:
      return earlier.work == TensorWork::kMultiply;
    default:
      return earlier.work == TensorWork::kShift && later.copy.shape == TensorCopyShape::k4x256b;
  }
}

/// The CTAs in whose tensor memories an accumulator lies: that of the lower rank first.
std::vector<Cta*> ctas_of(const TensorAccumulation& accumulation) {
  std::vector<Cta*> ctas{accumulation.issuer->cta};
  if (accumulation.peer) ctas.push_back(accumulation.peer);
  return ctas;
}

Stamp stamp_of(const TensorAccumulation& accumulation) {
  return agent_stamp(*accumulation.issuer->cta, accumulation.agent, accumulation.latest);
}

std::string transfer_text(const TensorTransfer& transfer) {
  return fmt::format("{} at {} by warp {} of CTA {}", transfer.is_store ? "tcgen05.st" : "tcgen05.ld",
                     transfer.where.text(), transfer.warp, text(transfer.cta->id));
}

float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

std::string alloc_wait_detail(const Thread& thread) {
  std::string taken;
  for (const TensorAllocation& allocation :
       thread.cta->gang->hopper->tcgen05->memory_of(*thread.cta).allocations)
    taken += fmt::format("{}columns {}-{} by CTA {} at {}", taken.empty() ? "" : ", ", allocation.column,
                         allocation.column + allocation.columns - 1, text(allocation.cta->id),
                         allocation.where.text());
  return "for columns in its SM's tensor memory; the columns in use are " +
         (taken.empty() ? std::string("none") : taken);
}

std::string access_line(const char* what, const Thread& thread, Where where) {
  return fmt::format("{} at {} by {}", what, where.text(), name_thread(thread));
}

std::string peer_wait_detail(const Thread& thread) {
  return fmt::format(
      "for a warp in the pair's other CTA, rank {}, which must execute the instruction together with it",
      thread.cta->rank_in_cluster ^ 1);
}

}  // namespace

Tcgen05::Tcgen05(HopperEngine& engine) : engine_(engine) {
  const Grid& grid = engine.gang.grid;
  // The CTAs of a cluster are on SMs of their own, those of a pair in any case.
  const std::size_t per_sm = grid.shape.co_resident && grid.shape.cluster.count() == 1
                                 ? static_cast<std::size_t>(std::max(1, grid.shape.ctas_per_sm))
                                 : 1;
  for (std::size_t i = 0; i < engine.gang.ctas.size(); ++i) {
    if (i % per_sm == 0) owned_.push_back(std::make_unique<TensorMemory>());
    memories_.push_back(owned_.back().get());
    threads_.emplace_back(static_cast<std::size_t>(engine.gang.ctas[i]->thread_count));
  }
  ctas_.resize(engine.gang.ctas.size());
}

Tcgen05& tcgen05(const char* what, Where where) {
  HopperEngine& engine = hopper_engine(what, where);
  if (!engine.tcgen05) engine.tcgen05 = std::make_unique<Tcgen05>(engine);
  return *engine.tcgen05;
}

void Tcgen05::fail(const char* rule, Report& report) {
  engine_.fail(rule, report);
}

// ---- Pairs
// ---------------------------------------------------------------------------------------------------

void Tcgen05::use_group(const char* what, int group, Where where) {
  if (groups_.group == 0) groups_ = {group, what, where};
  if (groups_.group == group) return;
  Report report("{} has cta_group::{} in a kernel that uses cta_group::{}", what, group, groups_.group);
  report.at(where, running_thread());
  report.line("before", "{} at {}, with cta_group::{}", groups_.what, groups_.where.text(), groups_.group);
  fail("tcgen05-cta-group",
       report.rule("all tcgen05 instructions in a kernel that have a .cta_group must have the same one",
                   "PTX ISA, \"tcgen05.mma\", \"tcgen05.alloc\", \"tcgen05.commit\""));
}

Cta& Tcgen05::other_of(const char* what, const Cta& cta, Where where) {
  const std::vector<Cta*>& cluster = engine_.cta(cta).cluster;
  const auto other = static_cast<std::size_t>(cta.rank_in_cluster) ^ 1;
  if (other < cluster.size()) return *cluster[other];
  Report report("a CTA that has no peer executes {} with cta_group::2", what);
  report.at(where, running_thread());
  report.line("cluster", "{} CTAs; this one has rank {}", cluster.size(), cta.rank_in_cluster);
  fail("tcgen05-no-peer", report.rule("two CTAs in a cluster whose ranks differ in the last bit are a pair, "
                                      "so the launch's clusters must have an even number of CTAs",
                                      kPairSection));
}

Cta& Tcgen05::peer_of(const char* what, const Cta& cta, Where where) {
  Cta& other = other_of(what, cta, where);
  if (other.exited != other.thread_count) return other;
  Report report("a CTA whose peer has ended executes {} with cta_group::2", what);
  report.at(where, running_thread());
  report.line("peer", "CTA {} (rank {})", text(other.id), other.rank_in_cluster);
  report.missing("a barrier of the cluster, at which CTA {} waits until this is over", text(other.id));
  fail("tcgen05-peer-gone",
       report.rule("while a CTA issues an operation for the pair, its peer must not have exited",
                   kIssueSection));
}

Cta* Tcgen05::peer_of_issuer(const char* what, int group, Where where) {
  use_group(what, group, where);
  if (group == 1) return nullptr;
  const Thread& thread = running_thread();
  Cta& peer = peer_of(what, *thread.cta, where);
  if (thread.cta->rank_in_cluster % 2 == 0) return &peer;
  Report report("the CTA with the odd rank executes {} with cta_group::2", what);
  report.at(where, thread);
  report.missing("a condition: the CTA with rank {} must issue for both", peer.rank_in_cluster);
  fail("tcgen05-pair-leader",
       report.rule("one thread in the pair issues; in this course it must be in the CTA with the even rank, "
                   "the leader (the PTX ISA does not say in which of the two CTAs)",
                   kIssueSection));
}

void Tcgen05::notify(Cta& cta) {
  TensorMemory& memory = this->memory(cta);
  ++memory.releases;
  for (Thread* waiting : memory.waiting) cta.gang->make_runnable(*waiting);
  memory.waiting.clear();
}

void Tcgen05::begin_step(Cta& cta, int group, PairStep step, const char* what, Where where) {
  if (group == 1) return;
  ++allocations(cta).steps[static_cast<std::size_t>(step)];
  Cta& peer = other_of(what, cta, where);
  const TensorCta& other = allocations(peer);
  const bool behind =
      other.steps[static_cast<std::size_t>(step)] < allocations(cta).steps[static_cast<std::size_t>(step)];
  if (behind) peer_of(what, cta, where);  // it must still come
  notify(peer);
}

void Tcgen05::wait_for_peer(PairStep step, const char* what, Where where) {
  Thread& thread = running_thread();
  const auto index = static_cast<std::size_t>(step);
  const Cta& peer = other_of(what, *thread.cta, where);
  const std::uint32_t number = allocations(*thread.cta).steps[index];
  // "Could block": a kernel must do with it, and without it.
  const Completion completion = engine_.gang.grid.options.completion;
  if (completion == Completion::kEarliest ||
      (completion == Completion::kRandom && engine_.gang.random.below(2) == 0))
    return;
  while (allocations(peer).steps[index] < number) {
    memory(*thread.cta).waiting.push_back(&thread);
    engine_.gang.block({.kind = WaitKind::kObject, .what = what, .where = where, .detail = peer_wait_detail});
  }
}

void Tcgen05::check_peer_ready(const char* what, const Thread& thread, const Cta& peer, std::uint32_t column,
                               Where where) {
  for (const TensorAllocation& allocation : memory(peer).allocations) {
    if (allocation.column > column || column >= allocation.column + allocation.columns) continue;
    if (allocation.ready != 0 && knows_over(thread, allocation.ready)) return;
    Report report("{} is executed while the peer's tcgen05.alloc may not have ended", what);
    report.line("where", access_line(what, thread, where));
    report.line("peer", "CTA {} (rank {}), tcgen05.alloc at {}", text(peer.id), peer.rank_in_cluster,
                allocation.where.text());
    report.missing("a barrier of the cluster after tcgen05.alloc, in both CTAs");
    fail("tcgen05-peer-not-ready",
         report.rule("an operation of the pair uses the tensor memory of both CTAs: both must have allocated "
                     "it, and the CTA that issues or deallocates must know that the other has",
                     kAllocSection));
  }
}

// ---- Allocation
// ----------------------------------------------------------------------------------------------

std::vector<std::uint32_t> Tcgen05::places(const TensorMemory& memory, std::uint32_t columns) const {
  std::vector<std::uint32_t> places;  // at multiples of the size, so that equal allocations leave no gaps
  for (std::uint32_t at = 0; at + columns <= kTensorColumns; at += columns) {
    if (std::none_of(memory.allocations.begin(), memory.allocations.end(),
                     [&](const TensorAllocation& other) {
                       return other.column < at + columns && at < other.column + other.columns;
                     }))
      places.push_back(at);
  }
  return places;
}

std::uint32_t Tcgen05::one_of(const std::vector<std::uint32_t>& places) const {
  const std::uint32_t choice = engine_.gang.random.below(static_cast<std::uint32_t>(places.size()));
  return places[course_rule_on(CourseRule::kTensorMemoryAddress) ? choice : 0];
}

bool Tcgen05::try_allocate(Cta& cta, std::uint32_t columns, Where where, std::uint32_t& column) {
  const std::vector<std::uint32_t> free = places(memory(cta), columns);
  if (free.empty()) return false;
  column = one_of(free);
  take_columns(cta, column, columns, where);
  return true;
}

bool Tcgen05::allocate_with_peer(Cta& cta, int warp, std::uint32_t columns, Where where,
                                 std::uint32_t& column) {
  std::optional<PairRequest>& mine = allocations(cta).request;
  if (mine && mine->warp != warp) return false;  // another warp's, first
  if (mine && mine->granted) {
    column = mine->column;
    mine.reset();
    return true;
  }
  Cta& peer = peer_of("tcgen05_alloc", cta, where);
  const Thread& thread = running_thread();
  // It only has to be there: an arrival at the cluster's barrier says so even if it releases nothing.
  const VectorClock& behind_relaxed = engine_.thread(thread).behind_relaxed;
  if (std::none_of(peer.threads.begin(), peer.threads.end(), [&](const Thread& other) {
        const Stamp begun = make_stamp(peer.key, other.index, 1);
        return knows_over(thread, begun) || behind_relaxed.covers(begun);
      })) {
    Report report("tcgen05_alloc with cta_group::2 is executed while the peer may not have begun");
    report.line("where", access_line("tcgen05_alloc", thread, where));
    report.line("peer", "CTA {} (rank {})", text(peer.id), peer.rank_in_cluster);
    report.missing("a barrier of the cluster before tcgen05.alloc");
    fail("tcgen05-peer-not-ready",
         report.rule("with .cta_group::2, the warp must make sure that the peer CTA has been launched",
                     kAllocSection));
  }
  std::optional<PairRequest>& theirs = allocations(peer).request;
  mine = PairRequest{.warp = warp, .columns = columns, .where = where};
  if (!theirs || theirs->granted) return false;
  if (theirs->columns != columns) {
    Report report("the CTAs of a pair allocate different numbers of columns");
    report.line("one", "{} columns at {} by CTA {}", theirs->columns, theirs->where.text(), text(peer.id));
    report.line("other", "{} columns at {} by CTA {}", columns, where.text(), text(cta.id));
    fail("tensor-memory-alloc",
         report.rule(
             "one warp in each CTA of the pair must allocate the same columns, together with the other",
             kAllocSection));
  }
  const std::vector<std::uint32_t> of_peer = places(memory(peer), columns);
  std::vector<std::uint32_t> common;
  for (const std::uint32_t place : places(memory(cta), columns)) {
    if (std::find(of_peer.begin(), of_peer.end(), place) != of_peer.end()) common.push_back(place);
  }
  if (common.empty()) return false;
  column = one_of(common);
  take_columns(cta, column, columns, where);
  take_columns(peer, column, columns, theirs->where);
  theirs->granted = true;
  theirs->column = column;
  mine.reset();
  notify(peer);
  return true;
}

void Tcgen05::take_columns(Cta& cta, std::uint32_t column, std::uint32_t columns, Where where) {
  TensorMemory& memory = this->memory(cta);
  memory.allocations.push_back({&cta, column, columns, where});
  std::sort(memory.allocations.begin(), memory.allocations.end(),
            [](const TensorAllocation& a, const TensorAllocation& b) { return a.column < b.column; });
  for (std::uint32_t i = column; i < column + columns; ++i) {
    for (unsigned half = 0; half < kTensorHalves; ++half) memory.cell(i, half) = {};
    std::fill_n(memory.words.begin() + static_cast<std::ptrdiff_t>(i) * kTensorLanes, kTensorLanes,
                std::nanf(""));
  }
  ++memory.touches;
}

void Tcgen05::alloc(int group, std::uint32_t* address, std::uint32_t columns, Where where) {
  constexpr const char* kWhat = "tcgen05_alloc";
  require_convergence(kWhat, where);
  struct Call {
    Tcgen05* self;
    int group;
    std::uint32_t* address;
    std::uint32_t columns;
    Where where;
    bool done = false;
    std::uint64_t releases = 0;
  };
  Thread& thread = running_thread();
  Call call{this, group, address, columns, where};
  use_group(kWhat, group, where);
  const auto meet = [](Rendezvous& meeting) {
    const Thread& last = running_thread();
    auto& mine = *static_cast<Call*>(meeting.arguments[static_cast<std::size_t>(last.lane())]);
    Tcgen05& self = *mine.self;
    Cta& cta = *last.cta;
    const auto report = [&](const std::string& headline) {
      Report text(headline);
      text.line("where", "{} by warp {} of CTA {}", mine.where.text(), last.warp(), emulator::text(cta.id));
      return text;
    };
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const auto& other = *static_cast<Call*>(meeting.arguments[lane]);
      if (other.columns != mine.columns || other.address != mine.address) {
        Report text = report("the lanes of a warp execute tcgen05.alloc with different operands");
        self.fail("tensor-memory-alloc",
                  text.rule("all threads in the warp must use the same value of nCols", kAllocSection));
      }
    }
    TensorCta& state = self.allocations(cta);
    if (state.relinquished) {
      Report text = report("a CTA that has given up the right to allocate executes tcgen05.alloc");
      text.line("before", "{} tcgen05.relinquish_alloc_permit", state.relinquished_where.text());
      self.fail("tensor-memory-alloc",
                text.rule("a CTA must not execute tcgen05.alloc after tcgen05.relinquish_alloc_permit",
                          kAllocSection));
    }
    if (mine.columns < kUnitColumns || mine.columns > kTensorColumns || !std::has_single_bit(mine.columns)) {
      Report text = report(fmt::format("tcgen05.alloc requests {} columns", mine.columns));
      self.fail("tensor-memory-alloc",
                text.rule("the number of columns must be a power of 2 from 32 to 512", kAllocSection));
    }
    if (state.smallest != 0 && mine.columns > state.smallest) {
      Report text = report(fmt::format("tcgen05.alloc requests {} columns after an allocation of {}",
                                       mine.columns, state.smallest));
      self.fail("tensor-memory-alloc",
                text.rule("the number of columns must not increase from one allocation of a CTA to the next",
                          kAllocSection));
    }
    std::uint32_t column = 0;
    const bool done = mine.group == 1
                          ? self.try_allocate(cta, mine.columns, mine.where, column)
                          : self.allocate_with_peer(cta, last.warp(), mine.columns, mine.where, column);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      auto& other = *static_cast<Call*>(meeting.arguments[lane]);
      other.done = done;
      other.releases = self.memory(cta).releases;
    }
    if (!done) return;
    state.smallest = mine.columns;
    check_shared(mine.address, sizeof(std::uint32_t), Access::kWrite, mine.where);
    *mine.address = column;
    // The instruction is the warp's: all its lanes are behind the store.
    const Stamp written = last.stamp();
    for (Thread* lane : meeting.lanes) lane->clock.add(written);
    for (TensorAllocation& allocation : self.memory(cta).allocations) {
      if (allocation.cta == &cta && allocation.column == column) allocation.ready = written;
    }
    if (mine.group == 2) self.notify(cta);  // another warp of the CTA may be next
    ++cta.gang->progress;
  };
  while (true) {
    warp_collective(kWhat, kWholeWarp, &call, meet, true, false, where);
    if (call.done) return;
    TensorMemory& memory = this->memory(*thread.cta);
    if (memory.releases != call.releases) continue;
    memory.waiting.push_back(&thread);
    const bool for_peer = group == 2 && !places(memory, columns).empty();
    engine_.gang.block({.kind = WaitKind::kObject,
                        .what = kWhat,
                        .where = where,
                        .detail = for_peer ? peer_wait_detail : alloc_wait_detail,
                        .rule = for_peer ? nullptr : "tensor-memory-exhausted"});
  }
}

void Tcgen05::dealloc(int group, std::uint32_t address, std::uint32_t columns, Where where) {
  constexpr const char* kWhat = "tcgen05_dealloc";
  require_convergence(kWhat, where);
  struct Call {
    Tcgen05* self;
    int group;
    std::uint32_t address, columns;
    Where where;
  };
  Call call{this, group, address, columns, where};
  use_group(kWhat, group, where);
  warp_collective(
      kWhat, kWholeWarp, &call,
      [](Rendezvous& meeting) {
        const Thread& last = running_thread();
        const auto& mine = *static_cast<Call*>(meeting.arguments[static_cast<std::size_t>(last.lane())]);
        Tcgen05& self = *mine.self;
        Cta& cta = *last.cta;
        TensorMemory& memory = self.memory(cta);
        const auto report = [&](const std::string& headline) {
          Report text(headline);
          text.line("where", "{} by warp {} of CTA {}", mine.where.text(), last.warp(),
                    emulator::text(cta.id));
          return text;
        };
        const auto found = std::find_if(
            memory.allocations.begin(), memory.allocations.end(), [&](const TensorAllocation& allocation) {
              return allocation.cta == &cta && allocation.column == mine.address &&
                     allocation.columns == mine.columns;
            });
        if (found == memory.allocations.end()) {
          Report text = report(fmt::format(
              "tcgen05.dealloc frees {} columns at {:#x}, which are not an allocation of this CTA",
              mine.columns, mine.address));
          for (const TensorAllocation& allocation : memory.allocations) {
            if (allocation.cta == &cta)
              text.line("allocated", "{} columns at {:#x}, at {}", allocation.columns, allocation.column,
                        allocation.where.text());
          }
          self.fail(
              "tensor-memory-dealloc",
              text.rule("taddr and nCols must be those of an allocation that still exists", kAllocSection));
        }
        const auto in_use = [&](std::uint32_t column, const std::string& access, const Thread& lane,
                                const Cta& of) {
          Report text = report("tcgen05.dealloc frees tensor memory that may still be in use");
          text.line("columns", columns_text(column, 1));
          text.line("access", access);
          text.line("behind", "{} is not, with its dealloc", name_thread(lane));
          const auto fail = [&] {
            self.fail("tensor-memory-dealloc",
                      text.rule("all operations on tensor memory must be complete, and known to be complete, "
                                "before it is deallocated, because its next user may be another CTA",
                                kAllocSection));
          };
          if (&of != &cta) {
            text.missing(
                "a barrier of the cluster (barrier.cluster.arrive and .wait) after the last access by each "
                "warp of CTA {} and before the dealloc by CTA {}: the pair's tensor memories are deallocated "
                "together, and a barrier within one CTA says nothing about the other",
                emulator::text(of.id), emulator::text(cta.id));
            fail();
          }
          // Of the four warps that share the column, those that are still to read it, or may be reading.
          std::vector<std::uint32_t> unread;
          std::vector<std::uint32_t> reading;
          for (std::uint32_t warp = 0; warp < kTensorHalves / 2; ++warp) {
            const TensorCell& cell = memory.cell(column, 2 * warp);
            if (!cell.written()) continue;
            if (cell.loads.empty()) unread.push_back(warp);
            for (const auto& load : cell.loads) {
              if (load->warp != static_cast<unsigned>(last.warp())) reading.push_back(load->warp);
            }
          }
          std::sort(reading.begin(), reading.end());
          reading.erase(std::unique(reading.begin(), reading.end()), reading.end());
          if (!unread.empty() && unread.size() < kTensorHalves / 2) {
            text.line("unread", "of this column {} (mod 4) has not read its lanes yet",
                      ranges("warp", unread));
          }
          if (!reading.empty())
            text.line("read", "by {}, which may not have finished either", ranges("warp", reading));
          text.missing(
              "a barrier for all warps that use the tensor memory, after their waits and before the dealloc");
          fail();
        };
        std::vector<Cta*> ctas{&cta};
        if (mine.group == 2) {
          // "There are no concurrent accesses from the peer": all that both have done is over.
          ctas.push_back(&self.other_of(kWhat, cta, mine.where));
          self.check_peer_ready(kWhat, last, *ctas[1], mine.address, mine.where);
        }
        const TensorAccumulation* seen = nullptr;
        std::vector<const TensorTransfer*> known;
        for (std::uint32_t column = found->column; column < found->column + found->columns; ++column) {
          for (unsigned half = 0; half < kTensorHalves * ctas.size(); ++half) {
            const TensorCell& cell =
                self.memory(*ctas[half / kTensorHalves]).cell(column, half % kTensorHalves);
            if (cell.accumulation && cell.accumulation.get() != seen) {
              seen = cell.accumulation.get();
              for (const Thread* lane : meeting.lanes) {
                if (!self.knows_end(*lane, *seen->issuer->cta, stamp_of(*seen)))
                  in_use(column,
                         self.name_agent(*seen->issuer->cta, seen->issuer->index, seen->latest) + " at " +
                             seen->where.text(),
                         *lane, *seen->issuer->cta);
              }
            }
            const auto check = [&](const TensorTransfer& transfer) {
              if (std::find(known.begin(), known.end(), &transfer) != known.end()) return;
              for (unsigned i = 0; i < kWarpSize; ++i) {
                const Stamp waited =
                    make_stamp(transfer.cta->key, transfer.warp * kWarpSize + i, transfer.waited[i]);
                if (transfer.waited[i] == 0 || !self.knows_end(last, *transfer.cta, waited))
                  in_use(column, transfer_text(transfer), last, *transfer.cta);
              }
              known.push_back(&transfer);
            };
            if (cell.store) check(*cell.store);
            for (const auto& load : cell.loads) check(*load);
          }
        }
        memory.allocations.erase(found);
        ++memory.touches;
        self.notify(cta);
        self.begin_step(cta, mine.group, PairStep::kDealloc, kWhat, mine.where);
        ++cta.gang->progress;
      },
      true, false, where);
  if (group == 2) wait_for_peer(PairStep::kDealloc, kWhat, where);
}

void Tcgen05::relinquish(int group, Where where) {
  constexpr const char* kWhat = "tcgen05_relinquish_alloc_permit";
  require_convergence(kWhat, where);
  struct Call {
    Tcgen05* self;
    int group;
    Where where;
  };
  Call call{this, group, where};
  use_group(kWhat, group, where);
  warp_collective(
      kWhat, kWholeWarp, &call,
      [](Rendezvous& meeting) {
        const Thread& last = running_thread();
        const auto& mine = *static_cast<Call*>(meeting.arguments[static_cast<std::size_t>(last.lane())]);
        TensorCta& state = mine.self->allocations(*last.cta);
        if (!state.relinquished) state.relinquished_where = mine.where;
        state.relinquished = true;
        mine.self->begin_step(*last.cta, mine.group, PairStep::kRelinquish, kWhat, mine.where);
      },
      true, false, where);
  if (group == 2) wait_for_peer(PairStep::kRelinquish, kWhat, where);
}

void Tcgen05::check_columns(const char* what, const Cta& cta, std::uint32_t column, unsigned columns,
                            Where where) {
  const TensorMemory& memory = this->memory(cta);
  for (const TensorAllocation& allocation : memory.allocations) {
    if (allocation.cta == &cta && allocation.column <= column &&
        column + columns <= allocation.column + allocation.columns)
      return;
  }
  Report report("{} accesses tensor memory that is not allocated to the CTA", what);
  report.at(where, running_thread());
  if (&cta != running_thread().cta)
    report.line("CTA", "{}, the peer (rank {})", text(cta.id), cta.rank_in_cluster);
  report.line("columns", columns_text(column, columns));
  bool any = false;
  for (const TensorAllocation& allocation : memory.allocations) {
    if (allocation.cta != &cta) continue;
    any = true;
    report.line("allocated", "{}, at {}", columns_text(allocation.column, allocation.columns),
                allocation.where.text());
  }
  if (!any) report.line("allocated", "nothing at this point");
  constexpr std::uint32_t kAll = 512;
  for (const TensorAllocation& allocation : memory.allocations) {
    const std::uint32_t needed = column + columns - allocation.column;
    if (allocation.cta != &cta || column < allocation.column || std::bit_ceil(needed) > kAll) continue;
    report.missing(
        "{} columns in the tcgen05.alloc at {}, which allocates {}: columns {} to {} after its first one are "
        "used here (several accumulators need separate columns)",
        std::bit_ceil(needed), allocation.where.text(), allocation.columns, column - allocation.column,
        needed - 1);
    break;
  }
  fail("tensor-memory-unallocated",
       report.rule("an access must stay inside one allocation, between tcgen05.alloc and tcgen05.dealloc",
                   kAllocSection));
}

// ---- Order
// ---------------------------------------------------------------------------------------------------

bool Tcgen05::knows(const Thread& thread, Stamp stamp) const {
  return emulator::knows(thread, stamp) || engine_.thread(thread).tensor.covers(stamp);
}

/// Whether `thread` may overwrite what an access of this stamp used, by a thread or an engine of `owner`: of
/// another CTA it is enough to know that it is over.
bool Tcgen05::knows_end(const Thread& thread, const Cta& owner, Stamp stamp) const {
  return knows(thread, stamp) || (&owner != thread.cta && knows_over(thread, stamp));
}

bool Tcgen05::after_covers(const Thread& thread, Stamp stamp) const {
  const TensorThread& me = state(thread);
  if (!me.has_after) return false;
  if (stamp_cta(stamp) == thread.cta->key &&
      (stamp_time(stamp) < me.after_base || stamp_thread(stamp) == thread.index))
    return true;
  if (me.after_clock.covers(stamp) || me.after_tensor.covers(stamp)) return true;
  return (stamp_cta(stamp) & (kAgentKey - 1)) != thread.cta->key && me.after_execution.covers(stamp);
}

/// Of the latest multiplication of the record, or -1.
int Tcgen05::k_tile_of_operation(const Cta& cta, const TensorAccumulation& accumulation) const {
  const TensorThread& issuer = threads_[cta.index_in_gang][accumulation.issuer->index];
  const std::uint32_t first = issuer.issued - static_cast<std::uint32_t>(issuer.operands.size()) + 1;
  return accumulation.latest < first ? -1 : issuer.operands[accumulation.latest - first].k_tile;
}

Tcgen05::Behind Tcgen05::behind(const Thread& thread, const TensorTransfer& transfer, unsigned lane) const {
  const std::uint32_t waited = transfer.waited[lane];
  if (waited == 0) return Behind::kNotWaited;
  const Thread& owner = transfer.cta->threads[transfer.warp * kWarpSize + lane];
  // The wait is the warp's (.sync.aligned): its own lanes are behind it.
  if (owner.cta == thread.cta && owner.warp() == thread.warp()) return Behind::kYes;
  const auto at = [&](std::uint32_t time) { return make_stamp(owner.cta->key, owner.index, time); };
  const std::uint32_t fence = first_fence(state(owner).before, waited);
  if (fence == 0 || !knows_end(thread, *owner.cta, at(fence))) {
    if (knows_end(thread, *owner.cta, at(waited))) return Behind::kNoFenceBefore;
    return knows_end(thread, *owner.cta, at(transfer.issued[lane])) ? Behind::kWaitedLate
                                                                    : Behind::kNotOrdered;
  }
  return after_covers(thread, at(fence)) ? Behind::kYes : Behind::kNoFenceAfter;
}

Tcgen05::Behind Tcgen05::behind(const Thread& thread, const TensorAccumulation& accumulation) const {
  const Stamp stamp = stamp_of(accumulation);
  if (!knows(thread, stamp)) return Behind::kNotOrdered;
  return after_covers(thread, stamp) ? Behind::kYes : Behind::kNoFenceAfter;
}

namespace {

/// A thread of the reading warp whose latest wait for a commit was let through by a phase that an earlier
/// wait of it had seen: what is missing; or "".
std::string passed_twice(const TensorTransfer& transfer) {
  const Cta& cta = *transfer.cta;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::size_t index = transfer.warp * kWarpSize + lane;
    if (index >= cta.threads.size()) break;
    const Thread& reader = cta.threads[index];
    const auto& waits = cta.gang->hopper->thread(reader).waits;
    const auto wait = std::find_if(waits.rbegin(), waits.rend(),
                                   [](const LastWait& last) { return last.barrier->commits > 0; });
    // At empty[] the first wait passes before any phase is over.
    if (wait == waits.rend() || !wait->activity.role || std::string_view(wait->activity.barrier) == "empty")
      continue;
    const std::uint64_t over = wait->phase - wait->barrier->first_phase;
    if (over == 0 || wait->count <= over) continue;
    return fmt::format(
        "a wait of warp {} for phase {} (parity {}) of {} before its tcgen05.ld: its wait at {}, for parity "
        "{}, was its wait number {} there and was satisfied by phase {}, which an earlier wait had already "
        "seen. The warp reads before this tile's multiplications have completed; the parity of its wait must "
        "change with every phase",
        transfer.warp, wait->phase, wait->phase & 1, name_mbarrier(*wait->barrier), wait->where.text(),
        wait->parity, wait->count, wait->phase - 1);
  }
  return {};
}

}  // namespace

void Tcgen05::check_behind_transfer(const char* what, const Thread& thread, const TensorTransfer& transfer,
                                    std::uint32_t column, Where where) {
  const bool store = transfer.is_store;
  const char* const wait = store ? "tcgen05.wait::st" : "tcgen05.wait::ld";
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const Behind verdict = behind(thread, transfer, lane);
    if (verdict == Behind::kYes) continue;
    const bool waits = verdict != Behind::kNotWaited && verdict != Behind::kWaitedLate;
    const bool fence = verdict == Behind::kNoFenceBefore || verdict == Behind::kNoFenceAfter;
    Report report(
        store ? fmt::format("{} accesses tensor memory that a tcgen05.st may still be writing", what)
              : fmt::format("{} overwrites tensor memory that a tcgen05.ld may still be reading", what));
    report.line("columns", columns_text(column, 1));
    report.line(store ? "one" : "read", transfer_text(transfer));
    report.line(store ? "other" : "write", access_line(what, thread, where));
    std::string missing;
    if (!fence && !store) missing = passed_twice(transfer);
    if (!missing.empty()) {
      report.missing(missing);
      fail("tensor-memory-overwritten", report.rule(kOverwrittenSentence, kPatternSection));
    }
    add_wait_notes(report, thread);
    if (verdict == Behind::kNotOrdered && !store)
      missing = explain_handed_back(report, thread, transfer, column);
    if (missing.empty()) missing = "a barrier (or an mbarrier on which its threads arrive) between the two";
    if (verdict == Behind::kNotWaited)
      missing = fmt::format("{} by warp {}, and a synchronisation after it", wait, transfer.warp);
    if (verdict == Behind::kWaitedLate)
      missing =
          fmt::format("{} by warp {} before it synchronises with the other warp; it waited only after that",
                      wait, transfer.warp);
    if (verdict == Behind::kNoFenceBefore)
      missing = fmt::format("tcgen05.fence::before_thread_sync by warp {}, after {} and before the barrier",
                            transfer.warp, wait);
    if (verdict == Behind::kNoFenceAfter)
      missing = fmt::format("tcgen05.fence::after_thread_sync by the thread that {}, after the barrier",
                            store ? "comes later" : "writes");
    report.missing(missing);
    report.rule(store ? "a tcgen05.st is complete after tcgen05.wait::st; another warp also needs "
                        "fence::before_thread_sync, a synchronisation, and fence::after_thread_sync"
                      : kOverwrittenSentence,
                fence ? kFenceSection : kPatternSection);
    if (fence) fail("tcgen05-fence", report);
    if (!store) fail("tensor-memory-overwritten", report);
    fail(waits ? "tensor-memory-race" : "tcgen05-st-not-waited", report);
  }
}

void Tcgen05::check_behind_accumulation(const char* what, const Thread& thread,
                                        const TensorAccumulation& accumulation, std::uint32_t column,
                                        bool reads, Where where) {
  Behind verdict = behind(thread, accumulation);
  if (verdict == Behind::kYes) return;
  const Cta& cta = *accumulation.issuer->cta;
  const bool multiplies = accumulation.work == TensorWork::kMultiply;
  const int k_tile = multiplies ? k_tile_of_operation(cta, accumulation) : -1;
  // What another lane has learned may have come to this one behind its fence.
  Report early("");
  EarlyPass pass = EarlyPass::kNone;
  if (reads && multiplies)
    pass = explain_earlier_commit(early, thread, accumulation, k_tile, verdict == Behind::kNoFenceAfter);
  if (pass != EarlyPass::kNone) verdict = Behind::kNotOrdered;
  const char* const work = name_of(accumulation.work);
  Report report(
      verdict == Behind::kNoFenceAfter
          ? fmt::format("{} accesses {} without a fence after the wait for it", what,
                        multiplies ? "an accumulator" : fmt::format("what {} has written", work))
      : !multiplies ? fmt::format("{} accesses tensor memory that {} may still be writing", what, work)
      : reads
          ? fmt::format("{} accesses an accumulator that tcgen05.mma may still be writing", what)
          : fmt::format("{} writes to an accumulator that another tcgen05.mma may still be writing", what));
  report.line("columns", columns_text(column, 1));
  report.line("one", "{} at {}", name_agent(cta, accumulation.issuer->index, accumulation.latest),
              accumulation.where.text());
  report.line("other", access_line(what, thread, where));
  if (verdict == Behind::kNoFenceAfter) {
    const TensorThread& me = state(thread);
    const bool waited_since = me.waits_before != waits_passed(thread);
    report.line("fence", !me.has_after  ? std::string("it has executed none")
                         : waited_since ? fmt::format("its latest fence, at {}, precedes the wait",
                                                      me.after_where.text())
                                        : fmt::format("its latest fence, at {}, precedes the barrier (or "
                                                      "__syncwarp) that told the thread of this",
                                                      me.after_where.text()));
    report.missing(waited_since || !me.has_after ? "tcgen05.fence::after_thread_sync after the wait"
                                                 : "tcgen05.fence::after_thread_sync after that barrier");
    fail("tcgen05-fence", report.rule("fence::after_thread_sync orders later asynchronous tcgen05 "
                                      "instructions after what the thread has waited for",
                                      kFenceSection));
  }
  std::string missing = missing_commit(cta, accumulation.issuer->index, accumulation.latest);
  if (pass == EarlyPass::kNone && thread.execution.covers(stamp_of(accumulation))) {
    report.missing(
        "acquire at cluster scope in the wait for the commit, which another CTA executed: "
        "mbarrier_wait_parity_cluster");
    report.rule("a synchronisation between two CTAs needs the scope .cluster", kPatternSection);
    fail(multiplies ? "tcgen05-mma-not-waited" : "tcgen05-cp-not-waited",
         report.course_rule(CourseRule::kPairClusterScope));
  }
  if (pass == EarlyPass::kNone) {
    report.missing(missing);
  } else {
    explain_earlier_commit(report, thread, accumulation, k_tile, false);
  }
  add_wait_notes(report, thread);
  if (pass == EarlyPass::kOvertaken)
    fail("tensor-memory-overwritten", report.rule(kOverwrittenSentence, kPatternSection));
  // A commit that another thread executes says nothing of these.
  const bool by_another =
      pass == EarlyPass::kOtherThread || missing.find("another thread") != std::string::npos;
  fail(
      by_another            ? "tcgen05-commit-thread"
      : reads && multiplies ? "tcgen05-mma-not-waited"
      : reads               ? "tcgen05-cp-not-waited"
                            : "tensor-memory-race",
      report.rule(
          by_another ? "tcgen05.commit tracks the asynchronous tcgen05 instructions that the "
                       "executing thread has issued"
          : reads
              ? fmt::format(
                    "the result of {} is complete when a wait has seen the arrival of a later tcgen05.commit",
                    work)
          : multiplies ? "multiplications are executed in order only when one thread issues them, with one "
                         "shape, into one accumulator"
                       : "only some pairs of instructions from one thread are executed in order: tcgen05.cp "
                         "and .shift before .mma, .mma before .shift, .shift before .cp.4x256b",
          by_another                                            ? kCommitSection
          : accumulation.work == TensorWork::kMultiply || reads ? kPatternSection
                                                                : kPipelineSection));
}

void Tcgen05::check_behind_operand(const char* what, const Thread& thread, const TensorCell& cell,
                                   std::uint32_t column, Where where) {
  if (cell.operand == 0 || (knows(thread, cell.operand) && after_covers(thread, cell.operand))) return;
  const bool fence = knows(thread, cell.operand);
  Report report("{} overwrites {} that tcgen05.mma may still be reading", what,
                cell.holds_scales ? "scales" : "an operand");
  report.line("columns", columns_text(column, 1));
  report.line("read", "{} at {}", emulator::name_agent(engine_.gang, cell.operand),
              cell.operand_where.text());
  report.line("write", access_line(what, thread, where));
  report.missing(fence ? "tcgen05.fence::after_thread_sync after the wait for the multiplication"
                       : "a wait for the arrival of a tcgen05.commit after the multiplication");
  fail(
      fence ? "tcgen05-fence" : "tensor-memory-overwritten",
      cell.holds_scales
          ? report.rule("scales in tensor memory belong to tcgen05.mma until a wait has seen its commit: a "
                        "multiplication is executed after the tcgen05.cp that its thread has issued before, "
                        "but nothing orders a tcgen05.cp after the multiplications before it",
                        kPipelineSection)
          : report.rule("an operand in tensor memory belongs to tcgen05.mma until a wait has seen its commit",
                        kPatternSection));
}

namespace {

/// What has written the cells nearest to the one that is read, and what it has left out.
void explain_unwritten_load(Report& report, TensorMemory& memory, const Thread& thread,
                            std::uint32_t column) {
  const unsigned quarter = static_cast<unsigned>(thread.warp()) % 4;
  const TensorAllocation* own = nullptr;
  for (const TensorAllocation& allocation : memory.allocations) {
    if (column - allocation.column < allocation.columns) own = &allocation;
  }
  const std::uint32_t begin = own != nullptr ? own->column : 0;
  const TensorAccumulation* nearest = nullptr;
  for (std::uint32_t at = column + 1; at-- > begin && nearest == nullptr;) {
    for (unsigned half = 0; half < kTensorHalves && nearest == nullptr; ++half) {
      const auto& accumulation = memory.cell(at, half).accumulation;
      if (accumulation && accumulation->work == TensorWork::kMultiply) nearest = accumulation.get();
    }
  }
  if (nearest == nullptr) return;
  const TensorAccumulation& one = *nearest;
  const bool pair = one.peer != nullptr;
  const std::string lanes = one.folded() || one.m == kTensorLanes
                                ? "lanes 0-127"
                                : fmt::format("16 out of every 32 lanes, from lane {} on", one.lane);
  const unsigned m = pair ? 2 * one.m : one.m;
  report.line("written", "columns {}-{}, {}, by {} at {}: M = {}{}, N = {}", one.column,
              one.column + one.columns() - 1, lanes, name_thread(thread.cta->gang->grid, one.issuer->stamp()),
              one.where.text(), m,
              pair ? fmt::format(" for a pair, {} rows in each of its CTAs", one.m) : std::string(), one.n);
  if (one.folded() && column - one.column < one.n) {
    report.missing(
        "M = 256 in the instruction descriptor, if each CTA of the pair has 128 rows: with M = 128, each has "
        "64, and its part of D is folded into {} columns of all lanes (with D's columns from {} on in lanes "
        "64-127). With 128 rows, D takes {} columns",
        one.columns(), one.n / 2, one.n);
  } else if (column - one.column < one.columns()) {
    report.missing(
        "M = 128 in the instruction descriptor, if the tile has 128 rows: with M = 64, the multiplication "
        "writes 16 out of every 32 lanes, but warp {} reads all of lanes {}-{}",
        thread.warp(), quarter * kWarpSize, quarter * kWarpSize + kWarpSize - 1);
  } else {
    report.missing(
        "a multiplication that writes column {}: this one has N = {} and ends at column {}. Either N in the "
        "instruction descriptor is too small, or the load's address is that of another accumulator",
        column, one.n, one.column + one.columns() - 1);
  }
}

}  // namespace

void Tcgen05::check_written(const char* what, const Thread& thread, const TensorCell& cell,
                            std::uint32_t column, Where where) {
  if (cell.written()) return;
  Report report("{} accesses tensor memory that was never written", what);
  report.line("columns", columns_text(column, 1));
  report.line("where", access_line(what, thread, where));
  if (std::string_view(what).starts_with("tcgen05_ld")) {
    explain_unwritten_load(report, memory(*thread.cta), thread, column);
    fail("tensor-memory-uninitialised",
         report.rule("tcgen05.ld may read only what a multiplication, tcgen05.cp or tcgen05.st has written: "
                     "tcgen05.alloc sets nothing to zero",
                     "PTX ISA, \"tcgen05.ld\"; \"Data Path Layout Organization\""));
  }
  fail("tensor-memory-uninitialised",
       report.rule("a tile's first multiplication must overwrite its accumulator (enable-input-d is false), "
                   "because tcgen05.alloc sets nothing to zero",
                   kMultiplySection));
}

void Tcgen05::fence_before(Where where) {
  constexpr const char* kWhat = "tcgen05_fence_before_thread_sync";
  if (is_left_out(kWhat, where)) return;
  Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  record_fence(state(thread).before, thread);
}

void Tcgen05::fence_after(Where where) {
  constexpr const char* kWhat = "tcgen05_fence_after_thread_sync";
  if (is_left_out(kWhat, where)) return;
  const Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  TensorThread& me = state(thread);
  me.has_after = true;
  me.after_where = where;
  me.waits_before = waits_passed(thread);
  me.after_base = thread.base;
  me.after_clock = thread.clock;
  me.after_execution = thread.execution;
  me.after_tensor = engine_.thread(thread).tensor;
}

// ---- Loads and stores
// ----------------------------------------------------------------------------------------

std::uint32_t Tcgen05::check_lanes(const char* what, std::uint32_t address, Where where) {
  const Thread& thread = running_thread();
  const std::uint32_t quarter = static_cast<std::uint32_t>(thread.warp()) % 4;
  const std::uint32_t lane = address >> 16;
  if (lane == quarter * kWarpSize || !course_rule_on(CourseRule::kTensorMemoryAddress))
    return address & 0xffffu;
  Report report("{} uses lanes of tensor memory that this warp cannot access", what);
  report.line("where", "{} by warp {} of CTA {}", where.text(), thread.warp(), text(thread.cta->id));
  report.line("address", "{:#x}: lane {}, column {}", address, lane, address & 0xffffu);
  report.line("its lanes", "{}-{}", quarter * kWarpSize, quarter * kWarpSize + kWarpSize - 1);
  report.line("allowed",
              "--allow tensor-memory-address takes the lane from the warp, as GPUs are said to do");
  fail("tensor-memory-lanes", report.rule("warp w can access the 32 lanes from 32 (w % 4) on; the address of "
                                          "a .32x32b access is that of the first lane",
                                          kAccessSection));
}

void Tcgen05::touch_cells(const char* what, const std::array<Thread*, kWarpSize>& lanes,
                          const std::shared_ptr<TensorTransfer>& transfer, std::uint32_t column,
                          unsigned columns) {
  TensorMemory& memory = this->memory(*transfer->cta);
  const TensorAccumulation* seen = nullptr;
  std::vector<const TensorTransfer*> known;
  const auto check = [&](const TensorTransfer& other, std::uint32_t at) {
    if (std::find(known.begin(), known.end(), &other) != known.end()) return;
    known.push_back(&other);
    for (const Thread* lane : lanes) check_behind_transfer(what, *lane, other, at, transfer->where);
  };
  const unsigned quarter = transfer->warp % 4;
  for (std::uint32_t i = column; i < column + columns; ++i) {
    for (unsigned half = 2 * quarter; half < 2 * quarter + 2; ++half) {
      TensorCell& cell = memory.cell(i, half);
      if (!transfer->is_store) check_written(what, *lanes[0], cell, i, transfer->where);
      if (cell.accumulation && cell.accumulation.get() != seen) {
        seen = cell.accumulation.get();
        for (const Thread* lane : lanes)
          check_behind_accumulation(what, *lane, *seen, i, true, transfer->where);
      }
      if (cell.store) check(*cell.store, i);
      if (!transfer->is_store) {
        cell.loads.push_back(transfer);
        continue;
      }
      for (const auto& load : cell.loads) check(*load, i);
      for (const Thread* lane : lanes) check_behind_operand(what, *lane, cell, i, transfer->where);
      cell = {};
      cell.store = transfer;
    }
  }
  ++memory.touches;
}

/// What a lane of a warp brings to a tcgen05.ld or a tcgen05.st.
struct Tcgen05::TransferCall {
  Tcgen05* self;
  const char* what;
  float* loaded;                // its registers of a load
  const std::uint32_t* stored;  // or of a store
  unsigned columns;
  std::uint32_t address;
  Where where;
};

void Tcgen05::transfer(TransferCall& call) {
  require_convergence(call.what, call.where);
  warp_collective(
      call.what, kWholeWarp, &call,
      [](Rendezvous& meeting) {
        const Thread& last = running_thread();
        const auto& mine =
            *static_cast<TransferCall*>(meeting.arguments[static_cast<std::size_t>(last.lane())]);
        Tcgen05& self = *mine.self;
        const bool is_store = mine.stored != nullptr;
        for (const void* argument : meeting.arguments) {
          const auto& other = *static_cast<const TransferCall*>(argument);
          if (other.address == mine.address) continue;
          Report report("the lanes of a warp execute {} with different addresses",
                        is_store ? "tcgen05.st" : "tcgen05.ld");
          report.line("where", access_line(mine.what, last, mine.where));
          report.line("addresses", "{:#x} and {:#x}", mine.address, other.address);
          self.fail(
              "tensor-memory-lanes",
              report.rule("all threads in the warp must specify the same taddr, the base of the whole access",
                          is_store ? kStoreSection : kLoadSection));
        }
        const std::uint32_t column = self.check_lanes(mine.what, mine.address, mine.where);
        self.check_columns(mine.what, *last.cta, column, mine.columns, mine.where);
        auto transfer = std::make_shared<TensorTransfer>();
        transfer->cta = last.cta;
        transfer->warp = static_cast<unsigned>(last.warp());
        transfer->is_store = is_store;
        transfer->where = mine.where;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) transfer->issued[lane] = meeting.lanes[lane]->time;
        if (const LastWait* const wait = latest_commit_wait(*meeting.lanes[0]))
          transfer->waited_for = {wait->barrier, wait->phase, wait->where};
        self.touch_cells(mine.what, meeting.lanes, transfer, column, mine.columns);
        const bool late = course_rule_on(CourseRule::kTensorLoadWait);
        TensorMemory& memory = self.memory(*last.cta);
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
          const auto& theirs = *static_cast<TransferCall*>(meeting.arguments[lane]);
          TensorThread& thread = self.state(*meeting.lanes[lane]);
          float* const words = &memory.words[column * kTensorLanes + transfer->warp % 4 * kWarpSize + lane];
          if (is_store) {
            for (unsigned i = 0; i < mine.columns; ++i)
              std::memcpy(words + std::size_t{i} * kTensorLanes, theirs.stored + i, sizeof(std::uint32_t));
            thread.stores.push_back(transfer);
            continue;
          }
          PendingTensorLoad pending{
              late ? theirs.loaded : nullptr, mine.columns, poison_number(thread.transfers++), {}, transfer};
          for (unsigned i = 0; i < mine.columns; ++i)
            pending.values[i] = words[std::size_t{i} * kTensorLanes];
          if (late) {
            std::fill_n(reinterpret_cast<std::uint32_t*>(theirs.loaded), mine.columns, pending.poison);
          } else {
            std::copy_n(pending.values.begin(), mine.columns, theirs.loaded);
          }
          thread.loads.push_back(std::move(pending));
        }
      },
      true, false, call.where);
}

void Tcgen05::load(const char* what, float* registers, unsigned columns, std::uint32_t address, Where where) {
  TransferCall call{this, what, registers, nullptr, columns, address, where};
  transfer(call);
  if (course_rule_on(CourseRule::kTensorLoadWait)) {
    running_thread().may_hold_poison = true;
    trap_poison();
  }
  if (timeline_on()) log_together(OperationKind::kTensorLoad, 0, 0, columns * 4, where);
}

void Tcgen05::store(const char* what, const std::uint32_t* registers, unsigned columns, std::uint32_t address,
                    Where where) {
  TransferCall call{this, what, nullptr, registers, columns, address, where};
  transfer(call);
  if (timeline_on()) log_together(OperationKind::kTensorLoad, 0, 0, columns * 4, where);
}

void Tcgen05::wait(bool stores, Where where) {
  const char* const what = stores ? "tcgen05_wait_st" : "tcgen05_wait_ld";
  if (is_left_out(what, where)) return;
  require_convergence(what, where);
  struct Call {
    Tcgen05* self;
    bool stores;
    Where where;
  };
  Call call{this, stores, where};
  warp_collective(
      what, kWholeWarp, &call,
      [](Rendezvous& meeting) {
        const Thread& last = running_thread();
        const auto& mine = *static_cast<Call*>(meeting.arguments[static_cast<std::size_t>(last.lane())]);
        for (Thread* lane : meeting.lanes) {
          TensorThread& thread = mine.self->state(*lane);
          const auto index = static_cast<std::size_t>(lane->lane());
          if (mine.stores) {
            for (const auto& store : thread.stores) store->waited[index] = lane->time;
            thread.stores.clear();
            continue;
          }
          for (PendingTensorLoad& load : thread.loads) {
            load.transfer->waited[index] = lane->time;
            if (load.registers == nullptr) continue;
            for (unsigned i = 0; i < load.count; ++i) {
              const auto bits = std::bit_cast<std::uint32_t>(load.registers[i]);
              if (bits == load.poison) continue;
              Report report("registers were written while a tcgen05.ld was loading them");
              report.line("load", transfer_text(*load.transfer));
              report.line("noticed", "{} by {}", mine.where.text(), name_thread(*lane));
              report.line("register", "{} of {}; it holds {} now", i, load.count, load.registers[i]);
              mine.self->fail(
                  "tcgen05-registers-written",
                  report.rule("from tcgen05.ld to tcgen05.wait::ld, the registers belong to the load",
                              kLoadSection));
            }
            std::copy_n(load.values.begin(), load.count, load.registers);
          }
          thread.loads.clear();
        }
      },
      true, false, where);
  if (timeline_on()) log_together(OperationKind::kTensorWait, 0, 0, 0, where);
}

bool Tcgen05::explain_poison(Report& report, const Thread& thread, std::uint32_t value) const {
  for (const PendingTensorLoad& load : state(thread).loads) {
    if (load.registers == nullptr || load.poison != (value & ~kQuietBit)) continue;
    report.line("load", transfer_text(*load.transfer));
    report.missing("tcgen05.wait::ld between the load and this use");
    report.rule("the registers of tcgen05.ld hold the loaded values only after tcgen05.wait::ld",
                kLoadSection);
    report.course_rule(CourseRule::kTensorLoadWait);
    return true;
  }
  return false;
}

// ---- Multiplications
// -----------------------------------------------------------------------------------------

void Tcgen05::take_accumulator(const char* what, Thread& thread, TensorOperation& operation,
                               std::uint32_t d) {
  TensorThread& me = state(thread);
  const unsigned m = operation.instruction.m / (operation.peer ? 2 : 1);
  const unsigned n = operation.instruction.n;
  const std::uint32_t column = d & 0xffffu;
  const std::uint32_t lane = d >> 16;
  const Where where = operation.where;
  if (lane != 0 && !(m == 64 && !operation.peer && lane == kLanesOfHalf)) {
    Report report("{} has an accumulator that starts at lane {}", what, lane);
    report.line("where", access_line(what, thread, where));
    fail("tensor-memory-lanes",
         report.rule("an accumulator must start at lane 0, or, with M = 64 for one CTA, at lane 0 or 16",
                     "PTX ISA, \"Data Path Layout Organization\""));
  }
  auto accumulation = std::make_shared<TensorAccumulation>();
  accumulation->issuer = &thread;
  accumulation->peer = operation.peer;
  accumulation->m = m;
  accumulation->n = n;
  accumulation->kind = operation.kind;
  accumulation->where = where;
  const std::vector<Cta*> ctas = ctas_of(*accumulation);
  for (const Cta* cta : ctas) check_columns(what, *cta, column, accumulation->columns(), where);
  if (operation.peer) check_peer_ready(what, thread, *operation.peer, column, where);
  const auto touches = [&] {
    std::uint64_t sum = 0;
    for (const Cta* cta : ctas) sum += memory(*cta).touches;
    return sum;
  };
  accumulation->agent = me.agent;
  accumulation->column = column;
  accumulation->lane = lane;
  if (me.latest && same_accumulator(*me.latest, *accumulation) && me.latest->touches == touches()) {
    operation.accumulation = me.latest;
  } else {
    take_cells(what, thread, accumulation, operation.accumulate);
    operation.accumulation = std::move(accumulation);
    ++memory(*thread.cta).touches;
  }
  operation.accumulation->latest = operation.number;
  operation.accumulation->where = where;
  operation.accumulation->touches = touches();
  me.latest = operation.accumulation;
}

void Tcgen05::take_cells(const char* what, const Thread& thread,
                         const std::shared_ptr<TensorAccumulation>& work, bool reads) {
  const Where where = work->where;
  const TensorAccumulation* seen = nullptr;
  std::vector<const TensorTransfer*> known;
  const auto is_new = [&](const TensorTransfer* one) {
    if (std::find(known.begin(), known.end(), one) != known.end()) return false;
    known.push_back(one);
    return true;
  };
  const auto in_range = [&](auto visit) {
    for (const Cta* cta : ctas_of(*work)) {
      for (std::uint32_t i = work->column; i < work->column + work->columns(); ++i) {
        for (unsigned half = 0; half < kTensorHalves; ++half) {
          if (uses_half(*work, half)) visit(memory(*cta).cell(i, half), i);
        }
      }
    }
  };
  in_range([&](const TensorCell& cell, std::uint32_t i) {
    if (reads) check_written(what, thread, cell, i, where);
    // A shift is behind the thread's own multiplication that reads the cell, and behind what that one is
    // behind.
    const bool own = cell.operand != 0 && state(thread).has_agent &&
                     cell.operand >> 32 == agent_stamp(*thread.cta, state(thread).agent, 1) >> 32;
    const bool behind_reader = work->work == TensorWork::kShift && own;
    // A copy over what a multiplication reads is behind neither that one nor the copy that brought it.
    if (work->work == TensorWork::kCopy) check_behind_operand(what, thread, cell, i, where);
    if (cell.accumulation && cell.accumulation.get() != seen) {
      seen = cell.accumulation.get();
      if (!pipelined(*seen, *work) && !(behind_reader && seen->issuer == work->issuer))
        check_behind_accumulation(what, thread, *seen, i, false, where);
    }
    if (cell.store && is_new(cell.store.get())) check_behind_transfer(what, thread, *cell.store, i, where);
    for (const auto& load : cell.loads) {
      if (is_new(load.get())) check_behind_transfer(what, thread, *load, i, where);
    }
    if (!behind_reader) check_behind_operand(what, thread, cell, i, where);
  });
  in_range([&](TensorCell& cell, std::uint32_t) {
    cell = {};
    cell.accumulation = work;
  });
}

void Tcgen05::read_a_from_tensor_memory(const char* what, Thread& thread, TensorOperation& operation) {
  const std::uint32_t column = operation.a_address & 0xffffu;
  const std::uint32_t lane = operation.a_address >> 16;
  const Where where = operation.where;
  if (lane != operation.accumulation->lane) {
    Report report("{} has A at lane {} and D at lane {}", what, lane, operation.accumulation->lane);
    report.line("where", access_line(what, thread, where));
    fail("tensor-memory-lanes", report.rule("A and D must have the same lane alignment",
                                            "PTX ISA, \"Data Path Layout Organization\""));
  }
  check_columns(what, *thread.cta, column, kColumnsOfA, where);
  read_cells(what, thread, *thread.cta, operation, column, kColumnsOfA, false);
}

void Tcgen05::read_scales(const char* what, Thread& thread, const TensorOperation& operation) {
  for (const auto& [name, address, rows] : {std::tuple{"A", operation.scales.a, operation.accumulation->m},
                                            std::tuple{"B", operation.scales.b, operation.scaled.n}}) {
    if (address >> 16 != 0) {
      Report report("{} has the scales of {} at lane {}", what, name, address >> 16);
      report.line("where", access_line(what, thread, operation.where));
      fail("tensor-memory-lanes",
           report.rule("scales are in all quarters of the lanes, so their address must be that of lane 0",
                       kScalesSection));
    }
    const std::uint32_t columns = gemm::ptx::scale_columns(rows);
    for (const Cta* cta : ctas_of(*operation.accumulation)) {
      check_columns(what, *cta, address, columns, operation.where);
      read_cells(what, thread, *cta, operation, address, columns, true);
    }
  }
}

void Tcgen05::read_cells(const char* what, Thread& thread, const Cta& cta, const TensorOperation& operation,
                         std::uint32_t column, unsigned columns, bool scales) {
  TensorMemory& memory = this->memory(cta);
  const Where where = operation.where;
  const Stamp stamp = agent_stamp(*thread.cta, state(thread).agent, operation.number);
  const TensorTransfer* seen = nullptr;
  for (std::uint32_t i = column; i < column + columns; ++i) {
    for (unsigned half = 0; half < kTensorHalves; ++half) {
      if (!scales && !uses_half(operation.instruction.m, operation.accumulation->lane, half)) continue;
      TensorCell& cell = memory.cell(i, half);
      if (scales && !cell.written()) fail_unwritten_scales(what, thread, i, half, where);
      check_written(what, thread, cell, i, where);
      if (cell.accumulation && (cell.accumulation->work == TensorWork::kMultiply ||
                                !pipelined(*cell.accumulation, *operation.accumulation)))
        check_behind_accumulation(what, thread, *cell.accumulation, i, true, where);
      if (cell.store && cell.store.get() != seen) {
        seen = cell.store.get();
        check_behind_transfer(what, thread, *seen, i, where);
      }
      cell.operand = stamp;
      cell.operand_where = where;
      cell.holds_scales = scales;
    }
  }
}

void Tcgen05::fail_unwritten_scales(const char* what, const Thread& thread, std::uint32_t column,
                                    unsigned half, Where where) {
  Report report("{} reads scales that were never written", what);
  report.line("column", "{} of tensor memory, lanes {}-{}", column, half * kLanesOfHalf,
              half * kLanesOfHalf + kLanesOfHalf - 1);
  report.line("where", access_line(what, thread, where));
  report.missing("a tcgen05.cp.32x128b.warpx4 for these columns, before the multiplication");
  fail(
      "tensor-memory-uninitialised",
      report.rule("the scales of 32 rows are one column of 32 lanes, and all four quarters of the lanes must "
                  "hold a copy of it",
                  kScalesSection));
}

void Tcgen05::read_operands(const TensorOperation& operation, const Thread& thread, Cta& cta, Stamp stamp,
                            std::uint64_t a, std::uint64_t b) {
  const gemm::ptx::InstructionDescriptor& shape = operation.instruction;
  const unsigned ctas = operation.peer ? 2 : 1;
  const OperandUse use{&kTensorOperandRules, &cta, &thread, operation.where, &operation, operand_use_text};
  std::vector<OperandWriter> writers;
  if (!operation.a_in_tensor_memory) read_operand(use, 'A', a, operation.a, shape.m / ctas, stamp, writers);
  read_operand(use, 'B', b, operation.b, shape.n / ctas, stamp, writers);
  look_for_fences(use, writers);
  for (const OperandWriter& writer : writers) {
    const bool is_a = writer.operand == 'A';
    check_operand_order(use, writer, is_a ? a : b, is_a ? operation.a : operation.b);
    check_fence_behind_operand(use, thread, writer, "tcgen05.mma");
  }
}

void Tcgen05::check_fence_behind_operand(const OperandUse& use, const Thread& thread,
                                         const OperandWriter& writer, const char* instruction) {
  if (!course_rule_on(CourseRule::kTensorOperandFence) || after_covers(thread, writer.stamp)) return;
  const TensorThread& me = state(thread);
  Report report("{} reads shared memory without a fence after the wait for it", instruction);
  report.line(instruction, use.describe(use));
  report.line("bytes", name_shared_offset(*use.cta, writer.offset));
  report.line("written", "{} by {}", Where::from_packed(writer.where & ~kAtomicBit).text(),
              is_agent(writer.stamp) ? emulator::name_agent(engine_.gang, writer.stamp)
                                     : name_thread(engine_.gang.grid, writer.stamp));
  report.line("fence", me.has_after
                           ? fmt::format("its latest fence, at {}, precedes the wait", me.after_where.text())
                           : std::string("the thread has executed none"));
  report.missing("tcgen05.fence::after_thread_sync between the wait and the {}",
                 instruction == std::string_view("tcgen05.cp") ? "copy" : "multiplication");
  report.rule(
      "fence::after_thread_sync orders later asynchronous tcgen05 instructions after what the thread has "
      "waited for",
      kFenceSection);
  report.course_rule(CourseRule::kTensorOperandFence);
  fail("tcgen05-fence", report);
}

void Tcgen05::check_descriptor(const char* what, const char* name, std::uint64_t bits, Where where) {
  if (const char* fault = gemm::ptx::tcgen05_descriptor_fault(bits)) {
    Report report("{} has bits that are not a shared memory descriptor: {}", what, fault);
    report.line("where", access_line(what, running_thread(), where)).line(name, "{:#018x}", bits);
    fail("tcgen05-descriptor", report.rule("bits 46-48 must be 0b001, bits 53-60 must be 0, and bits 61-63 "
                                           "must be a swizzle; wgmma's format is a different one",
                                           kTensorOperandRules.descriptor_section));
  }
  if (bits >> 61 == 1 || (bits >> 52 & 1) != 0) {
    throw harness::Error(
        fmt::format("the emulator does not support tcgen05 operands with 32-byte swizzle units or an "
                    "absolute leading dimension; {} has one",
                    where.text()));
  }
}

void Tcgen05::multiply(const char* what, int group, std::uint32_t d, std::uint64_t a, bool a_in_tensor_memory,
                       std::uint64_t b, std::uint32_t instruction, bool accumulate, Where where) {
  const Thread& thread = this_thread(what, where);
  Cta* const peer = peer_of_issuer(what, group, where);
  const auto refuse = [&](const char* rule, const std::string& headline, const char* label,
                          const std::string& bits, const char* sentence, const char* section) {
    Report report(headline);
    report.line("where", access_line(what, thread, where)).line(label, bits);
    fail(rule, report.rule(sentence, section));
  };
  if (const char* fault = gemm::ptx::instruction_descriptor_fault(instruction, group)) {
    const gemm::ptx::InstructionDescriptor read = gemm::ptx::decode_instruction(instruction);
    // The same with M = 64 has no fault: N is CUTLASS's rule.
    const gemm::ptx::InstructionDescriptor half{.m = 64, .n = read.n, .d = read.d, .a = read.a, .b = read.b};
    const bool is_stricter = group == 1 && read.m == 128 && instruction == encode(read) &&
                             gemm::ptx::instruction_descriptor_fault(encode(half)) == nullptr;
    refuse("tcgen05-instruction-descriptor",
           fmt::format("{} has bits that are not an instruction descriptor: {}", what, fault), "descriptor",
           fmt::format("{:#010x}: M {}, N {}", instruction, read.m, read.n),
           is_stricter ? "with M = 128 for one CTA, N must be a multiple of 16, as in CUTLASS; the PTX ISA's "
                         "table has steps of 8"
                       : "the descriptor must give a shape and types that .kind::f16 has, and its reserved "
                         "bits must be 0",
           "PTX ISA, \"TensorCore 5th Generation: Instruction descriptor\"; \"Matrix Shape\"");
  }
  TensorOperation operation;
  operation.where = where;
  operation.instruction = gemm::ptx::decode_instruction(instruction);
  operation.accumulate = accumulate;
  operation.peer = peer;
  operation.a_in_tensor_memory = a_in_tensor_memory;
  const gemm::ptx::InstructionDescriptor& shape = operation.instruction;
  if (shape.transpose_a || shape.transpose_b || shape.d == gemm::ptx::Tcgen05Output::kF16) {
    throw harness::Error(
        fmt::format("the emulator supports only K-major operands and binary32 accumulators for tcgen05.mma; "
                    "{} has others",
                    where.text()));
  }
  if (peer && a_in_tensor_memory) {
    throw harness::Error(
        fmt::format("the emulator supports tcgen05.mma for a pair only with A in shared memory; {} has A in "
                    "tensor memory",
                    where.text()));
  }
  issue_multiplication(what, group, std::move(operation), d, a, b);
}

void Tcgen05::multiply_scaled(const char* what, int group, gemm::ptx::ScaledKind kind, std::uint32_t d,
                              std::uint64_t a, bool a_in_tensor_memory, std::uint64_t b,
                              std::uint32_t instruction, TensorScales scales, bool accumulate, Where where) {
  const Thread& thread = this_thread(what, where);
  TensorOperation operation;
  operation.peer = peer_of_issuer(what, group, where);
  operation.scaled = gemm::ptx::decode_scaled(kind, instruction);
  if (const char* fault = gemm::ptx::scaled_instruction_fault(kind, instruction, group)) {
    Report report("{} has bits that are not an instruction descriptor: {}", what, fault);
    report.line("where", access_line(what, thread, where));
    report.line("descriptor", "{:#010x}: M {}, N {}, scale factor IDs {} and {}", instruction,
                operation.scaled.m, operation.scaled.n, operation.scaled.scale_a_id,
                operation.scaled.scale_b_id);
    fail("tcgen05-instruction-descriptor",
         report.rule("the descriptor must give a shape, types and scale factor IDs that this kind and its "
                     "scale vector have, and its reserved bits must be 0",
                     "PTX ISA, \"TensorCore 5th Generation: Instruction descriptor\"; \"Matrix Shape\"; "
                     "\"Block Scaling\""));
  }
  if ((instruction >> 15 & 3u) != 0 || (instruction >> 31) != 0) {
    throw harness::Error(
        fmt::format("the emulator supports only K-major operands and K = 32 or 64 for tcgen05.mma with "
                    ".block_scale; {} has others",
                    where.text()));
  }
  if (group == 2 && (a_in_tensor_memory || operation.scaled.m == kTensorLanes)) {
    throw harness::Error(fmt::format(
        "the emulator supports tcgen05.mma with .block_scale for a pair only with M = 256 and A in "
        "shared memory; {} has others",
        where.text()));
  }
  operation.where = where;
  operation.kind = kind;
  operation.scales = scales;
  operation.a_in_tensor_memory = a_in_tensor_memory;
  operation.instruction = {.m = operation.scaled.m, .n = operation.scaled.n};
  operation.accumulate = accumulate;
  issue_multiplication(what, group, std::move(operation), d, a, b);
}

void Tcgen05::issue_multiplication(const char* what, int group, TensorOperation operation, std::uint32_t d,
                                   std::uint64_t a, std::uint64_t b) {
  Thread& thread = running_thread();
  Cta& cta = *thread.cta;
  Cta* const peer = operation.peer;
  TensorThread& me = state(thread);
  const Where where = operation.where;
  const bool a_in_tensor_memory = operation.a_in_tensor_memory;
  if (!a_in_tensor_memory) check_descriptor(what, "A", a, where);
  check_descriptor(what, "B", b, where);
  if (!me.has_agent) {
    me.agent = engine_.cta(cta).add_agent(AgentKind::kMultiplications, thread.index);
    me.has_agent = true;
  }
  operation.number = me.issued + 1;
  const Stamp stamp = agent_stamp(cta, me.agent, operation.number);
  operation.b = gemm::ptx::tcgen05_decode(b);
  if (!a_in_tensor_memory) operation.a = gemm::ptx::tcgen05_decode(a);
  // With cta_group::2 the descriptors say where in each CTA its half of A's rows and of B's is.
  read_operands(operation, thread, cta, stamp, a, b);
  if (peer) {
    read_operands(operation, thread, *peer, stamp, a, b);
    engine_.note_remote(*peer, {stamp, where});
  }
  me.issued = operation.number;
  take_accumulator(what, thread, operation, d);
  if (a_in_tensor_memory) {
    operation.a_address = static_cast<std::uint32_t>(a);
    read_a_from_tensor_memory(what, thread, operation);
  }
  if (operation.kind) read_scales(what, thread, operation);
  const LoadRecord* load = engine_.copies.record(cta, operation.b.address / 16);
  std::optional<std::uint32_t> a_offset;
  if (!a_in_tensor_memory) a_offset = operation.a.address;
  me.operands.push_back(
      {operation.b.address, load ? k_tile_of(engine_.gang.grid, *load).value_or(-1) : -1, a_offset});
  if (me.operands.size() > kRememberedMultiplications) me.operands.pop_front();
  const gemm::ptx::InstructionDescriptor& shape = operation.instruction;
  if (context.counters) {
    const unsigned rows = shape.n + (a_in_tensor_memory ? 0 : shape.m);
    count_instruction(what, where, 1, 1, std::uint64_t{rows} * kSlabBytes);
  }
  if (EventLog::on())
    EventLog::write(
        {.event = "tcgen05.mma", .cta = &cta, .thread = &thread, .number = operation.number, .where = where});
  // Each SM of a pair multiplies its half of the rows.
  if (timeline_on()) log_multiplication(shape.m / static_cast<unsigned>(group), shape.n, group == 2, where);
  issue(thread, std::move(operation));
}

void Tcgen05::issue(Thread& thread, TensorOperation operation) {
  TensorThread& me = state(thread);
  if (me.queue.empty()) ++busy_;
  me.queue.push_back(std::move(operation));
  ++engine_.gang.progress;
  if (engine_.earliest()) finish(me, me.queue.size() - 1);
}

TensorOperation Tcgen05::begin_work(const char* what, int group, TensorWork work, std::uint32_t address,
                                    unsigned columns, Where where) {
  Thread& thread = this_thread(what, where);
  Cta* const peer = peer_of_issuer(what, group, where);
  if (context.counters) count_instruction(what, where, 1, 1);
  TensorThread& me = state(thread);
  if (!me.has_agent) {
    me.agent = engine_.cta(*thread.cta).add_agent(AgentKind::kMultiplications, thread.index);
    me.has_agent = true;
  }
  TensorOperation operation;
  operation.number = ++me.issued;
  operation.where = where;
  operation.peer = peer;
  auto record = std::make_shared<TensorAccumulation>();
  record->work = work;
  record->issuer = &thread;
  record->peer = peer;
  record->agent = me.agent;
  record->column = address & 0xffffu;
  record->lane = address >> 16;
  record->m = kTensorLanes;
  record->n = columns;
  record->latest = operation.number;
  record->where = where;
  for (const Cta* cta : ctas_of(*record)) check_columns(what, *cta, record->column, columns, where);
  if (peer) {
    check_peer_ready(what, thread, *peer, record->column, where);
    engine_.note_remote(*peer, {agent_stamp(*thread.cta, me.agent, operation.number), where});
  }
  operation.accumulation = std::move(record);
  return operation;
}

void Tcgen05::copy(const char* what, int group, TensorCopy copied, std::uint32_t address,
                   std::uint64_t descriptor, Where where) {
  const CopyForm form = form_of(copied.shape);
  TensorOperation operation = begin_work(what, group, TensorWork::kCopy, address, form.units * 4, where);
  Thread& thread = running_thread();
  TensorAccumulation& record = *operation.accumulation;
  record.copy = copied;
  if (record.lane != 0) {
    Report report("{} writes to tensor memory from lane {} on", what, record.lane);
    report.line("where", access_line(what, thread, where));
    fail("tensor-memory-lanes",
         report.rule("a tcgen05.cp writes all quarters of the lanes, so its address must be that of lane 0",
                     "PTX ISA, \"tcgen05.cp\", \"Data Movement Shape\""));
  }
  check_descriptor(what, "the source", descriptor, where);
  operation.a = gemm::ptx::tcgen05_decode(descriptor);
  TensorThread& me = state(thread);
  me.operands.push_back({operation.a.address, kIsCopy, {}});
  if (me.operands.size() > kRememberedMultiplications) me.operands.pop_front();
  const Stamp stamp = agent_stamp(*thread.cta, me.agent, operation.number);
  for (Cta* cta : ctas_of(record)) {
    const OperandUse use{&kCopySourceRules, cta, &thread, where, &what, copy_use_text, {}, form.units};
    std::vector<OperandWriter> writers;
    read_operand(use, 'S', descriptor, operation.a, form.rows, stamp, writers);
    look_for_fences(use, writers);
    for (const OperandWriter& writer : writers) {
      check_operand_order(use, writer, descriptor, operation.a);
      check_fence_behind_operand(use, thread, writer, "tcgen05.cp");
    }
  }
  take_cells(what, thread, operation.accumulation, false);
  for (const Cta* cta : ctas_of(record)) ++memory(*cta).touches;
  me.latest = nullptr;
  issue(thread, std::move(operation));
}

void Tcgen05::shift(const char* what, int group, std::uint32_t address, Where where) {
  TensorOperation operation = begin_work(what, group, TensorWork::kShift, address, kShiftedColumns, where);
  Thread& thread = running_thread();
  const TensorAccumulation& record = *operation.accumulation;
  if (record.lane % kWarpSize != 0 || record.lane >= kTensorLanes) {
    Report report("{} shifts tensor memory from lane {} on", what, record.lane);
    report.line("where", access_line(what, thread, where));
    fail("tensor-memory-lanes", report.rule("the lane in taddr must be a multiple of 32", kShiftSection));
  }
  TensorThread& me = state(thread);
  me.operands.push_back({0, kIsShift, {}});
  if (me.operands.size() > kRememberedMultiplications) me.operands.pop_front();
  take_cells(what, thread, operation.accumulation, true);
  for (const Cta* cta : ctas_of(record)) ++memory(*cta).touches;
  me.latest = nullptr;
  issue(thread, std::move(operation));
}

void Tcgen05::commit(const char* what, int group, void* barrier, std::optional<std::uint32_t> ctas,
                     Where where) {
  Thread& thread = this_thread(what, where);
  const std::uint32_t offset = mbarrier_offset(what, barrier, where);
  if (is_left_out_at(what, where, *thread.cta, offset)) return;
  const Cta* const peer = peer_of_issuer(what, group, where);
  if (context.counters) count_instruction(what, where, 1, 1);
  let_lanes_catch_up(what, where);
  Cta& cta = *thread.cta;
  TensorThread& me = state(thread);
  if (!me.has_agent) {
    me.agent = engine_.cta(cta).add_agent(AgentKind::kMultiplications, thread.index);
    me.has_agent = true;
  }
  const std::vector<Cta*>& cluster = engine_.cta(cta).cluster;
  const std::uint32_t mask = ctas.value_or(1u << cta.rank_in_cluster);
  if (mask == 0 || mask >> cluster.size() != 0) {
    Report report("{} signals CTAs {:#x} of a cluster of {}", what, mask, cluster.size());
    report.line("where", access_line(what, thread, where));
    fail("multicast-mask", report.rule("every bit that is set in the mask must be the rank of a CTA in the "
                                       "cluster, and at least one must be set",
                                       kCommitSection));
  }
  std::vector<Mbarrier*> signalled;
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank) {
    if (!(mask >> rank & 1)) continue;
    Cta& target = *cluster[rank];
    if (target.exited == target.thread_count) fail_remote_exit(engine_, target, {thread.stamp(), where});
    signalled.push_back(&use_mbarrier(what, target, offset, false, where));
  }
  CommitRecord record;
  record.committer = &thread;
  record.where = where;
  record.number = me.issued + 1;
  for (std::size_t i = me.operands.size(); i-- > 0 && record.k_tile < 0;)
    record.k_tile = me.operands[i].k_tile;
  if (me.latest) {
    record.column = me.latest->column;
    record.columns = me.latest->columns();
  }
  TensorOperation operation;
  operation.is_commit = true;
  operation.where = where;
  operation.number = ++me.issued;
  if (peer) engine_.note_remote(*peer, {agent_stamp(cta, me.agent, operation.number), where});
  operation.what = what;
  operation.committer = &thread;
  operation.issuer = thread.stamp();
  thread.release_into(operation.published);
  me.operands.push_back({offset, kIsCommit, {}});
  if (me.operands.size() > kRememberedMultiplications) me.operands.pop_front();
  me.committed = operation.number;
  ++me.commits;
  me.commit_where = where;
  if (timeline_on()) log_commit(signalled, where);
  // Each arrives when it does. Nothing says in which order.
  for (std::size_t i = signalled.size(); i-- > 0;) {
    if (i > 0)
      std::swap(signalled[i], signalled[engine_.gang.random.below(static_cast<std::uint32_t>(i) + 1)]);
    operation.barrier = signalled[i];
    operation.arrival = mbarrier_expect_commit(*operation.barrier, record);
    if (explore::is_on()) explore::issued(explore::ActorKind::kCommit, operation.arrival, thread);
    engine_.arrives_at(thread, operation.arrival, *operation.barrier, where);
    if (me.queue.empty()) ++busy_;
    me.queue.push_back(operation);
    if (engine_.earliest()) finish(me, me.queue.size() - 1);
  }
  ++engine_.gang.progress;
}

bool Tcgen05::may_complete(const TensorThread& thread, std::size_t index) const {
  const TensorOperation& operation = thread.queue[index];
  for (std::size_t i = 0; i < index; ++i) {
    const TensorOperation& earlier = thread.queue[i];
    // A commit is behind all that it tracks. The arrivals of two commits come in any order, except that those
    // at one mbarrier cannot be told apart.
    const bool waits = operation.is_commit
                           ? !earlier.is_commit || earlier.barrier == operation.barrier
                           : !earlier.is_commit && pipelined(*earlier.accumulation, *operation.accumulation);
    if (waits) return false;
  }
  return true;
}

void Tcgen05::finish(TensorThread& thread, std::size_t index) {
  TensorOperation operation = std::move(thread.queue[index]);
  thread.queue.erase(thread.queue.begin() + static_cast<std::ptrdiff_t>(index));
  if (thread.queue.empty()) --busy_;
  if (operation.is_commit) {
    if (explore::is_recording()) explore::completes(explore::ActorKind::kCommit, operation.arrival);
    arrive(thread, operation);
  } else {
    execute(operation);
  }
  ++engine_.gang.progress;
}

void Tcgen05::complete_one(Random& random) {
  std::size_t chosen = random.below(static_cast<std::uint32_t>(busy_));
  for (auto& cta : threads_) {
    for (TensorThread& thread : cta) {
      if (thread.queue.empty() || chosen-- != 0) continue;
      // Some of what is there, one after the other.
      std::uint32_t count = random.below(static_cast<std::uint32_t>(thread.queue.size())) + 1;
      while (count-- > 0 && !thread.queue.empty()) {
        std::size_t index = random.below(static_cast<std::uint32_t>(thread.queue.size()));
        while (!may_complete(thread, index)) --index;  // the first always may
        finish(thread, index);
      }
      return;
    }
  }
}

void Tcgen05::arrivals_under_way(std::vector<explore::UnderWay>& all) const {
  for (const auto& cta : threads_) {
    for (const TensorThread& thread : cta) {
      std::vector<const Mbarrier*> barriers;  // at which those of a thread come one after the other
      for (const TensorOperation& operation : thread.queue) {
        if (!operation.is_commit ||
            std::find(barriers.begin(), barriers.end(), operation.barrier) != barriers.end())
          continue;
        barriers.push_back(operation.barrier);
        all.push_back(
            {explore::ActorKind::kCommit, operation.arrival, operation.barrier, 1, 0, operation.where});
      }
    }
  }
}

void Tcgen05::complete(const explore::UnderWay& one) {
  for (auto& cta : threads_) {
    for (TensorThread& thread : cta) {
      const auto is_it = [&](const TensorOperation& operation) {
        return operation.is_commit && operation.arrival == one.id;
      };
      auto found = std::find_if(thread.queue.begin(), thread.queue.end(), is_it);
      if (found == thread.queue.end()) continue;
      auto index = static_cast<std::size_t>(found - thread.queue.begin());
      while (!may_complete(thread, index)) {  // what it tracks first
        std::size_t earlier = 0;
        while (thread.queue[earlier].is_commit) ++earlier;
        finish(thread, earlier);
        --index;
      }
      finish(thread, index);
      return;
    }
  }
}

void Tcgen05::execute(const TensorOperation& operation) {
  const PoisonIgnored ignored;  // infinities and NaNs are the operands' own
  const std::vector<Cta*> ctas = ctas_of(*operation.accumulation);
  if (operation.accumulation->work != TensorWork::kMultiply) {
    const bool copies = operation.accumulation->work == TensorWork::kCopy;
    for (const Cta* cta : ctas) copies ? execute_copy(operation, *cta) : execute_shift(operation, *cta);
    return;
  }
  SlabRow b[kMaxSlabColumns];
  const unsigned rows = operation.instruction.n / static_cast<unsigned>(ctas.size());
  for (std::size_t i = 0; i < ctas.size(); ++i) gather_operand(*ctas[i], operation.b, rows, b + i * rows);
  for (const Cta* cta : ctas) execute_in(operation, *cta, b);
}

void Tcgen05::execute_copy(const TensorOperation& operation, const Cta& cta) {
  const TensorAccumulation& record = *operation.accumulation;
  const CopyForm form = form_of(record.copy.shape);
  SlabRow rows[kTensorLanes];  // of 32 bytes
  gather_operand(cta, operation.a, form.rows, rows, form.units);
  if (record.copy.format != TensorCopyFormat::kBytes) {
    for (unsigned row = 0; row < form.rows; ++row)
      for_units(rows[row], form.units, static_cast<unsigned>(record.copy.format), widen_elements);
  }
  float* const words = memory(cta).words.data() + std::size_t{record.column} * kTensorLanes;
  for (unsigned lane = 0; lane < kTensorLanes; ++lane) {
    const int row = row_of_lane(record.copy.shape, lane);
    for (unsigned i = 0; i < record.n && row >= 0; ++i)
      std::memcpy(words + std::size_t{i} * kTensorLanes + lane, &rows[row][std::size_t{2} * i],
                  sizeof(float));
  }
}

void Tcgen05::execute_shift(const TensorOperation& operation, const Cta& cta) {
  const TensorAccumulation& record = *operation.accumulation;
  for (unsigned i = 0; i < record.n; ++i) {
    float* const first =
        memory(cta).words.data() + std::size_t{record.column + i} * kTensorLanes + record.lane;
    std::memmove(first + 1, first, (kWarpSize - 1) * sizeof(float));
  }
}

void Tcgen05::execute_in(const TensorOperation& operation, const Cta& cta, SlabRow* b) {
  const TensorAccumulation& accumulation = *operation.accumulation;
  TensorMemory& memory = this->memory(cta);
  gemm::ptx::InstructionDescriptor shape = operation.instruction;
  shape.m = accumulation.m;
  SlabRow a[kTensorLanes];
  if (operation.a_in_tensor_memory) {
    for (unsigned row = 0; row < shape.m; ++row) {
      for (unsigned i = 0; i < kColumnsOfA; ++i) {
        const float word = memory.words[((operation.a_address & 0xffffu) + i) * kTensorLanes +
                                        lane_of_row(shape.m, accumulation.lane, row)];
        std::memcpy(&a[row][std::size_t{2} * i], &word, sizeof word);
      }
    }
  } else {
    gather_operand(cta, operation.a, shape.m, a);
  }
  if (operation.kind) {
    const unsigned bits = gemm::ptx::bits_of(operation.scaled.a);
    if (operation.a_in_tensor_memory && *operation.kind == gemm::ptx::ScaledKind::kMxf8f6f4 && bits < 8) {
      for (SlabRow& row : a) for_units(row, 2, bits, pack_elements);
    }
    return execute_scaled(operation, cta, a, b);
  }
  constexpr std::uint16_t kSign = 0x8000;
  const auto negate = [](SlabRow* rows, unsigned count) {
    for (unsigned row = 0; row < count; ++row) {
      for (std::uint16_t& element : rows[row]) element ^= kSign;
    }
  };
  if (shape.negate_a) negate(a, shape.m);
  if (shape.negate_b && &cta == accumulation.issuer->cta) negate(b, shape.n);  // once: b is that of all
  float* const d = memory.words.data() + std::size_t{accumulation.column} * kTensorLanes;
  const unsigned width = accumulation.columns();
  const auto at = [&](unsigned column, unsigned row) -> float& {
    const unsigned lane = accumulation.folded() ? column / width * kSlabRows + row
                                                : lane_of_row(shape.m, accumulation.lane, row);
    return d[column % width * kTensorLanes + lane];
  };
  if (shape.a == gemm::ptx::Tcgen05Input::kF16) {
    for (unsigned column = 0; column < shape.n; ++column) {
      for (unsigned row = 0; row < shape.m; ++row) {
        float& sum = at(column, row);
        if (!operation.accumulate) sum = 0;
        for (unsigned k = 0; k < kSlabDepth; ++k) sum += from_f16(a[row][k]) * from_f16(b[column][k]);
      }
    }
    return;
  }
  if (shape.m == kTensorLanes) {
    multiply_slab(a, b, shape.n, operation.accumulate, d, kTensorLanes);
    multiply_slab(a + kSlabRows, b, shape.n, operation.accumulate, d + kSlabRows, kTensorLanes);
    return;
  }
  std::vector<float> slab(std::size_t{shape.n} * kSlabRows);
  for (unsigned column = 0; column < shape.n && operation.accumulate; ++column) {
    for (unsigned row = 0; row < kSlabRows; ++row) slab[column * kSlabRows + row] = at(column, row);
  }
  multiply_slab(a, b, shape.n, operation.accumulate, slab.data());
  for (unsigned column = 0; column < shape.n; ++column) {
    for (unsigned row = 0; row < kSlabRows; ++row) at(column, row) = slab[column * kSlabRows + row];
  }
}

void Tcgen05::execute_scaled(const TensorOperation& operation, const Cta& cta, const SlabRow* a,
                             const SlabRow* b) {
  TensorMemory& memory = this->memory(cta);
  const gemm::ptx::ScaledInstruction& instruction = operation.scaled;
  const auto gather = [&](const char* name, std::uint32_t address, std::uint32_t id, unsigned rows,
                          std::vector<std::uint8_t>& scales) {
    scales.resize(std::size_t{rows} * sizeof(RowScales));
    for (unsigned row = 0; row < rows; ++row) {
      const std::uint32_t column = address + row / kWarpSize;
      const float* const words = &memory.words[std::size_t{column} * kTensorLanes + row % kWarpSize];
      const auto word = std::bit_cast<std::uint32_t>(*words);
      for (std::size_t quarter = 1; quarter < kTensorLanes / kWarpSize; ++quarter) {
        const auto copy = std::bit_cast<std::uint32_t>(words[quarter * kWarpSize]);
        if (copy == word) continue;
        Report report("tcgen05.mma reads scales that differ from one quarter of the lanes to the next");
        report.line("where", "{} at {}",
                    name_agent(cta, operation.accumulation->issuer->index, operation.number),
                    operation.where.text());
        report.line("scales", "of {}, row {}: {:#010x} in lane {}, {:#010x} in lane {}, column {}", name, row,
                    word, row % kWarpSize, copy, quarter * kWarpSize + row % kWarpSize, column);
        report.missing("tcgen05.cp.32x128b.warpx4, which copies 32 rows to all four quarters");
        fail("tensor-memory-scales",
             report.rule("scale factors must be duplicated to all 32-lane partitions of tensor memory",
                         kScalesSection));
      }
      const std::uint32_t from = word >> 8 * id;
      std::memcpy(&scales[std::size_t{row} * sizeof(RowScales)], &from, sizeof from);
    }
    return reinterpret_cast<const RowScales*>(scales.data());
  };
  std::vector<std::uint8_t> of_a;
  std::vector<std::uint8_t> of_b;
  const RowScales* const scales_a =
      gather("A", operation.scales.a, instruction.scale_a_id, operation.accumulation->m, of_a);
  const RowScales* const scales_b =
      gather("B", operation.scales.b, instruction.scale_b_id, instruction.n, of_b);
  emulator::multiply_scaled(*operation.kind, instruction, a, b, scales_a, scales_b, operation.accumulate,
                            memory.words.data() + std::size_t{operation.accumulation->column} * kTensorLanes,
                            kTensorLanes);
}

void Tcgen05::arrive(TensorThread& thread, const TensorOperation& operation) {
  const Stamp done = agent_stamp(*operation.committer->cta, thread.agent, operation.number);
  const Cta& holder = *operation.barrier->cta;
  if (holder.exited == holder.thread_count)
    fail_remote_exit(engine_, holder, {operation.arrival, operation.where, operation.barrier});
  mbarrier_arrive_by_commit(operation.what, *operation.barrier, operation.arrival, done, operation.published,
                            *operation.committer, operation.issuer, operation.where);
}

std::string Tcgen05::name_agent(const Cta& cta, std::uint32_t thread, std::uint32_t number) const {
  const TensorThread& issuer = threads_[cta.index_in_gang][thread];
  const std::string name = name_thread(engine_.gang.grid, make_stamp(cta.key, thread, 1));
  std::string text = fmt::format("tcgen05.mma, operation {} of {}", number, name);
  const std::uint32_t first = issuer.issued - static_cast<std::uint32_t>(issuer.operands.size()) + 1;
  if (number < first || number > issuer.issued) return text;
  const WgmmaOperand& operand = issuer.operands[number - first];
  std::string place = name_shared_offset(cta, operand.b);
  if (operand.a) place = fmt::format("{} and {}", name_shared_offset(cta, *operand.a), place);
  if (operand.k_tile == kIsCopy)
    return fmt::format("tcgen05.cp, operation {} of {}, which reads {}", number, name, place);
  if (operand.k_tile == kIsShift) return fmt::format("tcgen05.shift, operation {} of {}", number, name);
  if (operand.k_tile == kIsCommit)
    return fmt::format("tcgen05.commit, operation {} of {}, which arrives at {}", number, name, place);
  if (operand.k_tile >= 0) return text + fmt::format(", which reads k-tile {} in {}", operand.k_tile, place);
  return text + fmt::format(", which reads {}", place);
}

std::string Tcgen05::missing_commit(const Cta& cta, std::uint32_t thread, std::uint32_t number) const {
  const TensorThread& issuer = threads_[cta.index_in_gang][thread];
  if (issuer.committed > number)
    return fmt::format("a wait for the mbarrier on which the commit at {} arrives, before the access",
                       issuer.commit_where.text());
  for (std::size_t i = 0; i < threads_[cta.index_in_gang].size(); ++i) {
    const TensorThread& other = threads_[cta.index_in_gang][i];
    if (i == thread || other.commits == 0) continue;
    return fmt::format(
        "tcgen05.commit by {}, which issued the multiplication: the commit at {} was executed by another "
        "thread, {}, and does not track it",
        name_thread(cta.threads[thread]), other.commit_where.text(), name_thread(cta.threads[i]));
  }
  return fmt::format("tcgen05.commit by {} after the multiplication, and a wait for its mbarrier",
                     name_thread(cta.threads[thread]));
}

/// The CTA ends: the commits of its own threads have arrived at its mbarriers, and it knows that. What comes
/// from another CTA is a remote access.
void Tcgen05::check_arrivals(const Cta& cta) {
  if (!course_rule_on(CourseRule::kCommitArrival)) return;
  for (const auto& barrier : engine_.cta(cta).barriers) {
    const Stamp last = last_commit_arrival(*barrier);
    if (!barrier->live || last == 0 || barrier->commit_log.back().committer->cta != &cta ||
        std::any_of(cta.threads.begin(), cta.threads.end(),
                    [&](const Thread& thread) { return knows_arrival(thread, last); }))
      continue;
    Report report("a CTA ends while a tcgen05.commit may still be on its way to one of its mbarriers");
    report.line("barrier", name_mbarrier(*barrier));
    report.line("commit", "{}, the last of {} at this mbarrier", describe_commit(barrier->commit_log.back()),
                barrier->commits);
    report.missing(
        "a wait at {} for the phase that this arrival completes, before the CTA ends. A wait at another "
        "mbarrier, for a later commit, shows that the multiplications are complete but not that this commit "
        "has arrived",
        name_mbarrier(*barrier));
    report.rule(
        "an mbarrier must still be valid when an arrival reaches it: a CTA owns its shared memory only until "
        "it ends, and commits at two mbarriers may arrive in either order",
        "PTX ISA, \"tcgen05.commit\"; \"mbarrier.inval\"; \"Shared State Space\"");
    fail("exit-in-flight", report.course_rule(CourseRule::kCommitArrival));
  }
}

void Tcgen05::thread_exits(Thread& thread) {
  const Cta& cta = *thread.cta;
  if (cta.exited + 1 != cta.thread_count) return;
  for (const TensorAllocation& allocation : memory(cta).allocations) {
    if (allocation.cta != &cta) continue;
    Report report("CTA {} ends with tensor memory that it has not deallocated", text(cta.id));
    report.line("columns", columns_text(allocation.column, allocation.columns));
    report.line("allocated", allocation.where.text());
    report.missing("tcgen05.dealloc by a whole warp, after all accesses have finished");
    fail("tensor-memory-leak",
         report.rule("a kernel must deallocate all tensor memory that it allocates before it ends, or the "
                     "next CTA on the SM would wait for it forever",
                     kAllocSection));
  }
  check_arrivals(cta);
  if (!course_rule_on(CourseRule::kExitInFlight)) return;
  const auto& states = threads_[cta.index_in_gang];
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TensorThread& issuer = states[i];
    if (issuer.issued == 0) continue;
    const Stamp latest = agent_stamp(cta, issuer.agent, issuer.issued);
    if (std::any_of(cta.threads.begin(), cta.threads.end(),
                    [&](const Thread& other) { return knows(other, latest); }))
      continue;
    Report report("a CTA ends while tcgen05 instructions may still be running");
    report.line("by", name_thread(cta.threads[i]));
    report.line("issued", "{} operations; no thread has waited for the latest one", issuer.issued);
    if (issuer.commits > 0) report.line("commit", issuer.commit_where.text() + ", the latest");
    report.missing("a wait for the latest commit, before the CTA ends");
    report.rule(
        "shared memory and mbarriers pass to the next CTA, so every read of the former and every arrival at "
        "the latter must be over before the CTA ends",
        kCommitSection);
    report.course_rule(CourseRule::kExitInFlight);
    fail("exit-in-flight", report);
  }
}

std::string Tcgen05::describe() const {
  std::string lines;
  for (std::size_t c = 0; c < threads_.size(); ++c) {
    for (std::size_t i = 0; i < threads_[c].size(); ++i) {
      const TensorThread& issuer = threads_[c][i];
      if (issuer.issued == issuer.committed) continue;
      if (!lines.empty()) lines += '\n';
      lines +=
          fmt::format("{} has issued {} multiplications since its latest commit, so no mbarrier tracks them",
                      name_thread(engine_.gang.ctas[c]->threads[i]), issuer.issued - issuer.committed);
    }
  }
  return lines;
}

}  // namespace emulator
