// IST-DASLab/marlin: -I FOLDER/marlin. B has 4 bits, in the order that the kernel wants.
#include "marlin_cuda_kernel.cu"

#include "published.h"

/// Of a tile of 1024 weights: which of them, taken by rows of 16 x 16 parts, stands where.
std::vector<int> order_of_weights() {
  std::vector<int> order;
  for (int lane = 0; lane < 32; ++lane) {
    for (int part = 0; part < 4; ++part) {
      const auto weight = [&](int i) {  // of the eight that a lane gets of a part
        const int row = 2 * (lane % 4) + i % 2 + i / 2 % 2 * 8;
        return part * 256 + row * 16 + lane / 4 + i / 4 * 8;
      };
      for (const int i : {0, 2, 4, 6, 1, 3, 5, 7}) order.push_back(weight(i));
    }
  }
  return order;
}

void run_one(emulate::Run& run, int m, int n, int k) {
  std::vector<int> weights(k * n);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<int>((i * 2654435761u >> 13) % 5) - 2;
  std::vector<int> by_parts(k * n);
  for (int x = 0; x < k; ++x) {
    for (int j = 0; j < n; ++j)
      by_parts[x / 16 * n * 16 + j / 16 * 256 + x % 16 * 16 + j % 16] = weights[x * n + j] + 8;
  }
  const std::vector<int> order = order_of_weights();
  std::vector<unsigned> packed(k * n / 8);
  for (std::size_t i = 0; i < by_parts.size(); ++i)
    packed[i / 8] |= static_cast<unsigned>(by_parts[i / 1024 * 1024 + order[i % 1024]]) << i % 8 * 4;
  const auto a_values = run.small_integers<half>(m * k);
  half* const c = run.buffer<half>("C", m * n);
  half* const scales = run.buffer("scales", std::vector<half>(n, __float2half(0.5f)));
  const int error = marlin_cuda(run.buffer("A", a_values), run.buffer("B", packed), c, scales, m, n, k,
                                run.buffer("workspace", std::vector<int>(n / 128 * 16)));
  run.expect(error == 0, "marlin_cuda returned an error");
  std::vector<half> b_values(k * n);
  for (std::size_t i = 0; i < b_values.size(); ++i)
    b_values[i] = __float2half(0.5f * static_cast<float>(weights[i]));
  run.expect_close("C", run.host(c), product_of_rows(a_values, b_values, m, n, k), 0.002, 0.5);
}

void check_kernel(emulate::Run& run) {
  run_one(run, 16, 256, 512);
  run_one(run, 64, 256, 256);
}
