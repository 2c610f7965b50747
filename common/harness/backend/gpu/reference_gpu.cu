// What the harness lets the GPU do: inputs and the reference. Plain kernels, tested against the host's.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "harness/backend/backend.h"
#include "harness/backend/cuda_check.h"
#include "harness/backend/device_reference.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {
namespace {

// A thread computes kMicroRows x kMicroColumns elements of D, 16 rows and 16 columns apart, so that the 16
// threads of a row read 16 neighbouring columns of the tile of B and write 16 neighbouring elements of D.
constexpr int kThreadsX = 16;
constexpr int kThreadsY = 16;
constexpr int kThreads = kThreadsX * kThreadsY;
constexpr int kMicroRows = 8;
constexpr int kMicroColumns = 4;
constexpr int kTileM = kThreadsY * kMicroRows;
constexpr int kTileN = kThreadsX * kMicroColumns;
constexpr int kTileK = 16;
constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // elements of D per launch: 200 MB of scratch

/// One operand's k-tile. binary64 for the accumulators, binary32 for the norm: a product of two bf16 has 16
/// significant bits and is exact in both. Padded by one column, so that the transposing store meets 16
/// different banks.
template <int kRows>
struct OperandTile {
  double wide[kTileK][kRows + 1];   // [k][row]
  float narrow[kTileK][kRows + 1];  // [k][row]

  template <typename Element>
  __device__ void load(const Element* matrix, int first_row, int rows, int first_k, int k) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kTileK; i += kThreads) {
      const int row = i / kTileK;
      const int column = i % kTileK;
      float value = 0;
      if (first_row + row < rows && first_k + column < k)
        value = gemm::to_float(matrix[gemm::offset(first_row + row, first_k + column, k)]);
      wide[column][row] = static_cast<double>(value);
      narrow[column][row] = value;
    }
  }
};

/// value[m][n] = sum of the products in ascending k; norm[m][n] = root of the sum of their squares.
template <bool kNorm, typename Element>
__global__ void __launch_bounds__(kThreads)
    reference_kernel(gemm::Shape shape, const Element* a, const Element* b, double* value, float* norm) {
  __shared__ OperandTile<kTileM> a_tile;
  __shared__ OperandTile<kTileN> b_tile;
  const auto [m, n, k] = shape;
  const int first_row = static_cast<int>(blockIdx.y) * kTileM;
  const int first_column = static_cast<int>(blockIdx.x) * kTileN;
  const int ty = static_cast<int>(threadIdx.x) / kThreadsX;
  const int tx = static_cast<int>(threadIdx.x) % kThreadsX;

  double sum[kMicroRows][kMicroColumns] = {};
  float square_sum[kMicroRows][kMicroColumns] = {};
  for (int first_k = 0; first_k < k; first_k += kTileK) {
    a_tile.load(a, first_row, m, first_k, k);
    b_tile.load(b, first_column, n, first_k, k);
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kTileK; ++i) {
      double b_wide[kMicroColumns];
      float b_narrow[kMicroColumns];
#pragma unroll
      for (int c = 0; c < kMicroColumns; ++c) {
        b_wide[c] = b_tile.wide[i][tx + c * kThreadsX];
        if constexpr (kNorm) b_narrow[c] = b_tile.narrow[i][tx + c * kThreadsX];
      }
#pragma unroll
      for (int r = 0; r < kMicroRows; ++r) {
        const double a_wide = a_tile.wide[i][ty + r * kThreadsY];
        const float a_narrow = a_tile.narrow[i][ty + r * kThreadsY];
#pragma unroll
        for (int c = 0; c < kMicroColumns; ++c) {
          sum[r][c] = fma(a_wide, b_wide[c], sum[r][c]);
          if constexpr (kNorm) {
            const float product = a_narrow * b_narrow[c];
            square_sum[r][c] = fmaf(product, product, square_sum[r][c]);
          }
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kMicroRows; ++r) {
    const int row = first_row + ty + r * kThreadsY;
#pragma unroll
    for (int c = 0; c < kMicroColumns; ++c) {
      const int column = first_column + tx + c * kThreadsX;
      if (row >= m || column >= n) continue;
      value[gemm::offset(row, column, n)] = sum[r][c];
      if constexpr (kNorm) norm[gemm::offset(row, column, n)] = sqrtf(square_sum[r][c]);
    }
  }
}

__global__ void __launch_bounds__(256)
    fill_kernel(gemm::bf16* matrix, InputRule rule, const gemm::bf16* quantiles) {
  const int row = static_cast<int>(blockIdx.x);
  for (int column = static_cast<int>(threadIdx.x); column < rule.columns;
       column += static_cast<int>(blockDim.x))
    matrix[gemm::offset(row, column, rule.columns)] = input_value(rule, row, column, quantiles);
}

/// A device copy of normal_quantiles(), made once and kept: 64 KB.
const gemm::bf16* device_quantiles() {
  static const gemm::bf16* copy = [] {
    constexpr std::size_t kBytes = kNormalQuantiles * sizeof(gemm::bf16);
    auto* memory = static_cast<gemm::bf16*>(device_allocate(kBytes, "the table of normal quantiles"));
    copy_to_device(memory, normal_quantiles(), kBytes);
    return memory;
  }();
  return copy;
}

/// Device memory that goes when the scope ends, also by an exception.
class Scratch {
 public:
  Scratch(std::size_t bytes, std::string_view name) : memory_(device_allocate(bytes, name)) {}
  ~Scratch() { device_free(memory_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_;
};

}  // namespace

bool device_fill(gemm::bf16* device, const InputRule& rule) {
  fill_kernel<<<static_cast<unsigned>(rule.rows), 256>>>(device, rule, device_quantiles());
  check_cuda(cudaGetLastError(), "starting the kernel that fills the inputs");
  synchronize();
  return true;
}

namespace {

template <typename Element>
void launch_reference(const gemm::Shape& shape, const Element* a, const Element* b, double* value_host,
                      float* norm_host) {
  const int rows_per_launch = static_cast<int>(
      std::clamp<std::int64_t>(kChunk / shape.n / kTileM * kTileM, kTileM, shape.m + kTileM));
  const std::size_t elements =
      static_cast<std::size_t>(std::min(rows_per_launch, shape.m)) * static_cast<std::size_t>(shape.n);
  const Scratch value(elements * sizeof(double), "the reference");
  const Scratch norm(norm_host == nullptr ? 1 : elements * sizeof(float), "the norms of the reference");
  for (int first_row = 0; first_row < shape.m; first_row += rows_per_launch) {
    gemm::Shape slab = shape;
    slab.m = std::min(rows_per_launch, shape.m - first_row);
    const dim3 grid(static_cast<unsigned>(gemm::ceil_div(shape.n, kTileN)),
                    static_cast<unsigned>(gemm::ceil_div(slab.m, kTileM)));
    const auto kernel =
        norm_host == nullptr ? reference_kernel<false, Element> : reference_kernel<true, Element>;
    kernel<<<grid, kThreads>>>(slab, a + gemm::offset(first_row, 0, shape.k), b,
                               static_cast<double*>(value.get()), static_cast<float*>(norm.get()));
    check_cuda(cudaGetLastError(), "starting the reference kernel");
    const std::int64_t done = gemm::offset(first_row, 0, shape.n);
    const auto count = static_cast<std::size_t>(slab.m) * static_cast<std::size_t>(shape.n);
    synchronize();
    copy_to_host(value_host + done, value.get(), count * sizeof(double));
    if (norm_host != nullptr) copy_to_host(norm_host + done, norm.get(), count * sizeof(float));
  }
}

}  // namespace

bool device_reference(const gemm::Gemm& problem, double* value_host, float* norm_host) {
  launch_reference(problem.shape, problem.a, problem.b, value_host, norm_host);
  return true;
}

bool device_reference(const gemm::Shape& shape, const float* a_host, const float* b_host, double* value_host,
                      float* norm_host) {
  const std::size_t a_bytes = sizeof(float) * static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.k));
  const std::size_t b_bytes = sizeof(float) * static_cast<std::size_t>(gemm::offset(shape.n, 0, shape.k));
  const Scratch a(a_bytes, "A of the reference");
  const Scratch b(b_bytes, "B of the reference");
  copy_to_device(a.get(), a_host, a_bytes);
  copy_to_device(b.get(), b_host, b_bytes);
  launch_reference(shape, static_cast<const float*>(a.get()), static_cast<const float*>(b.get()), value_host,
                   norm_host);
  return true;
}

bool device_off_limits(const void*, std::size_t) {
  return false;
}

}  // namespace harness
