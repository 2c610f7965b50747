#include "harness/timing/gpu/elementwise.h"

#include <cuda_runtime.h>

#include <cstdint>

#include "harness/backend/backend.h"
#include "harness/backend/cuda_check.h"

namespace harness {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 8;  // bf16 in 16 bytes
constexpr int kUnroll = 4;  // vectors of a thread that are in flight

struct alignas(16) Vector {
  gemm::bf16 element[kVector];
};

template <gemm::Activation kActivation>
__device__ float activated(float x) {
  if constexpr (kActivation == gemm::Activation::kRelu) return fmaxf(x, 0.0f);
  if constexpr (kActivation == gemm::Activation::kGelu) {
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.7978845608f * (x + 0.044715f * x * x * x)));
    return 0.5f * x * (1.0f + t);
  }
  if constexpr (kActivation == gemm::Activation::kGeluErf) return 0.5f * x * (1.0f + erff(x * 0.7071067812f));
  if constexpr (kActivation == gemm::Activation::kSilu) return __fdividef(x, 1.0f + __expf(-x));
  if constexpr (kActivation == gemm::Activation::kLeakyRelu) return x < 0 ? gemm::kLeakySlope * x : x;
  return x;
}

/// A CTA takes kThreads * kUnroll neighbouring vectors; D is dense, so only C and the bias need the row.
template <gemm::Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(gemm::Shape shape, gemm::Epilogue epilogue, const gemm::bf16* c, std::int64_t c_pitch,
                       const gemm::bf16* bias, gemm::bf16* d) {
  const int vectors_of_row = shape.n / kVector;
  const std::int64_t vectors = static_cast<std::int64_t>(shape.m) * vectors_of_row;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  const bool has_source = epilogue.beta != 0;
  Vector sum[kUnroll];
  Vector source[kUnroll];
  int row[kUnroll];
  int column[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= vectors) continue;
    row[i] = static_cast<int>(index / vectors_of_row);
    column[i] = static_cast<int>(index - static_cast<std::int64_t>(row[i]) * vectors_of_row) * kVector;
    sum[i] = reinterpret_cast<const Vector*>(d)[index];
    if (has_source) source[i] = *reinterpret_cast<const Vector*>(c + row[i] * c_pitch + column[i]);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= vectors) continue;
    Vector result;
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      float x = epilogue.alpha * gemm::to_float(sum[i].element[j]);
      if (has_source) x = fmaf(epilogue.beta, gemm::to_float(source[i].element[j]), x);
      if (epilogue.bias == gemm::Bias::kColumn) x += gemm::to_float(bias[column[i] + j]);
      if (epilogue.bias == gemm::Bias::kRow) x += gemm::to_float(bias[row[i]]);
      result.element[j] = gemm::to_bf16(activated<kActivation>(x));
    }
    reinterpret_cast<Vector*>(d)[index] = result;
  }
}

template <gemm::Activation kActivation>
void launch(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  const std::int64_t vectors = static_cast<std::int64_t>(problem.shape.m) * (problem.shape.n / kVector);
  const auto blocks = static_cast<unsigned>((vectors + kThreads * kUnroll - 1) / (kThreads * kUnroll));
  elementwise_kernel<kActivation><<<blocks, kThreads, 0, stream>>>(problem.shape, problem.epilogue, problem.c,
                                                                   problem.c_pitch, problem.bias, problem.d);
}

/// The derivative of GELU in the form with tanh: s + 2 z u' s (1 - s) with s = 1 / (1 + e^(-2 u)).
__device__ float gelu_slope(float z) {
  constexpr float kLinear = 2 * 0.7978845608f;
  constexpr float kCubic = 0.044715f * kLinear;
  z = fminf(fmaxf(z, -10.0f), 10.0f);
  const float square = z * z;
  const float e = __expf(-z * fmaf(kCubic, square, kLinear));
  const float s = __fdividef(1.0f, 1.0f + e);
  return fmaf(z * fmaf(3 * kCubic, square, kLinear) * s, e * s, s);
}

/// A vector of D at a time, and of the tensor the same columns: 16 bytes, or a byte of a mask.
template <gemm::Auxiliary kAuxiliary, gemm::Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    tensor_kernel(gemm::Shape shape, void* tensor, std::int64_t pitch, gemm::bf16* d) {
  constexpr bool kKept = kAuxiliary == gemm::Auxiliary::kPreActivation;  // x is there
  const int vectors_of_row = shape.n / kVector;
  const std::int64_t vectors = static_cast<std::int64_t>(shape.m) * vectors_of_row;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  Vector x[kUnroll];
  Vector other[kUnroll];
  std::uint8_t bits[kUnroll];
  std::int64_t place[kUnroll];  // in the tensor
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= vectors) continue;
    const auto row = static_cast<int>(index / vectors_of_row);
    const auto column = static_cast<int>(index - static_cast<std::int64_t>(row) * vectors_of_row) * kVector;
    place[i] = row * pitch + column;
    const auto* const beside = static_cast<const gemm::bf16*>(tensor);
    if constexpr (kKept) x[i] = *reinterpret_cast<const Vector*>(beside + place[i]);
    if constexpr (!kKept) x[i] = reinterpret_cast<const Vector*>(d)[index];
    if constexpr (kAuxiliary == gemm::Auxiliary::kResidual ||
                  kAuxiliary == gemm::Auxiliary::kPreActivationBackward)
      other[i] = *reinterpret_cast<const Vector*>(beside + place[i]);
    if constexpr (kAuxiliary == gemm::Auxiliary::kMaskBackward)
      bits[i] = static_cast<const std::uint8_t*>(tensor)[place[i] / 8];
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= vectors) continue;
    Vector result;
    unsigned positive = 0;
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const float from = gemm::to_float(x[i].element[j]);
      float to = from;
      if constexpr (kAuxiliary == gemm::Auxiliary::kResidual)
        to = activated<kActivation>(from) + gemm::to_float(other[i].element[j]);
      if constexpr (kAuxiliary == gemm::Auxiliary::kPreActivation || kAuxiliary == gemm::Auxiliary::kMask)
        to = activated<kActivation>(from);
      if constexpr (kAuxiliary == gemm::Auxiliary::kPreActivationBackward)
        to = from * gelu_slope(gemm::to_float(other[i].element[j]));
      if constexpr (kAuxiliary == gemm::Auxiliary::kMaskBackward) to = (bits[i] >> j & 1) != 0 ? from : 0.0f;
      if (from > 0) positive |= 1u << j;
      result.element[j] = gemm::to_bf16(to);
    }
    reinterpret_cast<Vector*>(d)[index] = result;
    if constexpr (kAuxiliary == gemm::Auxiliary::kMask)
      static_cast<std::uint8_t*>(tensor)[place[i] / 8] = static_cast<std::uint8_t>(positive);
  }
}

/// Bytes of a mask behind the last vector of a row, up to the end of its last word: a reader of whole words
/// reads them.
__global__ void mask_tail_kernel(gemm::Shape shape, std::uint8_t* mask, std::int64_t pitch) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.m) return;
  for (int byte = shape.n / 8; byte % 4 != 0; ++byte) mask[row * (pitch / 8) + byte] = 0;
}

template <gemm::Auxiliary kAuxiliary, gemm::Activation kActivation = gemm::Activation::kNone>
void launch_tensor(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  const std::int64_t vectors = static_cast<std::int64_t>(problem.shape.m) * (problem.shape.n / kVector);
  const auto blocks = static_cast<unsigned>((vectors + kThreads * kUnroll - 1) / (kThreads * kUnroll));
  tensor_kernel<kAuxiliary, kActivation>
      <<<blocks, kThreads, 0, stream>>>(problem.shape, problem.auxiliary, problem.auxiliary_pitch, problem.d);
}

/// The same for each activation that a kernel of step 32 could have.
template <gemm::Auxiliary kAuxiliary>
void launch_activated(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  using enum gemm::Activation;
  switch (problem.epilogue.activation) {
    case kNone:
      return launch_tensor<kAuxiliary, kNone>(problem, stream);
    case kRelu:
      return launch_tensor<kAuxiliary, kRelu>(problem, stream);
    case kLeakyRelu:
      return launch_tensor<kAuxiliary, kLeakyRelu>(problem, stream);
    case kGelu:
      return launch_tensor<kAuxiliary, kGelu>(problem, stream);
    case kGeluErf:
      return launch_tensor<kAuxiliary, kGeluErf>(problem, stream);
    case kSilu:
      return launch_tensor<kAuxiliary, kSilu>(problem, stream);
  }
}

constexpr int kCtas = 528;      // of a reduction: four for each SM of an H200
constexpr int kRowsAtOnce = 8;  // vectors of a thread that are in flight

/// A CTA has 2048 columns and `rows` rows. A thread keeps the sums of its 8 columns and adds them to the
/// result at the end.
__global__ void __launch_bounds__(kThreads)
    column_sums_kernel(gemm::Shape shape, int rows, const gemm::bf16* d, float* result) {
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * kVector;
  if (column >= shape.n) return;
  const int begin = static_cast<int>(blockIdx.y) * rows;
  const int end = min(begin + rows, shape.m);
  float sums[kVector] = {};
  for (int row = begin; row < end; row += kRowsAtOnce) {
    Vector vectors[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (row + i < end)
        vectors[i] =
            *reinterpret_cast<const Vector*>(d + static_cast<std::int64_t>(row + i) * shape.n + column);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (row + i >= end) continue;
#pragma unroll
      for (int j = 0; j < kVector; ++j) sums[j] += gemm::to_float(vectors[i].element[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kVector; ++j) atomicAdd(result + column + j, sums[j]);
}

/// A warp for each row.
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(gemm::Shape shape, const gemm::bf16* d, float* result) {
  const int row = static_cast<int>(blockIdx.x) * (kThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (row >= shape.m) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int vectors = shape.n / kVector;
  const auto* const from = reinterpret_cast<const Vector*>(d + static_cast<std::int64_t>(row) * shape.n);
  float sum = 0;
  for (int first = lane; first < vectors; first += 32 * kRowsAtOnce) {
    Vector loaded[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + 32 * i < vectors) loaded[i] = from[first + 32 * i];
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + 32 * i >= vectors) continue;
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum += gemm::to_float(loaded[i].element[j]);
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (lane == 0) result[row] = sum;
}

/// The largest magnitude by its bits, which are ordered like the numbers, NaN above all.
__global__ void __launch_bounds__(kThreads)
    amax_kernel(std::int64_t vectors, const gemm::bf16* d, float* result) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const auto* const from = reinterpret_cast<const Vector*>(d);
  unsigned most = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; first < vectors;
       first += stride * kRowsAtOnce) {
    Vector loaded[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + stride * i < vectors) loaded[i] = from[first + stride * i];
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + stride * i >= vectors) continue;
#pragma unroll
      for (int j = 0; j < kVector; ++j) most = max(most, loaded[i].element[j].bits & 0x7fffu);
    }
  }
  most = __reduce_max_sync(~0u, most);
  if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned*>(result), most << 16);
}

__global__ void widening_kernel(const gemm::bf16* narrow, float* wide, int count) {
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) wide[i] = gemm::to_float(narrow[i]);
}

__global__ void __launch_bounds__(kThreads)
    sum_kernel(SumParts parts, gemm::bf16* __restrict__ d, std::int64_t vectors) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  float sum[kUnroll][kVector] = {};
  for (int part = 0; part < parts.parts; ++part) {
    Vector values[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::int64_t index = first + i * kThreads;
      if (index < vectors) values[i] = reinterpret_cast<const Vector*>(parts.part[part])[index];
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum[i][j] += gemm::to_float(values[i].element[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= vectors) continue;
    Vector result;
#pragma unroll
    for (int j = 0; j < kVector; ++j) result.element[j] = gemm::to_bf16(sum[i][j]);
    reinterpret_cast<Vector*>(d)[index] = result;
  }
}

}  // namespace

void launch_with_tensor(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  using enum gemm::Auxiliary;
  switch (problem.epilogue.auxiliary) {
    case kResidual:
      launch_activated<kResidual>(problem, stream);
      break;
    case kPreActivation:
      launch_activated<kPreActivation>(problem, stream);
      break;
    case kMask:
      launch_activated<kMask>(problem, stream);
      if (problem.shape.n % gemm::kMaskWordBits != 0)
        mask_tail_kernel<<<static_cast<unsigned>(gemm::ceil_div(problem.shape.m, kThreads)), kThreads, 0,
                           stream>>>(problem.shape, static_cast<std::uint8_t*>(problem.auxiliary),
                                     problem.auxiliary_pitch);
      break;
    case kMaskBackward:
      launch_tensor<kMaskBackward>(problem, stream);
      break;
    case kPreActivationBackward:
      launch_tensor<kPreActivationBackward>(problem, stream);
      break;
    case kNone:
    case kGate:
      throw Error("the second kernel of a pair has no tensor to read or write, or a gate");
  }
  check_cuda(cudaGetLastError(), "starting the kernel with a tensor");
}

void launch_reduction(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  const auto [m, n, k] = problem.shape;
  const auto reduced = static_cast<std::size_t>(problem.reduced_length) * sizeof(float);
  switch (problem.epilogue.reduction) {
    case gemm::Reduction::kColumnSums: {
      check_cuda(cudaMemsetAsync(problem.reduced, 0, reduced, stream), "setting the sums to zero");
      const int across = gemm::ceil_div(n, kThreads * kVector);
      const int rows =
          gemm::ceil_div(gemm::ceil_div(m, gemm::ceil_div(kCtas, across)), kRowsAtOnce) * kRowsAtOnce;
      const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(gemm::ceil_div(m, rows)));
      column_sums_kernel<<<grid, kThreads, 0, stream>>>(problem.shape, rows, problem.d, problem.reduced);
      break;
    }
    case gemm::Reduction::kRowSums:
      row_sums_kernel<<<static_cast<unsigned>(gemm::ceil_div(m, kThreads / 32)), kThreads, 0, stream>>>(
          problem.shape, problem.d, problem.reduced);
      break;
    case gemm::Reduction::kAmax:
      check_cuda(cudaMemsetAsync(problem.reduced, 0, reduced, stream), "setting the maximum to zero");
      amax_kernel<<<kCtas, kThreads, 0, stream>>>(static_cast<std::int64_t>(m) * (n / kVector), problem.d,
                                                  problem.reduced);
      break;
    case gemm::Reduction::kNone:
    case gemm::Reduction::kTopKSoftmax:
      throw Error("the second kernel of a pair has nothing to sum up");
  }
  check_cuda(cudaGetLastError(), "starting the reduction");
}

void launch_second(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  if (problem.epilogue.reduction != gemm::Reduction::kNone) return launch_reduction(problem, stream);
  if (problem.epilogue.auxiliary != gemm::Auxiliary::kNone) return launch_with_tensor(problem, stream);
  launch_elementwise(problem, stream);
}

void launch_sum(const SumParts& parts, gemm::bf16* d, std::int64_t count, gemm::ptx::Stream stream) {
  const std::int64_t vectors = count / kVector;
  const auto blocks = static_cast<unsigned>((vectors + kThreads * kUnroll - 1) / (kThreads * kUnroll));
  sum_kernel<<<blocks, kThreads, 0, stream>>>(parts, d, vectors);
  check_cuda(cudaGetLastError(), "starting a sum of partials");
}

void launch_widening(const gemm::bf16* narrow, float* wide, int count, gemm::ptx::Stream stream) {
  widening_kernel<<<static_cast<unsigned>(gemm::ceil_div(count, kThreads)), kThreads, 0, stream>>>(
      narrow, wide, count);
  check_cuda(cudaGetLastError(), "starting the widening kernel");
}

void launch_elementwise(const gemm::Problem& problem, gemm::ptx::Stream stream) {
  switch (problem.epilogue.activation) {
    case gemm::Activation::kNone:
      launch<gemm::Activation::kNone>(problem, stream);
      break;
    case gemm::Activation::kRelu:
      launch<gemm::Activation::kRelu>(problem, stream);
      break;
    case gemm::Activation::kLeakyRelu:
      launch<gemm::Activation::kLeakyRelu>(problem, stream);
      break;
    case gemm::Activation::kGelu:
      launch<gemm::Activation::kGelu>(problem, stream);
      break;
    case gemm::Activation::kGeluErf:
      launch<gemm::Activation::kGeluErf>(problem, stream);
      break;
    case gemm::Activation::kSilu:
      launch<gemm::Activation::kSilu>(problem, stream);
      break;
  }
  check_cuda(cudaGetLastError(), "starting the elementwise kernel");
}

}  // namespace harness
