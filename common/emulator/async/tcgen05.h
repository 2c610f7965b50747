// tcgen05: tensor memory, the multiplications that one thread issues, and their fences.
//
// What is asynchronous here completes late: a multiplication when the scheduler says so, in any order that
// the PTX ISA leaves open; a tcgen05.ld when its thread has waited. Accesses of tensor memory are remembered
// by column and half of a lane quarter. Whoever touches a cell must be behind what was done there before:
// behind its completion, behind a synchronisation of the threads, and with tcgen05.fence on both sides of
// that.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/async/wgmma.h"
#include "emulator/explore/under_way.h"
#include "emulator/machine/machine.h"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace emulator {

class HopperEngine;
class Report;
struct Mbarrier;

inline constexpr unsigned kTensorColumns = 512;
inline constexpr unsigned kTensorLanes = 128;
inline constexpr unsigned kTensorHalves = 8;  // of 16 lanes
inline constexpr unsigned kLanesOfHalf = kTensorLanes / kTensorHalves;
inline constexpr unsigned kTransferColumns = 128;  // the most that one ld or st here moves

/// A tcgen05.ld or tcgen05.st of a warp.
struct TensorTransfer {
  Cta* cta = nullptr;
  unsigned warp = 0;
  bool is_store = false;
  Where where;
  std::array<std::uint32_t, kWarpSize> issued{};  // each lane's time at the instruction
  std::array<std::uint32_t, kWarpSize> waited{};  // and behind its wait; 0: not yet
  /// The latest wait of its first lane for a tcgen05.commit.
  struct {
    const Mbarrier* barrier = nullptr;
    std::uint64_t phase = 0;
    Where where;
  } waited_for;
};

/// What a thread issues and a tcgen05.commit tracks.
enum class TensorWork : std::uint8_t { kMultiply, kCopy, kShift };

/// PTX ISA, "Data Movement Shape": rows x bits of a tcgen05.cp, and how they are multicast.
enum class TensorCopyShape : std::uint8_t {
  k128x256b,
  k128x128b,
  k4x256b,
  k64x128bWarps02And13,
  k64x128bWarps01And23,
  k32x128bWarps0123,
};

/// Bits of an element in the source of a tcgen05.cp. PTX ISA, "Optional Decompression".
enum class TensorCopyFormat : std::uint8_t {
  k4Bits = 4,  // .b8x16.b4x16_p64: 16 elements in 8 bytes, and 8 bytes of padding
  k6Bits = 6,  // .b8x16.b6x16_p32: 16 elements in 12 bytes, and 4 bytes of padding
  kBytes = 8,
};

struct TensorCopy {
  TensorCopyShape shape{};
  TensorCopyFormat format = TensorCopyFormat::kBytes;
};

/// Multiplications of one thread into one accumulator, which execute in order; or one tcgen05.cp or
/// tcgen05.shift. With cta_group::2 it lies in the tensor memories of two CTAs, at the same place in both.
struct TensorAccumulation {
  TensorWork work = TensorWork::kMultiply;
  TensorCopy copy;  // of a tcgen05.cp
  Thread* issuer = nullptr;
  Cta* peer = nullptr;  // of the issuer's CTA, with cta_group::2
  std::uint32_t agent = 0;
  std::uint32_t column = 0;
  std::uint32_t lane = 0;                     // of the address: 0 or 16
  unsigned m = 0, n = 0;                      // rows in each of its CTAs, and columns of D
  std::optional<gemm::ptx::ScaledKind> kind;  // of multiplications with .block_scale
  std::uint32_t latest = 0;                   // number of the issuer's latest multiplication into it, from 1
  std::uint64_t touches = 0;                  // of the tensor memory (of both), then
  Where where;                                // of the latest

  /// M = 128 of a pair: 64 rows in each CTA, whose right half lies in lanes 64 to 127 (layout B).
  bool folded() const { return work == TensorWork::kMultiply && peer != nullptr && m == kTensorLanes / 2; }
  /// Columns of tensor memory.
  unsigned columns() const { return folded() ? n / 2 : n; }
};

/// One column of 16 lanes.
struct TensorCell {
  std::shared_ptr<TensorAccumulation> accumulation;    // what wrote it last, unless that was a tcgen05.st
  std::shared_ptr<TensorTransfer> store;               // if it was a tcgen05.st
  std::vector<std::shared_ptr<TensorTransfer>> loads;  // since then
  Stamp operand = 0;  // the latest multiplication that reads A or scales here
  Where operand_where;
  bool holds_scales = false;  // which of the two

  bool written() const { return accumulation != nullptr || store != nullptr; }
};

struct TensorAllocation {
  Cta* cta = nullptr;
  std::uint32_t column = 0;
  std::uint32_t columns = 0;
  Where where;
  Stamp ready = 0;  // when its CTA has the address; 0: the warp has not gone on
};

/// The tensor memory of an SM.
struct TensorMemory {
  std::vector<float> words =
      std::vector<float>(std::size_t{kTensorColumns} * kTensorLanes);  // [column][lane]
  std::vector<TensorCell> cells = std::vector<TensorCell>(std::size_t{kTensorColumns} * kTensorHalves);
  std::vector<TensorAllocation> allocations;  // by column
  std::vector<Thread*> waiting;               // for columns, or for the peer CTA
  std::uint64_t releases = 0;                 // what such a thread may wait for, so far
  std::uint64_t touches = 0;                  // whatever ends a run of multiplications

  TensorCell& cell(std::uint32_t column, unsigned half) { return cells[column * kTensorHalves + half]; }
};

/// An allocation with cta_group::2 for which a warp has come, and not yet both.
struct PairRequest {
  int warp = 0;
  std::uint32_t columns = 0;
  Where where;
  bool granted = false;  // by the peer's warp, at `column`
  std::uint32_t column = 0;
};

/// What the two CTAs of a pair do together, apart from allocations.
enum class PairStep : std::uint8_t { kDealloc, kRelinquish };

/// What a CTA does about its allocations.
struct TensorCta {
  std::optional<PairRequest> request;
  std::array<std::uint32_t, 2> steps{};  // begun, by PairStep
  std::uint32_t smallest = 0;            // allocation so far; 0: none
  bool relinquished = false;
  Where relinquished_where;
};

/// The addresses of the scales of A and of B in tensor memory.
struct TensorScales {
  std::uint32_t a = 0, b = 0;
};

/// A multiplication, a copy, a shift, or a commit behind those before it.
struct TensorOperation {
  bool is_commit = false;
  std::uint32_t number = 0;  // of the multiplication; a commit's: of the latest one before it
  Where where;
  // A multiplication. `m` and `n` of its descriptor are those of both CTAs.
  std::shared_ptr<TensorAccumulation> accumulation;
  gemm::ptx::InstructionDescriptor instruction;
  gemm::ptx::MatrixDescriptor a, b;
  bool a_in_tensor_memory = false;
  std::uint32_t a_address = 0;
  bool accumulate = false;
  Cta* peer = nullptr;  // of the issuer's CTA, with cta_group::2
  // With .block_scale; `instruction` then has the shape alone.
  std::optional<gemm::ptx::ScaledKind> kind;
  gemm::ptx::ScaledInstruction scaled;
  TensorScales scales;
  // A commit.
  const char* what = nullptr;
  Thread* committer = nullptr;
  Mbarrier* barrier = nullptr;
  Stamp arrival = 0;
  SyncObject published;
  Stamp issuer = 0;
};

/// A tcgen05.ld whose registers have not been handed over.
struct PendingTensorLoad {
  float* registers;
  unsigned count;
  std::uint32_t poison;
  std::array<float, kTransferColumns> values;
  std::shared_ptr<TensorTransfer> transfer;
};

struct TensorThread {
  bool has_agent = false;
  std::uint32_t agent = 0;
  std::uint32_t issued = 0;           // multiplications
  std::deque<TensorOperation> queue;  // not done
  std::deque<WgmmaOperand> operands;  // of each of the latest multiplications
  std::shared_ptr<TensorAccumulation> latest;
  std::vector<PendingTensorLoad> loads;
  std::vector<std::shared_ptr<TensorTransfer>> stores;
  std::uint64_t transfers = 0;  // loads so far, for their poison
  // The latest commit: what it covers.
  std::uint32_t committed = 0;  // multiplications
  std::uint32_t commits = 0;
  Where commit_where;
  // Fences.
  FenceTimes before;
  bool has_after = false;
  Where after_where;
  std::uint64_t waits_before = 0;  // waits at mbarriers that the thread had passed then
  std::uint32_t after_base = 0;    // what the thread knew at its latest fence::after_thread_sync
  VectorClock after_clock;
  VectorClock after_execution;  // and what it knew to be over
  VectorClock after_tensor;     // and what relaxed waits had ordered
};

/// Part of the HopperEngine, made by the first instruction.
class Tcgen05 {
 public:
  explicit Tcgen05(HopperEngine& engine);

  // Executed by the running thread. `group`: of cta_group, 1 or 2.
  void alloc(int group, std::uint32_t* address, std::uint32_t columns, Where where);
  void dealloc(int group, std::uint32_t address, std::uint32_t columns, Where where);
  void relinquish(int group, Where where);
  void load(const char* what, float* registers, unsigned columns, std::uint32_t address, Where where);
  void store(const char* what, const std::uint32_t* registers, unsigned columns, std::uint32_t address,
             Where where);
  void wait(bool stores, Where where);
  void fence_before(Where where);
  void fence_after(Where where);
  /// a: a descriptor, or with `a_in_tensor_memory` an address there.
  void multiply(const char* what, int group, std::uint32_t d, std::uint64_t a, bool a_in_tensor_memory,
                std::uint64_t b, std::uint32_t instruction, bool accumulate, Where where);
  void multiply_scaled(const char* what, int group, gemm::ptx::ScaledKind kind, std::uint32_t d,
                       std::uint64_t a, bool a_in_tensor_memory, std::uint64_t b, std::uint32_t instruction,
                       TensorScales scales, bool accumulate, Where where);
  void copy(const char* what, int group, TensorCopy copied, std::uint32_t address, std::uint64_t descriptor,
            Where where);
  void shift(const char* what, int group, std::uint32_t address, Where where);
  /// `ctas`: the ranks in the cluster, a bit each; without them the own CTA alone.
  void commit(const char* what, int group, void* barrier, std::optional<std::uint32_t> ctas, Where where);

  std::size_t pending() const { return busy_; }
  void complete_one(Random& random);
  /// The commits that will arrive, for the search for schedules; and lets one of them do so, behind what it
  /// tracks.
  void arrivals_under_way(std::vector<explore::UnderWay>& all) const;
  void complete(const explore::UnderWay& one);
  void thread_exits(Thread& thread);
  std::string describe() const;
  /// "tcgen05.mma 7 of thread ..., which reads k-tile 3 in stage[1].b".
  std::string name_agent(const Cta& cta, std::uint32_t thread, std::uint32_t number) const;
  /// What is missing between the multiplication with this number and an access by another thread.
  std::string missing_commit(const Cta& cta, std::uint32_t thread, std::uint32_t number) const;
  /// Whether the thread waits for loads from tensor memory; then `report` gets what it lacks.
  bool explain_poison(Report& report, const Thread& thread, std::uint32_t value) const;
  /// The columns in use, for a map of tensor memory.
  const TensorMemory& memory_of(const Cta& cta) const { return *memories_[cta.index_in_gang]; }

  TensorThread& state(const Thread& thread) { return threads_[thread.cta->index_in_gang][thread.index]; }
  const TensorThread& state(const Thread& thread) const {
    return threads_[thread.cta->index_in_gang][thread.index];
  }

 private:
  friend struct TensorCalls;
  enum class Behind { kYes, kNotWaited, kWaitedLate, kNoFenceBefore, kNotOrdered, kNoFenceAfter };
  struct TransferCall;
  struct Groups {
    int group = 0;  // that the kernel uses; 0: none so far
    const char* what = nullptr;
    Where where;
  };

  TensorMemory& memory(const Cta& cta) { return *memories_[cta.index_in_gang]; }
  TensorCta& allocations(const Cta& cta) { return ctas_[cta.index_in_gang]; }
  bool after_covers(const Thread& thread, Stamp stamp) const;
  /// As the functions of these names, and what relaxed waits have ordered for tcgen05 instructions.
  bool knows(const Thread& thread, Stamp stamp) const;
  bool knows_end(const Thread& thread, const Cta& owner, Stamp stamp) const;
  int k_tile_of_operation(const Cta& cta, const TensorAccumulation& accumulation) const;
  Behind behind(const Thread& thread, const TensorTransfer& transfer, unsigned lane) const;
  Behind behind(const Thread& thread, const TensorAccumulation& accumulation) const;
  void check_columns(const char* what, const Cta& cta, std::uint32_t column, unsigned columns, Where where);
  std::uint32_t check_lanes(const char* what, std::uint32_t address, Where where);
  void check_behind_transfer(const char* what, const Thread& thread, const TensorTransfer& transfer,
                             std::uint32_t column, Where where);
  void check_behind_accumulation(const char* what, const Thread& thread,
                                 const TensorAccumulation& accumulation, std::uint32_t column, bool reads,
                                 Where where);
  void check_behind_operand(const char* what, const Thread& thread, const TensorCell& cell,
                            std::uint32_t column, Where where);
  void check_written(const char* what, const Thread& thread, const TensorCell& cell, std::uint32_t column,
                     Where where);
  void touch_cells(const char* what, const std::array<Thread*, kWarpSize>& lanes,
                   const std::shared_ptr<TensorTransfer>& transfer, std::uint32_t column, unsigned columns);
  void transfer(TransferCall& call);
  /// Notes the group, and reports one that is not the kernel's.
  void use_group(const char* what, int group, Where where);
  /// The other CTA of the pair; and the same where it may not have ended.
  Cta& other_of(const char* what, const Cta& cta, Where where);
  Cta& peer_of(const char* what, const Cta& cta, Where where);
  /// The same for an instruction that one thread of the pair issues.
  Cta* peer_of_issuer(const char* what, int group, Where where);
  void notify(Cta& cta);
  void wait_for_peer(PairStep step, const char* what, Where where);
  void begin_step(Cta& cta, int group, PairStep step, const char* what, Where where);
  bool allocate_with_peer(Cta& cta, int warp, std::uint32_t columns, Where where, std::uint32_t& column);
  std::vector<std::uint32_t> places(const TensorMemory& memory, std::uint32_t columns) const;
  std::uint32_t one_of(const std::vector<std::uint32_t>& places) const;
  void take_columns(Cta& cta, std::uint32_t column, std::uint32_t columns, Where where);
  void check_peer_ready(const char* what, const Thread& thread, const Cta& peer, std::uint32_t column,
                        Where where);
  bool try_allocate(Cta& cta, std::uint32_t columns, Where where, std::uint32_t& column);
  void take_accumulator(const char* what, Thread& thread, TensorOperation& operation, std::uint32_t d);
  /// The cells that the work writes (or moves) are from now on its own: checks that it may have them.
  void take_cells(const char* what, const Thread& thread, const std::shared_ptr<TensorAccumulation>& work,
                  bool reads);
  /// The running thread issues one more operation of this kind, of which the cells are known.
  TensorOperation begin_work(const char* what, int group, TensorWork work, std::uint32_t address,
                             unsigned columns, Where where);
  void issue(Thread& thread, TensorOperation operation);
  void read_a_from_tensor_memory(const char* what, Thread& thread, TensorOperation& operation);
  void read_scales(const char* what, Thread& thread, const TensorOperation& operation);
  /// The multiplication reads these columns: of the halves that it uses, checks that what wrote them is over
  /// or executes first.
  void read_cells(const char* what, Thread& thread, const Cta& cta, const TensorOperation& operation,
                  std::uint32_t column, unsigned columns, bool scales);
  [[noreturn]] void fail_unwritten_scales(const char* what, const Thread& thread, std::uint32_t column,
                                          unsigned half, Where where);
  /// What all multiplications have in common: checks the tiles and the accumulator and issues the operation,
  /// of which the instruction is known.
  void issue_multiplication(const char* what, int group, TensorOperation operation, std::uint32_t d,
                            std::uint64_t a, std::uint64_t b);
  void finish(TensorThread& thread, std::size_t index);
  /// Of the operands, the part that lies in `cta`.
  void read_operands(const TensorOperation& operation, const Thread& thread, Cta& cta, Stamp stamp,
                     std::uint64_t a, std::uint64_t b);
  void check_descriptor(const char* what, const char* name, std::uint64_t bits, Where where);
  void check_fence_behind_operand(const OperandUse& use, const Thread& thread, const OperandWriter& writer,
                                  const char* instruction);
  void execute(const TensorOperation& operation);
  void execute_scaled(const TensorOperation& operation, const Cta& cta, const SlabRow* a, const SlabRow* b);
  void execute_copy(const TensorOperation& operation, const Cta& cta);
  void execute_shift(const TensorOperation& operation, const Cta& cta);
  /// The rows of D in the tensor memory of `cta`. b: all of B.
  void execute_in(const TensorOperation& operation, const Cta& cta, SlabRow* b);
  void arrive(TensorThread& thread, const TensorOperation& operation);
  void check_arrivals(const Cta& cta);
  bool may_complete(const TensorThread& thread, std::size_t index) const;
  [[noreturn]] void fail(const char* rule, Report& report);

  HopperEngine& engine_;
  Groups groups_;
  std::vector<TensorMemory*> memories_;               // by CTA of the gang
  std::vector<std::unique_ptr<TensorMemory>> owned_;  // by SM
  std::vector<TensorCta> ctas_;
  std::vector<std::vector<TensorThread>> threads_;  // by CTA and thread
  std::size_t busy_ = 0;                            // threads with something in their queue
};

/// Of the running thread's gang, made on first use.
Tcgen05& tcgen05(const char* what, Where where);

}  // namespace emulator
