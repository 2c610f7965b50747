// Device functions of CUDA that no step of the course uses.
//
// CUDA C++ Programming Guide, "Warp Match Functions", "Warp Reduce Functions", "Time Function"; CUDA Math
// API.
#pragma once

#include <cmath>
#include <cstdint>

#include "emulator/instrument/warp_functions.h"
#include "emulator/memory/shared_space.h"
#include "ptx/core.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

#define __noinline__ __attribute__((noinline))
#define __inline__ inline
#define __managed__
#define __nv_pure__
#define __builtin_assume(condition) static_cast<void>(0)

// CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization".
// NOLINTBEGIN(readability-identifier-naming): CUDA's names
inline void cudaGridDependencySynchronize(emulator::Where where = emulator::Where::here()) {
  gemm::ptx::griddepcontrol_wait(where);
}
inline void cudaTriggerProgrammaticLaunchCompletion(emulator::Where where = emulator::Where::here()) {
  gemm::ptx::griddepcontrol_launch_dependents(where);
}
// NOLINTEND(readability-identifier-naming)

// Read-only and cached loads are loads.
template <typename T>
inline T __ldg(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldcs(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldcg(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldca(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldlu(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline void __stcs(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}
template <typename T>
inline void __stcg(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}
template <typename T>
inline void __stwt(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}

inline void __threadfence_system(emulator::Where where = emulator::Where::here()) {
  emulator::fence(emulator::Scope::kDevice, "__threadfence_system", where, emulator::FenceOrder::kSequential);
}

// Scoped atomics: one device, so the device's scope is the system's. The emulator takes an atomic of the
// CTA's scope for one of the device's.
#define EMULATOR_SCOPED(name)                                               \
  template <typename T>                                                     \
  inline T name##_block(T* address, std::type_identity_t<T> value,          \
                        emulator::Where where = emulator::Where::here()) {  \
    return name(address, value, where);                                     \
  }                                                                         \
  template <typename T>                                                     \
  inline T name##_system(T* address, std::type_identity_t<T> value,         \
                         emulator::Where where = emulator::Where::here()) { \
    return name(address, value, where);                                     \
  }
EMULATOR_SCOPED(atomicAdd)
EMULATOR_SCOPED(atomicSub)
EMULATOR_SCOPED(atomicExch)
EMULATOR_SCOPED(atomicMin)
EMULATOR_SCOPED(atomicMax)
EMULATOR_SCOPED(atomicAnd)
EMULATOR_SCOPED(atomicOr)
EMULATOR_SCOPED(atomicXor)
#undef EMULATOR_SCOPED
template <typename T>
inline T atomicCAS_block(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
                         emulator::Where where = emulator::Where::here()) {
  return atomicCAS(address, compare, value, where);
}
template <typename T>
inline T atomicCAS_system(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
                          emulator::Where where = emulator::Where::here()) {
  return atomicCAS(address, compare, value, where);
}
/// ((old == 0 || old > limit) ? limit : old - 1)
inline unsigned atomicDec(unsigned* address, unsigned limit,
                          emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicDec", where,
                                 [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}

// Warp reductions and matches.
inline unsigned __reduce_add_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_add_sync", emulator::WarpReduce::kAdd, mask, value, where);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_min_sync", emulator::WarpReduce::kMin, mask, value, where);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_max_sync", emulator::WarpReduce::kMax, mask, value, where);
}
inline int __reduce_add_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), where));
}
// The sign bit flipped, signed numbers are in the order of unsigned ones.
inline int __reduce_min_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_min_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u, where) ^
                          0x80000000u);
}
inline int __reduce_max_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_max_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u, where) ^
                          0x80000000u);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_and_sync", emulator::WarpReduce::kAnd, mask, value, where);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_or_sync", emulator::WarpReduce::kOr, mask, value, where);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_xor_sync", emulator::WarpReduce::kXor, mask, value, where);
}
/// The lanes of the mask that have the same value.
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, emulator::Where where = emulator::Where::here()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match compares 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return emulator::warp_match("__match_any_sync", mask, bits, where);
}
/// The mask, without lanes that have returned, when all its lanes have the same value; otherwise 0.
template <typename T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all,
                                 emulator::Where where = emulator::Where::here()) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const emulator::Match match = emulator::match_lanes("__match_all_sync", mask, bits, where);
  *all = match.equal == match.all;
  return *all ? match.all : 0;
}

// Addresses.
inline std::size_t __cvta_generic_to_shared(const void* pointer,
                                            emulator::Where where = emulator::Where::here()) {
  return emulator::shared_address(pointer, where);
}
inline void* __cvta_shared_to_generic(std::size_t address, emulator::Where where = emulator::Where::here()) {
  return emulator::cluster_pointer(static_cast<std::uint32_t>(address), where);
}
inline std::size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}

// Time: it goes on, which is all that a kernel may rely on.
inline long long clock64() {
  return emulator::next_clock();
}

// CUDA Math API. The emulator computes what the approximations approximate.
inline float __expf(float x) {
  return std::exp(x);
}
inline float __exp10f(float x) {
  return std::pow(10.0f, x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __log2f(float x) {
  return std::log2(x);
}
inline float __powf(float x, float y) {
  return std::pow(x, y);
}
inline float __sinf(float x) {
  return std::sin(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline float __tanf(float x) {
  return std::tan(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
  return 1.0f / std::sqrt(x);
}
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
constexpr int __mul24(int a, int b) {
  return a * b;
}
constexpr unsigned __umul24(unsigned a, unsigned b) {
  return a * b;
}
constexpr int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u) >> 32);
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31u));
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rz(float x) {
  return static_cast<int>(x);
}
inline int __float2int_rd(float x) {
  return static_cast<int>(std::floor(x));
}
inline unsigned __float2uint_rn(float x) {
  return static_cast<unsigned>(std::nearbyint(x));
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<std::int8_t>(a >> 8 * i) * static_cast<std::int8_t>(b >> 8 * i);
  return c;
}

// Of two types, as CUDA has them.
constexpr unsigned min(unsigned a, int b) {
  return min(a, static_cast<unsigned>(b));
}
constexpr unsigned min(int a, unsigned b) {
  return min(static_cast<unsigned>(a), b);
}
constexpr unsigned max(unsigned a, int b) {
  return max(a, static_cast<unsigned>(b));
}
constexpr unsigned max(int a, unsigned b) {
  return max(static_cast<unsigned>(a), b);
}
