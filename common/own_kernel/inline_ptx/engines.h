// Barriers, copies and matrix instructions of inline PTX: what lies between their operands, which are
// registers, and the emulator's functions.
#pragma once

#include <cuda_runtime.h>

#include <cuda/ptx>

#include "emulator/async/cp_async.h"
#include "emulator/async/descriptor_cache.h"
#include "emulator/async/hopper.h"
#include "emulator/async/matrix.h"
#include "emulator/async/tcgen05.h"
#include "emulator/async/wgmma.h"
#include "emulator/instrument/reductions.h"
#include "emulator/machine/options.h"
#include "emulator/report/report.h"
#include "emulator/sync/cluster.h"
#include "emulator/sync/mbarrier.h"
#include "emulator/sync/warps.h"
#include "own_kernel/inline_ptx/memory.h"
#include "ptx/clusterlaunchcontrol.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/mbarrier_word.h"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace inline_ptx {

/// The statement needs what the emulator does not have.
[[noreturn]] inline void refuse(const std::string& sentence, Where where) {
  emulator::Report report(sentence);
  report.line("where", where.text());
  report.rule("this instruction of inline PTX runs on the emulator", "docs/emulator/emulated-forms.md");
  emulator::fail("inline-ptx", report.str());
  __builtin_unreachable();
}

/// An instruction that no translation is known of, when it is reached.
[[noreturn]] inline void untranslated(const char* what, Where where) {
  refuse(std::string("the emulator has no inline PTX like '") + what + "'", where);
}

// Special registers.

inline u32 nsmid() {
  return static_cast<u32>(emulator::options().sm_count);
}
/// CTA i is on SM i, modulo their number.
inline u32 smid() {
  return static_cast<u32>(emulator::running_thread().cta->linear % nsmid());
}
inline u32 lanemask_eq(Where where) {
  return 1u << cuda::ptx::get_sreg_laneid(where);
}
inline u32 dynamic_shared_bytes() {
  return static_cast<u32>(emulator::running_thread().cta->dynamic_window.bytes);
}
inline u32 threads_of_cta() {
  return blockDim.x * blockDim.y * blockDim.z;
}

// Barriers, votes, shuffles.

struct Elected {
  bool is_leader;
  u32 leader;  // its lane
};
inline Elected elect(u32 mask, bool wants_lane, Where where) {
  const bool is_leader = mask == 0xffffffffu ? emulator::elect(where) : emulator::elect_of(mask, where);
  if (!wants_lane) return {is_leader, 0};
  return {is_leader,
          static_cast<u32>(std::countr_zero(emulator::ballot("elect.sync", mask, is_leader, where)))};
}
struct Shuffled {
  u32 value;
  bool in_range;
};
/// `c`: the highest lane that a source may have, and in bits 8 to 12 the lane bits that stay.
inline Shuffled shuffle(const char* what, emulator::Shuffle kind, u32 mask, u32 value, u32 b, u32 c,
                        Where where) {
  const u32 lane = cuda::ptx::get_sreg_laneid(where);
  const u32 kept = c >> 8 & 31u;
  const u32 clamp = c & 31u;
  const u32 highest = (lane & kept) | (clamp & ~kept);
  u32 source = lane;
  bool in_range = true;
  b &= 31u;
  switch (kind) {
    case emulator::Shuffle::kUp:
      source = lane - b;
      in_range = static_cast<s32>(source) >= static_cast<s32>(highest);
      break;
    case emulator::Shuffle::kDown:
      source = lane + b;
      in_range = source <= highest;
      break;
    case emulator::Shuffle::kXor:
      source = lane ^ b;
      in_range = source <= highest;
      break;
    default:
      source = (lane & kept) | (b & ~kept & 31u);
      in_range = source <= highest;
  }
  if (!in_range) source = lane;
  return {
      emulator::shuffle(what, emulator::Shuffle::kIndex, mask, value, static_cast<int>(source), 32, where),
      in_range};
}

// Clusters.

inline u32 map_shared(u32 address, u32 rank, Where where) {
  return emulator::mapa(address, rank, where);
}
inline u64 map_generic(u64 address, u32 rank, Where where) {
  return generic_address(emulator::mapa(static_cast<u32>(shared_address(address, where)), rank, where),
                         where);
}
inline u32 rank_of(u64 address, bool is_shared, Where where) {
  return static_cast<u32>(is_shared ? address : shared_address(address, where)) >> 24;
}
inline void fence_tensormap_acquire(emulator::FenceScope scope, u64 map, Where where) {
  emulator::fence_proxy_tensormap_acquire(scope, pointer(map), where);
}

// mbarriers.

inline void* mbarrier_at(u64 address, bool is_shared, Where where) {
  return is_shared ? shared_pointer(address, where) : pointer(address);
}
inline u32 parity_of(u64 state) {
  return gemm::ptx::decode_mbarrier(state).parity;
}
inline bool mbarrier_try_wait(const char* what, void* object, u32 parity, bool cluster, bool relaxed,
                              Where where) {
  using emulator::Acquires;
  const Acquires acquires = !cluster ? Acquires::kCta : relaxed ? Acquires::kTensor : Acquires::kCluster;
  return emulator::mbarrier_try_wait(what, object, parity, acquires, where);
}
inline bool mbarrier_test_wait(const char* what, void* object, u32 parity, bool cluster, bool, Where where) {
  return emulator::mbarrier_test_wait(what, object, parity, where, cluster);
}
inline u64 mbarrier_arrive(void* object, const emulator::ArriveOptions& options, Where where) {
  if (options.expects) gemm::ptx::trace_state(gemm::ptx::TraceState::kIssue, where);
  return emulator::mbarrier_arrive_state(object, options, where);
}
inline void mbarrier_arrive_remote(u64 address, const emulator::ArriveOptions& options, Where where) {
  emulator::mbarrier_arrive_remote(static_cast<u32>(address), options, where);
}

// Copies.

/// What a cp.async reads: a number of bytes, or nothing where a predicate says so.
template <typename V>
int source_bytes(u32 bytes, const V& source) {
  if constexpr (std::is_same_v<V, bool>) return source ? 0 : static_cast<int>(bytes);
  return as<s32>(source);
}
inline void cp_async_wait_group(u32 pending, Where where) {
  emulator::cp_async_engine("cp.async.wait_group", where).wait_groups(pending, where);
}
constexpr emulator::ReductionKind reduction_kind(std::string_view name) {
  using Kind = emulator::ReductionKind;
  return name == "add"   ? Kind::kAdd
         : name == "min" ? Kind::kMin
         : name == "max" ? Kind::kMax
         : name == "inc" ? Kind::kInc
         : name == "dec" ? Kind::kDec
         : name == "and" ? Kind::kAnd
         : name == "or"  ? Kind::kOr
                         : Kind::kXor;
}
inline emulator::Reduction tensor_reduction(const emulator::TensorMapBits& map,
                                            emulator::ReductionKind kind) {
  return emulator::reduction_of(map, kind);
}
inline void tensormap_replace(u64 map, const emulator::MapChange& change, Where where) {
  emulator::tensormap_replace(change.shared ? shared_pointer(map, where) : pointer(map), change, where);
}

// Matrices.

/// The row that a lane names, of ldmatrix and stmatrix: with fewer than four matrices, the addresses of the
/// upper lanes are not used.
inline void* matrix_row(u64 address, bool is_shared, u32 matrices, Where where) {
  if (cuda::ptx::get_sreg_laneid(where) >= 8 * matrices) return nullptr;
  return is_shared ? shared_pointer(address, where) : pointer(address);
}
template <typename V>
const u32* fragment(const V& value) {
  static_assert(sizeof(V) == 4, "a register of a fragment has 32 bits");
  return reinterpret_cast<const u32*>(&value);
}
/// The registers of a matrix instruction, which the emulator watches while it runs: the elements of an array.
template <int kCount, typename T>
T* in_one_array(const char* what, T* const (&registers)[kCount], Where where) {
  for (int i = 1; i < kCount; ++i) {
    if (registers[i] != registers[0] + i)
      refuse(std::string("the registers of ") + what +
                 " are not the elements of one array in their order, which the emulator needs",
             where);
  }
  return registers[0];
}
inline void check_scales(const char* what, s32 a, s32 b, Where where) {
  if (a != 1 || b != 1)
    refuse(std::string("the emulator has no ") + what + " that negates an operand: both scales have to be 1",
           where);
}
/// A register that a tcgen05.ld fills.
template <typename V>
float* loaded(V& value) {
  static_assert(sizeof(V) == 4, "a register of tcgen05.ld has 32 bits");
  return reinterpret_cast<float*>(&value);
}
/// The vector of a tcgen05.mma that says which lanes of D stay as they are.
inline void check_all_lanes(const char* what, u32 kept, Where where) {
  if (kept != 0)
    refuse(
        std::string("the emulator has no ") + what + " that leaves lanes of D alone: the vector has to be 0",
        where);
}
inline void wgmma_wait_group(u32 pending, Where where) {
  if (pending == 0) gemm::ptx::trace_state(gemm::ptx::TraceState::kDrain, where);
  emulator::wgmma_wait_group(pending, where);
  gemm::ptx::trace_state(gemm::ptx::TraceState::kNone, where);
}

}  // namespace inline_ptx
