// wgmma: what a warpgroup's threads issue together and the tensor cores do later.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/async/tensor_core.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/poison.h"
#include "emulator/sync/mbarrier.h"
#include "emulator/sync/warps.h"
#include "ptx/descriptor.h"

namespace emulator {

inline constexpr unsigned kWarpgroupSize = 128;

/// Registers of all 128 threads that wgmma is accumulating into, as the matrix they form.
struct Accumulator {
  unsigned n = 0;
  SlabTypes types;
  unsigned holders = 0;                            // threads whose registers these are
  std::vector<float> d;                            // [n][64]; of int8 the bits of integers
  std::array<float*, kWarpgroupSize> registers{};  // nullptr: not in flight
  std::array<std::uint32_t, kWarpgroupSize> poison{};
  std::array<std::uint64_t, kWarpgroupSize>
      last{};   // number of the thread's latest instruction on it, from 1
  Where where;  // of the latest instruction
};

/// A writer of part of an instruction's operands, with the latest time.
struct OperandWriter {
  Stamp stamp;
  std::uint64_t where;
  std::uint32_t offset;  // in shared memory
  std::uint32_t fence;   // time of the writer's proxy fence since; 0: none
  char operand;          // 'A' or 'B'
};

/// Names of the rules about operands, and where they stand.
struct OperandRules {
  const char* instruction;  // "wgmma"
  const char* descriptor;   // rule
  const char* uninitialised;
  const char* race;
  const char* descriptor_section;
  const char* section;
  const char* reader;  // "every thread of the warpgroup": that waits for a load
};

/// An instruction of the tensor cores on its way to read operands in shared memory.
struct OperandUse {
  const OperandRules* rules;
  Cta* cta;
  const Thread* issuer;
  Where where;
  const void* object;                              // of describe
  std::string (*describe)(const OperandUse& use);  // "wgmma m64n128k16 at ... by warpgroup 0 ..."
  SlabTypes types{};
  unsigned units = 2;  // of 16 bytes along K that are read
};

/// Which operands are MN-major: the immediates tnspA and tnspB.
struct Transposed {
  bool a = false;
  bool b = false;
  bool operator==(const Transposed&) const = default;
};

/// Reports what forbids reading the K-major operand `name`, `rows` x 16 elements; otherwise records the
/// reader under `stamp` and adds who wrote it to `writers`. `bits`: the descriptor, for reports.
void read_operand(const OperandUse& use, char name, std::uint64_t bits,
                  const gemm::ptx::MatrixDescriptor& descriptor, unsigned rows, Stamp stamp,
                  std::vector<OperandWriter>& writers);
/// For each writer, the time of its proxy fence since.
void look_for_fences(const OperandUse& use, std::vector<OperandWriter>& writers);
/// The running thread must be behind the writes, and behind the proxy fences of the ordinary ones.
void check_operand_order(const OperandUse& use, const OperandWriter& writer, std::uint64_t bits,
                         const gemm::ptx::MatrixDescriptor& descriptor);
/// Copies the operand to `to`, [rows][16], or of each row the first `units` of 16 bytes.
void gather_operand(const Cta& cta, const gemm::ptx::MatrixDescriptor& descriptor, unsigned rows,
                    std::uint16_t (*to)[16], unsigned units = 2);
std::string descriptor_text(std::uint64_t bits, const gemm::ptx::MatrixDescriptor& descriptor);

struct WgmmaInstruction {
  unsigned n = 0;
  SlabTypes types;
  bool a_in_registers = false;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  Transposed transposed;
  bool accumulate = false;
  Where where;
  Accumulator* accumulator = nullptr;
  bool fresh = false;  // the accumulator was not in flight before
  unsigned arrived = 0;
  std::array<bool, kWarpgroupSize> has_arrived{};
  std::vector<std::uint32_t> fragments;  // of A: [thread][4]
  bool unfenced = false;  // no fence since a thread's accumulators were handed back, and nobody changed them
  Where handed_back;      // by this wait
  std::vector<OperandWriter> writers;
  std::uint32_t behind = 0;  // a thread whose base is above this time is behind all writers; 0: look closer
};

/// What a report says of an instruction.
struct WgmmaOperand {
  std::uint32_t b = 0;             // its offset in shared memory; that of the one operand of a tcgen05.cp
  int k_tile = -1;                 // of A and B, or -1
  std::optional<std::uint32_t> a;  // its offset, where A lies in shared memory
};

/// What registers held when the emulator last had reason to look: when they were handed back, when wgmma read
/// them (fragments of A), and at each wgmma_fence since.
struct RegisterSnapshot {
  const std::uint32_t* registers;
  std::vector<std::uint32_t> values;
  std::uint64_t instruction = 0;  // the latest that read these registers, from 1; 0: accumulators
  bool fenced = false;            // a wgmma_fence came since they were handed back
  const char* event = "";         // what `where` is the place of
  Where where;
  Where fence;  // the latest wgmma_fence that looked

  unsigned count() const { return static_cast<unsigned>(values.size()); }
};

struct WgmmaThread {
  std::uint64_t instructions = 0;  // executed so far
  std::uint64_t committed = 0;     // groups
  std::uint64_t waited = 0;        // instructions covered by a wait
  std::uint64_t fences = 0;
  std::uint64_t target = 0;  // blocked until so many instructions are done
  unsigned in_flight = 0;    // accumulators that wgmma holds
  // The latest wait_group: groups committed by then, those it left.
  std::uint64_t waits = 0;  // executed
  std::uint64_t at_wait = 0;
  std::uint64_t left = 0;
  Where waited_at;
  Where latest;                         // wgmma instruction of any kind
  std::vector<RegisterSnapshot> known;  // not those in flight as accumulators
};

struct Warpgroup {
  Cta* cta = nullptr;
  unsigned first_thread = 0;
  std::uint32_t agent = 0;
  std::array<WgmmaThread, kWarpgroupSize> threads;
  std::deque<WgmmaInstruction> queue;  // executed by some thread, not done; the front has number `done`
  std::uint64_t done = 0;
  std::uint64_t started = 0;             // executed by some thread
  std::uint64_t issued = 0;              // executed by all threads
  std::vector<std::uint64_t> group_end;  // number of instructions in the first i + 1 groups
  std::vector<Where> group_where;
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  std::vector<Thread*> waiting;
  std::deque<WgmmaOperand> operands;  // of each of the latest instructions
  std::uint32_t registers = 0;        // a thread's, after setmaxnreg
  RegisterChange register_change;
};

// Executed by the running thread, which is one of 128.
void wgmma_fence(Where where);
/// What the compiler is told by it, the emulator hears, too: where accumulators or fragments of A are.
void wgmma_fence_operand(const void* registers, unsigned count, Where where);
/// The running thread is about to write registers by another instruction: fragments of A that a wgmma in
/// flight reads are not its own.
void check_loaded_registers(const char* what, const std::uint32_t* registers, unsigned count, Where where);
/// a: a descriptor, unless `fragment` (4 registers) is given.
/// With int8 operands d are 32-bit integers.
void wgmma_mma(const char* what, unsigned n, void* d, std::uint64_t a, const std::uint32_t* fragment,
               std::uint64_t b, bool accumulate, Where where, SlabTypes types = {},
               Transposed transposed = {});
void wgmma_commit_group(Where where);
/// Reports arithmetic on such a value, by a thread whose latest wgmma instruction was at `where`.
[[noreturn]] void fail_trapped(std::uint32_t value, Where where);
void wgmma_wait_group(std::uint64_t pending, Where where);
/// Instructions that the thread has executed so far.
std::uint64_t wgmma_executed(const Thread& thread);
std::size_t wgmma_pending(const Warpgroup& warpgroup);
void wgmma_complete(Warpgroup& warpgroup, Random& random);
/// Executes what threads wait for. Whether there was something.
bool wgmma_serve_waits(Warpgroup& warpgroup);
void wgmma_thread_exits(Warpgroup& warpgroup, Thread& thread);
std::string describe_wgmma(const Warpgroup& warpgroup);

}  // namespace emulator
