// gau-nernst/learn-cuda, 07_attention: -I FOLDER -D 'SOURCE="attention_v5.cu"' -D ATTENTION=attention_v5.
#include SOURCE

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kQueries = 128, kKeys = 192, kDim = 128;
  const auto q = run.uniform<nv_bfloat16>(kQueries * kDim);
  const auto k = run.uniform<nv_bfloat16>(kKeys * kDim);
  const auto v = run.uniform<nv_bfloat16>(kKeys * kDim);
  auto* const o = run.buffer<nv_bfloat16>("O", kQueries * kDim);
  ATTENTION(run.buffer("Q", q), run.buffer("K", k), run.buffer("V", v), o, 1, kQueries, kKeys, kDim);
  const auto number = [](nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); };
  std::vector<double> expected(kQueries * kDim);
  for (int i = 0; i < kQueries; ++i) {
    double sum = 0;
    for (int j = 0; j < kKeys; ++j) {
      double score = 0;
      for (int x = 0; x < kDim; ++x) score += number(q[i * kDim + x]) * number(k[j * kDim + x]);
      const double weight = std::exp(score / std::sqrt(static_cast<double>(kDim)));
      sum += weight;
      for (int x = 0; x < kDim; ++x) expected[i * kDim + x] += weight * number(v[j * kDim + x]);
    }
    for (int x = 0; x < kDim; ++x) expected[i * kDim + x] /= sum;
  }
  run.expect_close("O", run.host(o), expected, 0.02, 0.01);
}
