// A softmax over rows, one CTA per row: the largest element, the sum of exponentials, the division.
//
// Broken on purpose: -D ONE_BARRIER_LESS (the sum overwrites words from which other threads still read the
// maximum), -D NO_NEUTRAL (threads without an element compare an uninitialised register, which the emulator
// does not notice).
#include <cmath>
#include <vector>

template <typename Op>
__device__ float over_block(float value, float* scratch, Op op) {
  for (int delta = 16; delta > 0; delta /= 2) value = op(value, __shfl_xor_sync(0xffffffff, value, delta));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; ++warp) value = op(value, scratch[warp]);
#ifndef ONE_BARRIER_LESS
  __syncthreads();  // all have read: the next call may write
#endif
  return value;
}

__global__ void __launch_bounds__(128)
    softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
  __shared__ float scratch[4];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
#ifdef NO_NEUTRAL
  float top;
  if (static_cast<int>(threadIdx.x) < columns) top = row[threadIdx.x];
#else
  float top = -INFINITY;
#endif
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    top = fmaxf(top, row[i]);
  top = over_block(top, scratch, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    sum += __expf(row[i] - top);
  sum = over_block(sum, scratch, [](float a, float b) { return a + b; });
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    y[static_cast<size_t>(blockIdx.x) * columns + i] = __expf(row[i] - top) / sum;
}

void check_kernel(emulate::Run& run) {
  const int rows = 5;
  const int columns = 100;
  const std::vector<float> values = run.uniform<float>(rows * columns);
  const float* x = run.buffer("x", values);
  float* y = run.buffer<float>("y", rows * columns);
  softmax<<<rows, 128>>>(x, y, columns);
  std::vector<double> expected(values.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += std::exp(static_cast<double>(values[static_cast<size_t>(r * columns + c)]));
    for (int c = 0; c < columns; ++c) {
      const auto at = static_cast<size_t>(r * columns + c);
      expected[at] = std::exp(static_cast<double>(values[at])) / sum;
    }
  }
  run.expect_close("y", run.host(y), expected, 1e-5);
}
