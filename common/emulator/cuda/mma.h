// nvcuda::wmma on the emulator: a fragment's elements lie with the lanes in an order of the emulator's own,
// as CUDA leaves it open. Products are summed in binary32 (integers: exactly), in ascending order of k.
//
// CUDA C++ Programming Guide, "Warp Matrix Functions".
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "emulator/sync/lanes.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

template <typename T>
using storage_t = std::conditional_t<std::is_same_v<T, precision::tf32>, float, T>;

template <typename Use, int kM, int kN, int kK, typename T, typename Layout = void>
struct fragment {
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? kK : kM;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? kK : kN;
  static constexpr int num_elements = kRows * kColumns / 32;
  using element_type = storage_t<T>;
  using storage_element_type = storage_t<T>;
  storage_t<T> x[num_elements];
};

template <typename Use, int kM, int kN, int kK, typename T, typename Layout, typename Value>
void fill_fragment(fragment<Use, kM, kN, kK, T, Layout>& f, const Value& value) {
  for (auto& x : f.x) x = value;
}

/// Element i of the lane: index (lane + 16 + i) % 32 + 32 i of the matrix, row by row. A lane that reads
/// every 32nd element of a stored tile, as most code does, thus reads what other lanes have stored.
template <typename Fragment, typename Visit>
[[gnu::always_inline]] inline void emulated_elements(Visit visit) {
  const int lane = emulator::running_thread().lane();
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int index = (lane + 16 + i) % 32 + 32 * i;
    visit(i, index / Fragment::kColumns, index % Fragment::kColumns);
  }
}

constexpr int emulated_lane(int index) {
  return (index + 16 + 31 * (index / 32)) % 32;
}

template <typename Use, int kM, int kN, int kK, typename T, typename Layout>
[[gnu::always_inline]] inline void load_matrix_sync(fragment<Use, kM, kN, kK, T, Layout>& f,
                                                    const storage_t<T>* memory, unsigned leading,
                                                    emulator::Where where = emulator::Where::here()) {
  emulated_elements<fragment<Use, kM, kN, kK, T, Layout>>([&](int i, int row, int column) {
    const std::size_t at = std::is_same_v<Layout, row_major> ? row * std::size_t{leading} + column
                                                             : column * std::size_t{leading} + row;
    f.x[i] = memory[at];
  });
  emulator::note_warp_instruction("load_matrix_sync", where);
}
template <int kM, int kN, int kK, typename T>
[[gnu::always_inline]] inline void load_matrix_sync(fragment<accumulator, kM, kN, kK, T>& f, const T* memory,
                                                    unsigned leading, layout_t layout,
                                                    emulator::Where where = emulator::Where::here()) {
  emulated_elements<fragment<accumulator, kM, kN, kK, T>>([&](int i, int row, int column) {
    f.x[i] = memory[layout == mem_row_major ? row * std::size_t{leading} + column
                                            : column * std::size_t{leading} + row];
  });
  emulator::note_warp_instruction("load_matrix_sync", where);
}
template <int kM, int kN, int kK, typename T>
[[gnu::always_inline]] inline void store_matrix_sync(T* memory, const fragment<accumulator, kM, kN, kK, T>& f,
                                                     unsigned leading, layout_t layout,
                                                     emulator::Where where = emulator::Where::here()) {
  emulated_elements<fragment<accumulator, kM, kN, kK, T>>([&](int i, int row, int column) {
    memory[layout == mem_row_major ? row * std::size_t{leading} + column
                                   : column * std::size_t{leading} + row] = f.x[i];
  });
  emulator::note_warp_instruction("store_matrix_sync", where);
}
inline float __float_to_tf32(float value) {
  return value;
}

/// d = a * b + c
template <int kM, int kN, int kK, typename TD, typename TA, typename LA, typename TB, typename LB,
          typename TC>
void mma_sync(fragment<accumulator, kM, kN, kK, TD>& d, const fragment<matrix_a, kM, kN, kK, TA, LA>& a,
              const fragment<matrix_b, kM, kN, kK, TB, LB>& b, const fragment<accumulator, kM, kN, kK, TC>& c,
              bool = false, emulator::Where where = emulator::Where::here()) {
  using Sum = std::conditional_t<std::is_integral_v<TC>, TC, float>;
  struct Operands {
    fragment<accumulator, kM, kN, kK, TD>* d;
    const fragment<matrix_a, kM, kN, kK, TA, LA>* a;
    const fragment<matrix_b, kM, kN, kK, TB, LB>* b;
    const fragment<accumulator, kM, kN, kK, TC>* c;
  } operands{&d, &a, &b, &c};
  emulator::warp_collective(
      "mma_sync", 0xffffffffu, &operands,
      [](emulator::Rendezvous& meeting) {
        const auto of = [&](int index) {
          return static_cast<Operands*>(meeting.arguments[static_cast<std::size_t>(emulated_lane(index))]);
        };
        const auto element = [](auto value) {
          if constexpr (std::is_same_v<decltype(value), float> && std::is_same_v<TA, precision::tf32>)
            return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000u);
          else
            return static_cast<Sum>(value);
        };
        Sum sums[kM][kN];
        for (int m = 0; m < kM; ++m) {
          for (int n = 0; n < kN; ++n) {
            Sum sum = static_cast<Sum>(of(m * kN + n)->c->x[(m * kN + n) / 32]);
            for (int k = 0; k < kK; ++k)
              sum += element(of(m * kK + k)->a->x[(m * kK + k) / 32]) *
                     element(of(k * kN + n)->b->x[(k * kN + n) / 32]);
            sums[m][n] = sum;
          }
        }
        for (int index = 0; index < kM * kN; ++index)
          of(index)->d->x[index / 32] = static_cast<TD>(sums[index / kN][index % kN]);
      },
      true, false, where);
}

// Products of single bits and of 4-bit integers, which libraries name: the emulator has none.
namespace experimental {
namespace precision {
struct b1 {};
struct u4 {};
struct s4 {};
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental
template <typename... Arguments>
void bmma_sync(Arguments&&...) {
  __trap();
}

}  // namespace nvcuda::wmma
// NOLINTEND(readability-identifier-naming)
