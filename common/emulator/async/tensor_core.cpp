#include "emulator/async/tensor_core.h"

#include <bit>
#include <cstring>

// The host's widest vectors, picked when the program starts. Not under the sanitizers: they start after that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GEMM_FOR_WIDE_VECTORS __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define GEMM_FOR_WIDE_VECTORS
#endif

namespace emulator {
namespace {

constexpr unsigned kLanes = 16;
constexpr unsigned kVectors = kSlabRows / kLanes;
constexpr unsigned kColumns = 2;  // at a time: their accumulators stay in registers over the whole depth
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

GEMM_FOR_WIDE_VECTORS
void multiply_slab(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch) {
  alignas(64) float columns_of_a[kSlabDepth][kSlabRows];
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kSlabDepth; ++k) columns_of_a[k][row] = from_bf16(a[row][k]);
  }
  for (unsigned first = 0; first < n; first += kColumns) {
    Vector sums[kColumns][kVectors] = {};
    for (unsigned i = 0; i < kColumns && accumulate; ++i)
      std::memcpy(sums[i], d + (first + i) * pitch, sizeof sums[i]);
    for (unsigned k = 0; k < kSlabDepth; ++k) {
#pragma GCC unroll 4
      for (unsigned v = 0; v < kVectors; ++v) {
        Vector column;
        std::memcpy(&column, &columns_of_a[k][v * kLanes], sizeof column);
#pragma GCC unroll 4
        for (unsigned i = 0; i < kColumns; ++i) sums[i][v] += column * from_bf16(b[first + i][k]);
      }
    }
    for (unsigned i = 0; i < kColumns; ++i) std::memcpy(d + (first + i) * pitch, sums[i], sizeof sums[i]);
  }
}

}  // namespace emulator
