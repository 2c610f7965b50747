#include "harness/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/verify/reference.h"
#include "harness/verify/survey.h"

namespace {

using gemm::bf16;
using harness::Operand;
using harness::Pattern;

constexpr gemm::TileShape kVerifiedTile{16, 32, 8};

/// One column of A and B^T that meet in one element of D.
struct Dot {
  std::vector<float> a;
  std::vector<float> b;
  double sum = 0;
  double norm = 0;
};

/// `count` dot products of length k on the harness's own inputs.
std::vector<Dot> dots(Pattern pattern, int k, int count, std::uint64_t seed = 1) {
  const auto a_rule = harness::input_rule(pattern, seed, Operand::kA, count, k);
  const auto b_rule = harness::input_rule(pattern, seed, Operand::kB, count, k);
  std::vector<Dot> result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Dot& dot = result[static_cast<std::size_t>(i)];
    double squares = 0;
    for (int j = 0; j < k; ++j) {
      dot.a.push_back(gemm::to_float(harness::input_value(a_rule, i, j, harness::normal_quantiles())));
      dot.b.push_back(gemm::to_float(harness::input_value(b_rule, i, j, harness::normal_quantiles())));
      const double product = static_cast<double>(dot.a.back()) * static_cast<double>(dot.b.back());
      dot.sum += product;
      squares += product * product;
    }
    dot.norm = std::sqrt(squares);
  }
  return result;
}

/// The product of two bf16 is exact in binary32.
std::vector<float> products(const Dot& dot, std::size_t begin, std::size_t end) {
  std::vector<float> result;
  for (std::size_t i = begin; i < end; ++i) result.push_back(dot.a[i] * dot.b[i]);
  return result;
}

float fma_chain(const Dot& dot, std::size_t begin, std::size_t end) {
  float sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum = std::fma(dot.a[i], dot.b[i], sum);
  return sum;
}

double truncate_to_grid(double value, double grid) {
  return std::trunc(value / grid) * grid;
}

/// A tensor core as Fasi et al. (2021) and Xie et al. (2025) describe it: `block` exact products and the
/// accumulator are aligned to the largest exponent among them, cut off `fraction_bits` below it, added
/// exactly, and the sum is cut to 24 bits.
float tensor_core(const Dot& dot, std::size_t begin, std::size_t end, std::size_t block, int fraction_bits) {
  float sum = 0;
  for (std::size_t first = begin; first < end; first += block) {
    std::vector<float> terms = products(dot, first, std::min(end, first + block));
    terms.push_back(sum);
    float largest = 0;
    for (const float term : terms) largest = std::max(largest, std::abs(term));
    if (largest == 0) continue;
    const double grid = std::ldexp(1.0, std::ilogb(largest) - fraction_bits);
    double total = 0;
    for (const float term : terms) total += truncate_to_grid(static_cast<double>(term), grid);
    sum =
        total == 0 ? 0 : static_cast<float>(truncate_to_grid(total, std::ldexp(1.0, std::ilogb(total) - 23)));
  }
  return sum;
}

using Accumulate = std::function<float(const Dot&, std::size_t, std::size_t)>;

/// Partial sums of equal pieces, added in binary32 in order.
float split_k(const Dot& dot, int pieces, const Accumulate& accumulate) {
  const std::size_t k = dot.a.size();
  const std::size_t piece = (k + static_cast<std::size_t>(pieces) - 1) / static_cast<std::size_t>(pieces);
  float sum = 0;
  for (std::size_t first = 0; first < k; first += piece)
    sum += accumulate(dot, first, std::min(k, first + piece));
  return sum;
}

float pairwise(const Dot& dot, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return dot.a[begin] * dot.b[begin];
  const std::size_t middle = begin + (end - begin) / 2;
  return pairwise(dot, begin, middle) + pairwise(dot, middle, end);
}

struct Kernel {
  std::string name;
  std::function<float(const Dot&)> run;
};

std::vector<Kernel> kernels() {
  const auto whole = [](const Accumulate& accumulate) {
    return [accumulate](const Dot& dot) { return accumulate(dot, 0, dot.a.size()); };
  };
  const Accumulate volta = [](const Dot& d, std::size_t b, std::size_t e) {
    return tensor_core(d, b, e, 4, 23);
  };
  const Accumulate ampere = [](const Dot& d, std::size_t b, std::size_t e) {
    return tensor_core(d, b, e, 8, 24);
  };
  const Accumulate hopper = [](const Dot& d, std::size_t b, std::size_t e) {
    return tensor_core(d, b, e, 16, 25);
  };
  std::vector<Kernel> all{{"FMA chain", whole(fma_chain)},
                          {"pairwise", whole(pairwise)},
                          {"Volta", whole(volta)},
                          {"Ampere", whole(ampere)},
                          {"Hopper", whole(hopper)}};
  for (const int pieces : {2, 3, 7, 64}) {
    all.push_back({"split FMA chain", [=](const Dot& dot) { return split_k(dot, pieces, fma_chain); }});
    all.push_back({"split Ampere", [=](const Dot& dot) { return split_k(dot, pieces, ampere); }});
    all.push_back({"split Hopper", [=](const Dot& dot) { return split_k(dot, pieces, hopper); }});
  }
  return all;
}

harness::Acceptance accept(Pattern pattern, int k, const std::vector<Dot>& dots) {
  harness::Acceptance acceptance = harness::make_acceptance({1, static_cast<int>(dots.size()), k}, pattern);
  std::vector<double> value;
  std::vector<float> norm;
  for (const Dot& dot : dots) {
    value.push_back(dot.sum);
    norm.push_back(static_cast<float>(dot.norm));
  }
  harness::accept_rows(acceptance, 0, 1, value.data(), norm.data());
  return acceptance;
}

TEST_CASE("the bound accepts every way to accumulate in binary32, and tensor cores") {
  struct Case {
    int k;
    int count;
  };
  for (const auto [k, count] :
       {Case{1, 400}, {2, 400}, {17, 400}, {100, 400}, {1000, 100}, {4096, 60}, {40000, 6}}) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform}) {
      const std::vector<Dot> samples = dots(pattern, k, count);
      const harness::Acceptance acceptance = accept(pattern, k, samples);
      for (const Kernel& kernel : kernels()) {
        double worst = 0;
        bool all_accepted = true;
        for (std::size_t i = 0; i < samples.size(); ++i) {
          const float sum = kernel.run(samples[i]);
          const double error = std::abs(static_cast<double>(sum) - samples[i].sum);
          worst = std::max(worst, error / harness::accumulation_error(k, samples[i].norm));
          all_accepted =
              all_accepted && harness::accepted(acceptance.low[i], acceptance.high[i], gemm::to_bf16(sum));
        }
        CAPTURE(kernel.name, k, harness::to_string(pattern), worst);
        CHECK(worst < 1);
        CHECK(all_accepted);
      }
    }
  }
}

TEST_CASE("the bound rejects a missing slice of 16 in nearly every element") {
  for (const int k : {32, 256, 1024, 4096}) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform}) {
      const std::vector<Dot> samples = dots(pattern, k, 200);
      const harness::Acceptance acceptance = accept(pattern, k, samples);
      int rejected = 0;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const float sum = fma_chain(samples[i], 0, samples[i].a.size() - 16);
        rejected += harness::accepted(acceptance.low[i], acceptance.high[i], gemm::to_bf16(sum)) ? 0 : 1;
      }
      CAPTURE(k, harness::to_string(pattern), rejected);
      // At least 3 in 4 elements: a 16 x 16 tile without its last slice passes with probability 4^-256.
      CHECK(rejected > 150);
    }
  }
}

TEST_CASE("exact inputs show a missing slice of 16 at every K") {
  for (const int k : {32, 4096, 65536, 262144}) {
    constexpr int kCount = 40;
    const std::vector<Dot> samples = dots(Pattern::kExact, k, kCount);
    const harness::Acceptance acceptance = accept(Pattern::kExact, k, samples);
    int rejected = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      REQUIRE(static_cast<double>(fma_chain(samples[i], 0, samples[i].a.size())) == samples[i].sum);
      const float sum = fma_chain(samples[i], 0, samples[i].a.size() - 16);
      rejected += harness::accepted(acceptance.low[i], acceptance.low[i], gemm::to_bf16(sum)) ? 0 : 1;
    }
    CAPTURE(k, rejected);
    CHECK(rejected > kCount / 2);
  }
}

TEST_CASE(
    "the bound rejects accumulators that are kept in bf16, and results that are cut off instead of rounded") {
  const int k = 256;
  const std::vector<Dot> samples = dots(Pattern::kNormal, k, 400);
  const harness::Acceptance acceptance = accept(Pattern::kNormal, k, samples);
  int rejected_bf16 = 0;
  int rejected_cut = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    bf16 sum{0};
    for (const float product : products(samples[i], 0, k)) sum = gemm::to_bf16(gemm::to_float(sum) + product);
    rejected_bf16 += harness::accepted(acceptance.low[i], acceptance.high[i], sum) ? 0 : 1;
    const auto bits = std::bit_cast<std::uint32_t>(fma_chain(samples[i], 0, k));
    const bf16 cut{static_cast<std::uint16_t>(bits >> 16)};
    rejected_cut += harness::accepted(acceptance.low[i], acceptance.high[i], cut) ? 0 : 1;
  }
  CHECK(rejected_bf16 > 200);
  CHECK(rejected_cut > 120);  // half of them, where the bits cut off were worth more than half a step
}

TEST_CASE("the bound scales with the norm and grows with k") {
  CHECK(harness::accumulation_error(4096, 64) == Approx(0.4226).epsilon(1e-3));  // 3 * 4098 * 2^-24 * 9 * 64
  CHECK(harness::accumulation_error(4096, 128) == Approx(2 * harness::accumulation_error(4096, 64)));
  CHECK(harness::accumulation_error(16, 1) == Approx(3 * 18 * 0x1p-24 * 4).epsilon(1e-3));  // sqrt(k) < 9
  CHECK(harness::accumulation_error(1, 1) > 0x1p-24);
  CHECK(harness::accumulation_error(262144, 1) < 1);
}

TEST_CASE("NaN and infinity are never accepted") {
  const bf16 lowest{0xff7f};
  const bf16 highest{0x7f7f};  // the widest interval there can be
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 got{static_cast<std::uint16_t>(bits)};
    REQUIRE(harness::accepted(lowest, highest, got) == ((bits & 0x7fff) < 0x7f80));
    if ((bits & 0x7fff) > 0x7f80) {
      REQUIRE_FALSE(harness::accepted(got, got, got));  // not even where NaN is expected
    }
  }
}

TEST_CASE("special inputs: a NaN and an infinity are right where the inputs make them, and nowhere else") {
  constexpr gemm::Shape kShape{51, 40, 96};
  const auto acceptance = harness::host_acceptance(kShape, Pattern::kSpecial, 1);
  const harness::RunImage correct = harness::correct_image(kShape, Pattern::kSpecial, 1);
  const auto failed = [&](const auto& is_one, bf16 value) {
    harness::RunImage image = correct;
    const auto one = std::find_if(image.d.begin(), image.d.end(),
                                  [&](bf16 element) { return is_one(gemm::to_float(element)); });
    REQUIRE(one != image.d.end());
    *one = value;
    const auto result = harness::verify(image, acceptance, {16, 8, 32});
    return result.ok ? std::string("ok") : result.failed.front();
  };
  const auto is_nan = [](float value) { return std::isnan(value); };
  const auto is_infinite = [](float value) { return std::isinf(value) && value > 0; };
  const auto is_finite = [](float value) { return std::isfinite(value) && value != 0; };
  CHECK(harness::verify(correct, acceptance, {16, 8, 32}).ok);
  CHECK(failed(is_nan, {0xffc1}) == "ok");  // any NaN
  CHECK(failed(is_nan, harness::kPoison) == harness::kNeverWritten);
  CHECK(failed(is_nan, {0}) == harness::kValue);
  CHECK(failed(is_nan, {0x7f80}) == harness::kValue);
  CHECK(failed(is_infinite, {0xff80}) == harness::kValue);
  CHECK(failed(is_infinite, {0x7f7f}) == harness::kValue);
  CHECK(failed(is_infinite, {0x7fff}) == harness::kValue);
  CHECK(failed(is_finite, {0x7fff}) == harness::kNan);
  CHECK(failed(is_finite, {0}) == harness::kValue);
  CHECK(failed([](float value) { return value == 0; }, {0x8000}) == "ok");
}

TEST_CASE("a bound that reaches infinity still does not accept it") {
  harness::Acceptance acceptance = harness::make_acceptance({1, 2, 4}, Pattern::kNormal);
  const double value[] = {3.39e38, -3.39e38};
  const float norm[] = {3.39e38f, 3.39e38f};
  harness::accept_rows(acceptance, 0, 1, value, norm);
  CHECK(harness::accepted(acceptance.low[0], acceptance.high[0], {0x7f7f}));
  CHECK_FALSE(harness::accepted(acceptance.low[0], acceptance.high[0], {0x7f80}));
  CHECK(harness::accepted(acceptance.low[1], acceptance.high[1], {0xff7f}));
  CHECK_FALSE(harness::accepted(acceptance.low[1], acceptance.high[1], {0xff80}));
}

TEST_CASE("exact mode accepts one pattern of bits") {
  harness::Acceptance acceptance = harness::make_acceptance({1, 3, 4}, Pattern::kExact);
  const double value[] = {257, -259, 0};  // both sums are ties: to 256 and to -260
  harness::accept_rows(acceptance, 0, 1, value, nullptr);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 got{static_cast<std::uint16_t>(bits)};
    const auto accepted = [&](std::size_t i) {
      return harness::accepted(acceptance.low[i], acceptance.low[i], got);
    };
    REQUIRE(accepted(0) == (bits == 0x4380));
    REQUIRE(accepted(1) == (bits == 0xc382));
    REQUIRE(accepted(2) == (bits == 0 || bits == 0x8000));  // +0 and -0 are the same number
  }
}

TEST_CASE("a correct image passes in every pattern") {
  for (const Pattern pattern :
       {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
    for (const gemm::Shape& shape : {gemm::Shape{1, 1, 1}, {33, 70, 100}, {200, 136, 72}, {5, 300, 1}}) {
      for (const std::uint64_t seed : {1, 2}) {
        CAPTURE(harness::to_string(pattern), shape.m, shape.n, shape.k, seed);
        const harness::CheckResult result =
            harness::verify(harness::correct_image(shape, pattern, seed),
                            harness::host_acceptance(shape, pattern, seed), kVerifiedTile);
        CHECK(result.report == "");
        CHECK(result.ok);
        CHECK(result.failed.empty());
        CHECK(result.summary.find(harness::to_string(pattern) + ": all ") == 0);
      }
    }
  }
}

TEST_CASE("a passed check names the error that D shows, and the bound") {
  const gemm::Shape shape{96, 130, 520};
  harness::RunImage image = harness::correct_image(shape, Pattern::kNormal, 1);
  const harness::Acceptance acceptance = harness::host_acceptance(shape, Pattern::kNormal, 1);
  const harness::Inputs inputs(image.a_rule, image.b_rule);
  const std::string start = "normal: all 12480 elements within the error bound (accumulator: observed error ";
  const std::string bound = fmt::format(", bound {:.2g})", acceptance.largest_bound);
  CHECK(harness::verify(image, acceptance, kVerifiedTile).summary == start + "0" + bound);

  SECTION("of one element") {
    // The accumulator must have been on the other side of the tie between the two values that are accepted.
    std::size_t index = 0;
    while (std::abs(acceptance.high[index].bits - acceptance.low[index].bits) != 1) ++index;
    const bf16 low = acceptance.low[index];
    const bf16 high = acceptance.high[index];
    image.d[index] = low.bits == acceptance.nearest[index].bits ? high : low;
    double sum = 0;
    double norm = 0;
    inputs.sum(static_cast<int>(index) / shape.n, static_cast<int>(index) % shape.n, sum, norm);
    const double tie =
        (static_cast<double>(gemm::to_float(low)) + static_cast<double>(gemm::to_float(high))) / 2;
    const double error = std::abs(sum - tie);
    CHECK(harness::observed_error(acceptance, image.d.data(), inputs) == error);
    CHECK(error <= acceptance.largest_bound);
    CHECK(harness::verify(image, acceptance, kVerifiedTile).summary ==
          start + fmt::format("{:.2g}", error) + bound);
  }
  SECTION("of a kernel that adds in single precision") {
    double largest = 0;
    for (int row = 0; row < shape.m; ++row) {
      for (int column = 0; column < shape.n; ++column) {
        Dot dot;
        for (int i = 0; i < shape.k; ++i) {
          dot.a.push_back(static_cast<float>(inputs.flat(Operand::kA, gemm::offset(row, i, shape.k))));
          dot.b.push_back(static_cast<float>(inputs.flat(Operand::kB, gemm::offset(column, i, shape.k))));
        }
        // Coarser than any GPU, so that several of these few elements end on the wrong side of a tie.
        const float accumulator = tensor_core(dot, 0, dot.a.size(), 4, 15);
        inputs.sum(row, column, dot.sum, dot.norm);
        largest = std::max(largest, std::abs(static_cast<double>(accumulator) - dot.sum));
        image.d[static_cast<std::size_t>(gemm::offset(row, column, shape.n))] = gemm::to_bf16(accumulator);
      }
    }
    const double observed = harness::observed_error(acceptance, image.d.data(), inputs);
    CAPTURE(observed, largest);
    CHECK(observed <= largest);
    CHECK(observed > largest / 4);  // ties are somewhere near the worst of some thousand elements
  }
}

TEST_CASE("the observed error of zeros, and of signs") {
  harness::Acceptance acceptance = harness::make_acceptance({1, 1, 1}, Pattern::kNormal);
  const auto a = harness::input_rule(Pattern::kNormal, 1, Operand::kA, 1, 1);
  const auto b = harness::input_rule(Pattern::kNormal, 1, Operand::kB, 1, 1);
  const harness::Inputs inputs(a, b);
  double sum = 0;
  double norm = 0;
  inputs.sum(0, 0, sum, norm);
  const float wide = 1e9f;
  harness::accept_rows(acceptance, 0, 1, &sum, &wide);
  const auto observed = [&](bf16 got) { return harness::observed_error(acceptance, &got, inputs); };
  CHECK(observed(gemm::to_bf16(static_cast<float>(sum))) == 0);
  CHECK(observed({0}) == Approx(std::abs(sum)));  // the tie is half of the smallest bf16
  CHECK(observed({0x8000}) == Approx(std::abs(sum)));
  CHECK(observed(gemm::to_bf16(1024)) == Approx(1022 - sum));  // below 1024 the steps are 4, above 8
  CHECK(observed(gemm::to_bf16(-1024)) == Approx(1022 + sum));
}

TEST_CASE("every single byte of the guard bands counts") {
  const gemm::Shape shape{20, 30, 10};
  harness::RunImage image = harness::correct_image(shape, Pattern::kExact, 1);
  const auto judge = [&] {
    harness::Verification verification(image.a_rule, image.b_rule, kVerifiedTile);
    verification.check_guard(image.before.data(), true);
    verification.check_guard(image.after.data(), false);
    return verification.result();
  };
  CHECK(judge().ok);
  static_assert(harness::kGuardBytes >= 4096);
  for (std::size_t byte = 0; byte < harness::kGuardBytes; byte += byte < 64 ? 1 : 4093) {
    image.before[byte] ^= 0x10;
    CHECK(judge().failed == std::vector<std::string>{harness::kGuardBefore});
    image.before[byte] ^= 0x10;
    image.after[byte] ^= 0x01;
    CHECK(judge().failed == std::vector<std::string>{harness::kGuardAfter});
    image.after[byte] ^= 0x01;
  }
}

TEST_CASE("a guard band notices a fill, a copy and a shifted copy of itself") {
  const std::vector<std::uint8_t> band = harness::guard_band();
  for (std::size_t i = 0; i < 1000; i += 2) {
    const unsigned bits = band[i] | static_cast<unsigned>(band[i + 1]) << 8;
    REQUIRE((bits & 0x7fff) > 0x7f80);  // a NaN, but neither the poison nor what cvt makes
    REQUIRE(bits != 0x7fff);
    REQUIRE(bits != harness::kPoison.bits);
    REQUIRE(band[i] != band[i + 2]);
  }
}

TEST_CASE("damage to a guard band is given as a place beside D") {
  const gemm::Shape shape{20, 30, 10};
  harness::RunImage image = harness::correct_image(shape, Pattern::kExact, 1);
  image.after[0] ^= 1;
  image.after[2 * 31] ^= 1;
  image.before[harness::kGuardBytes - 1] ^= 1;
  const harness::CheckResult result =
      harness::verify(image, harness::host_acceptance(shape, Pattern::kExact, 1), kVerifiedTile);
  CAPTURE(result.report);
  CHECK(result.failed == std::vector<std::string>{harness::kGuardBefore, harness::kGuardAfter});
  check_text(
      result.report,
      {"2 bytes after D were overwritten, 1 to 63 from its end", "they would be elements (20, 0) to (21, 1)",
       "1 byte before D was overwritten, 1 from its start", "it would be element (-1, 29)"});
}

TEST_CASE("the list of mismatches shows row, column, tile, expected and got") {
  const gemm::Shape shape{40, 70, 24};
  harness::RunImage image = harness::correct_image(shape, Pattern::kExact, 1);
  const harness::Acceptance acceptance = harness::host_acceptance(shape, Pattern::kExact, 1);
  const std::size_t index = 33 * 70 + 65;
  const float expected = gemm::to_float(image.d[index]);
  image.d[index] = gemm::to_bf16(1234567.0f);
  image.d[index + 1] = {0x7fff};
  image.d[index + 2] = {0x7f80};
  image.d[index + 3] = harness::kPoison;
  const harness::CheckResult result = harness::verify(image, acceptance, kVerifiedTile);
  CAPTURE(result.report);
  CHECK(result.failed ==
        std::vector<std::string>{harness::kNeverWritten, harness::kNan, harness::kInfinity, harness::kValue});
  const std::size_t line_begin = result.report.find("    33     65  (2, 2)");
  REQUIRE(line_begin != std::string::npos);
  const std::string line =
      result.report.substr(line_begin, result.report.find('\n', line_begin) - line_begin);
  CHECK(contains(line, std::to_string(static_cast<int>(expected))));
  CHECK(contains(line, "1236992"));  // 1234567 as bf16
  check_text(result.report, {"bits 0x7fff", "poison  never written", "tile 16 x 32 x 8"});
  CHECK(result.summary ==
        "exact: failed never-written, nan, infinity, value; 4 of 2800 elements (0.143 %) are wrong");
}

TEST_CASE("in the identity pattern a wrong element says where it came from") {
  const gemm::Shape shape{40, 70, 48};
  harness::RunImage image = harness::correct_image(shape, Pattern::kIdentity, 1);
  image.d[5 * 70 + 8] = image.b[9 * 48 + 17];
  const harness::CheckResult result =
      harness::verify(image, harness::host_acceptance(shape, Pattern::kIdentity, 1), kVerifiedTile);
  CAPTURE(result.report);
  CHECK(contains(result.report, "this is B(9, 17), both mod 128"));
}

}  // namespace
