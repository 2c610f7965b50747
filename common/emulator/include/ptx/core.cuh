// The CUDA language for the emulator backend: what nvcc would provide, for an ordinary C++20 compiler. The
// GPU's counterpart of this header adds nothing.
//
// Device functions that wait or that touch memory take the place they are called from as a last, defaulted
// argument.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/machine/alignment.h"
#include "emulator/machine/context.h"
#include "emulator/machine/launch/launch_bounds.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/poison.h"
#include "emulator/machine/vector_types.h"
#include "emulator/machine/where.h"
#include "emulator/memory/atomics.h"
#include "ptx/where.cuh"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) EMULATOR_LAUNCH_BOUNDS(__VA_ARGS__)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
// A CTA's static shared memory is a thread-local variable: an OS thread runs one CTA at a time, and the
// scheduler exchanges the copies of CTAs that take turns (memory/static_shared.h). `extern __shared__`
// declares an array that the linker defines (cmake/link_extern_shared).
#define __shared__ thread_local
// CUDA lets alignas follow __shared__, where C++ has no place for it; GNU's attribute may stand anywhere. In
// an argument, a > of its own needs parentheses.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define alignas(...) __attribute__((aligned(::emulator::alignment<__VA_ARGS__>())))

// Set by the scheduler when it switches to a thread.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local uint3 blockDim;
extern constinit thread_local uint3 gridDim;
inline constexpr int warpSize = 32;

// CUDA C++ Programming Guide, "Synchronization Functions".

inline void __syncthreads(emulator::Where where = emulator::Where::here()) {
  emulator::cta_barrier("__syncthreads", 0, where);
}
/// The number of threads whose predicate is not 0.
inline int __syncthreads_count(int predicate, emulator::Where where = emulator::Where::here()) {
  return emulator::cta_barrier("__syncthreads_count", predicate, where);
}
inline int __syncthreads_or(int predicate, emulator::Where where = emulator::Where::here()) {
  return emulator::cta_barrier("__syncthreads_or", predicate, where) != 0;
}
inline int __syncthreads_and(int predicate, emulator::Where where = emulator::Where::here()) {
  return emulator::cta_barrier("__syncthreads_and", predicate == 0, where) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, emulator::Where where = emulator::Where::here()) {
  emulator::warp_collective("__syncwarp", mask, nullptr, nullptr, false, true, where);
}

// CUDA C++ Programming Guide, "Memory Fence Functions".

inline void __threadfence(emulator::Where where = emulator::Where::here()) {
  emulator::fence(emulator::Scope::kDevice, "__threadfence", where, emulator::FenceOrder::kSequential);
}
inline void __threadfence_block(emulator::Where where = emulator::Where::here()) {
  emulator::fence(emulator::Scope::kCta, "__threadfence_block", where);
}

// CUDA C++ Programming Guide, "Warp Vote Functions", "Warp Shuffle Functions". They order no memory accesses.

inline unsigned __ballot_sync(unsigned mask, int predicate, emulator::Where where = emulator::Where::here()) {
  return emulator::ballot("__ballot_sync", mask, predicate, where);
}
inline int __any_sync(unsigned mask, int predicate, emulator::Where where = emulator::Where::here()) {
  return emulator::ballot("__any_sync", mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, emulator::Where where = emulator::Where::here()) {
  const emulator::Ballot ballot = emulator::vote("__all_sync", mask, predicate, where);
  return ballot.lanes == ballot.voters;
}
/// Hardware may answer with any set of lanes that happen to run together; so does the emulator, and each lane
/// of the set gets the same answer.
inline unsigned __activemask(emulator::Where where = emulator::Where::here()) {
  return emulator::lanes_together("__activemask", where);
}

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source_lane, int width = 32,
                     emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("__shfl_sync", value, where);
  return emulator::shuffle("__shfl_sync", emulator::Shuffle::kIndex, mask, value, source_lane, width, where);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("__shfl_up_sync", value, where);
  return emulator::shuffle("__shfl_up_sync", emulator::Shuffle::kUp, mask, value, static_cast<int>(delta),
                           width, where);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("__shfl_down_sync", value, where);
  return emulator::shuffle("__shfl_down_sync", emulator::Shuffle::kDown, mask, value, static_cast<int>(delta),
                           width, where);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                         emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("__shfl_xor_sync", value, where);
  return emulator::shuffle("__shfl_xor_sync", emulator::Shuffle::kXor, mask, value, lane_mask, width, where);
}

// CUDA C++ Programming Guide, "Atomic Functions": relaxed, on global or shared memory; each returns the old
// value.

template <typename T>
inline T atomicAdd(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("atomicAdd", value, where);
  return emulator::atomic_update(address, "atomicAdd", where,
                                 [value](T old) { return static_cast<T>(old + value); });
}
/// Of a vector in global memory: each element on its own.
inline float2 atomicAdd(float2* address, float2 value, emulator::Where where = emulator::Where::here()) {
  return {atomicAdd(&address->x, value.x, where), atomicAdd(&address->y, value.y, where)};
}
inline float4 atomicAdd(float4* address, float4 value, emulator::Where where = emulator::Where::here()) {
  return {atomicAdd(&address->x, value.x, where), atomicAdd(&address->y, value.y, where),
          atomicAdd(&address->z, value.z, where), atomicAdd(&address->w, value.w, where)};
}
template <typename T>
inline T atomicSub(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicSub", where,
                                 [value](T old) { return static_cast<T>(old - value); });
}
template <typename T>
inline T atomicExch(T* address, std::type_identity_t<T> value,
                    emulator::Where where = emulator::Where::here()) {
  emulator::check_poison_of("atomicExch", value, where);
  return emulator::atomic_update(address, "atomicExch", where, [value](T) { return value; });
}
template <typename T>
inline T atomicMin(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicMin", where,
                                 [value](T old) { return value < old ? value : old; });
}
template <typename T>
inline T atomicMax(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicMax", where,
                                 [value](T old) { return old < value ? value : old; });
}
template <typename T>
inline T atomicAnd(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicAnd", where, [value](T old) { return old & value; });
}
template <typename T>
inline T atomicOr(T* address, std::type_identity_t<T> value,
                  emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicOr", where, [value](T old) { return old | value; });
}
template <typename T>
inline T atomicXor(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicXor", where, [value](T old) { return old ^ value; });
}
/// ((old >= limit) ? 0 : old + 1)
inline unsigned atomicInc(unsigned* address, unsigned limit,
                          emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicInc", where,
                                 [limit](unsigned old) { return old >= limit ? 0 : old + 1; });
}
template <typename T>
inline T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicCAS", where,
                                 [compare, value](T old) { return old == compare ? value : old; });
}

// CUDA Math API: integer and type-casting intrinsics.

constexpr int __popc(unsigned value) {
  return std::popcount(value);
}
constexpr int __popcll(unsigned long long value) {
  return std::popcount(value);
}
constexpr int __clz(int value) {
  return std::countl_zero(static_cast<unsigned>(value));
}
constexpr int __clzll(long long value) {
  return std::countl_zero(static_cast<unsigned long long>(value));
}
constexpr int __ffs(int value) {
  return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1;
}
constexpr int __ffsll(long long value) {
  return value == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(value)) + 1;
}
constexpr unsigned __brev(unsigned value) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (value >> bit & 1u) << (31 - bit);
  return result;
}
constexpr unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
/// Byte i of the result is byte (selector >> 4i & 7) of the eight bytes of y:x; bit 3 replicates its sign
/// instead.
constexpr unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7u))) & 0xffu;
    if (pick & 8u) byte = byte & 0x80u ? 0xffu : 0;
    result |= byte << (8 * i);
  }
  return result;
}
constexpr float __uint_as_float(unsigned value) {
  return std::bit_cast<float>(value);
}
constexpr unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
constexpr float __int_as_float(int value) {
  return std::bit_cast<float>(value);
}
constexpr int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fmaf(a, b, c);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float rsqrtf(float value) {
  return 1.0f / std::sqrt(value);
}

template <typename T>
requires std::is_arithmetic_v<T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
requires std::is_arithmetic_v<T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

/// Gives way to other threads; how long is up to the scheduler.
inline void __nanosleep(unsigned, emulator::Where where = emulator::Where::here()) {
  emulator::note_pause("__nanosleep", where);
  emulator::this_thread("__nanosleep", where).cta->gang->yield();
}
[[noreturn]] inline void __trap(emulator::Where where = emulator::Where::here()) {
  emulator::trap(where);
}

namespace gemm::ptx {

/// Whether a kernel that is built for less is faster: not here.
inline constexpr bool kNarrowKernels = false;

}  // namespace gemm::ptx
