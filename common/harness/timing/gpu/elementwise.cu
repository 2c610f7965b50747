#include "harness/timing/gpu/elementwise.h"

#include <cuda_runtime.h>

#include <cstdint>

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

}  // namespace

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
