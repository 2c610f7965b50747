// A chain of layers that may overlap: each loads its weights and waits before it reads activations.
//
// Broken on purpose: -D NO_WAIT (no wait for the previous layer), -D WAIT_BEHIND_LOAD (it waits too late).
#include <vector>

constexpr int kLayers = 4;
constexpr int kWidth = 96;

__global__ void layer(const float* weights, const float* from, float* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  const float weight = weights[i];  // nobody writes weights, so they need no wait
#ifdef WAIT_BEHIND_LOAD
  const float early = from[i];
#endif
#ifndef NO_WAIT
  cudaGridDependencySynchronize();
#endif
#ifdef WAIT_BEHIND_LOAD
  to[i] = early + weight;
#else
  to[i] = from[i] + weight;
#endif
}

void check_kernel(emulate::Run& run) {
  std::vector<float> weights(kLayers * kWidth);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7);
  const float* w = run.buffer("weights", weights);
  float* x[2] = {run.buffer("x0", std::vector<float>(kWidth, 1.0f)),
                 run.buffer("x1", std::vector<float>(kWidth, 0.0f))};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(3);
  config.blockDim = dim3(kWidth / 3);
  config.attrs = &attribute;
  config.numAttrs = 1;
  for (int i = 0; i < kLayers; ++i)
    cudaLaunchKernelEx(&config, layer, w + i * kWidth, const_cast<const float*>(x[i % 2]), x[(i + 1) % 2]);
  std::vector<float> got(kWidth);
  cudaMemcpy(got.data(), x[kLayers % 2], sizeof(float) * kWidth, cudaMemcpyDeviceToHost);
  std::vector<float> expected(kWidth, 1.0f);
  for (int i = 0; i < kLayers * kWidth; ++i)
    expected[static_cast<size_t>(i % kWidth)] += weights[static_cast<size_t>(i)];
  run.expect_equal("x", got, expected);
}
