#include "harness/cli/rank_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "gemm/problem/step.h"
#include "harness/base/output.h"
#include "harness/cli/rank_options.h"
#include "harness/record/json.h"

namespace harness {
namespace {

double teraflops(const gemm::Shape& shape, double microseconds) {
  return 2.0 * shape.m * shape.n * shape.k / microseconds * 1e-6;
}

double median_of(const std::vector<RankContestant>& contestants, const char* variant) {
  const auto found = std::find_if(contestants.begin(), contestants.end(),
                                  [&](const RankContestant& one) { return one.variant == variant; });
  return found == contestants.end() ? 0 : found->median_us;
}

/// How much faster than one after the other the product and the copies can be, if they hide each other.
double overlap_limit(double product_us, double copies_us) {
  return (product_us + copies_us) / std::max(product_us, copies_us);
}

nlohmann::json product_to_json(const gemm::Step& step, const gemm::Shape& shape, const RankContestant& one) {
  nlohmann::json json = {{"name", one.is_opponent ? "opponent" : step.name},
                         {"variant", one.variant},
                         {"ctas", one.ctas},
                         {"piece_bytes", one.piece_bytes},
                         {"median_us", one.median_us},
                         {"q1_us", one.q1_us},
                         {"q3_us", one.q3_us},
                         {"to_reference", one.to_reference},
                         {"verdict", one.verdict},
                         {"samples_us", one.samples_us}};
  if (one.has_result) json["tflops"] = teraflops(shape, one.median_us);
  return json;
}

}  // namespace

void print_products(const gemm::Shape& shape, const std::vector<RankContestant>& contestants) {
  fmt::print("  {:<22}  {:>4}  {:>9}  {:>10}  {:>6}  {:>8}  {}\n", "variant", "CTAs", "piece", "median",
             "IQR", "TFLOP/s", "speed / reference");
  for (const RankContestant& one : contestants) {
    fmt::print("  {:<22}  {:>4}  {:>9}  {:>10}  {:>4.1f} %  {:>8}  {}\n", one.variant,
               one.ctas == 0 ? "-" : fmt::format("{}", one.ctas),
               one.piece_bytes == 0 ? "-" : size_text(one.piece_bytes), human_time(one.median_us),
               100 * (one.q3_us - one.q1_us) / one.median_us,
               one.has_result ? fmt::format("{:.0f}", teraflops(shape, one.median_us)) : "-",
               one.is_reference
                   ? "1 (reference)"
                   : fmt::format("{}  {}", human_ratio(one.to_reference), to_string(one.verdict)));
  }
  const double product = median_of(contestants, kProductOfOpponent);
  const double copies = median_of(contestants, kCopiesOfOpponent);
  if (product > 0 && copies > 0)
    fmt::print(
        "  limit: the product alone takes {}, the copies alone {}: together at most {:.3f} times as "
        "fast as one after the other\n",
        human_time(product), human_time(copies), overlap_limit(product, copies));
  std::fflush(stdout);
}

nlohmann::json products_to_json(const gemm::Step& step, const gemm::Shape& shape, int ranks,
                                const std::string& topology, const std::vector<RankContestant>& contestants) {
  nlohmann::json timed = {{"m", shape.m},
                          {"n", shape.n},
                          {"k", shape.k},
                          {"ranks", ranks},
                          {"topology", topology},
                          {"rounds", contestants.front().samples_us.size()},
                          {"limit", overlap_limit(median_of(contestants, kProductOfOpponent),
                                                  median_of(contestants, kCopiesOfOpponent))},
                          {"contestants", nlohmann::json::array()}};
  for (const RankContestant& one : contestants)
    timed["contestants"].push_back(product_to_json(step, shape, one));
  return timed;
}

}  // namespace harness
