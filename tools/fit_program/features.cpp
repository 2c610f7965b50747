// What tools/fit_choice.py asks of the model of step 22: reads plans that were measured on an H200, or with
// the argument h100 on an H100. The first line names what the others have: for each plan its time by
// arithmetic, what it must be better by, and what the correction knows.
#include <cstdio>
#include <iostream>
#include <string>

#include "choice.h"

int main(int argc, char** argv) {
  using namespace gemm;
  Card card = argc > 1 && std::string(argv[1]) == "h100" ? kH100 : kH200;
  card.clusters = {66, 30, 15};  // of the cards that measured them
  std::printf("us doubt");
  for (const PlanFeature& feature : kPlanFeatures) std::printf(" %s", feature.name.data());
  std::printf("\n");
  Shape shape;
  std::string name;
  FittedPlan plan;
  double us = 0;
  while (std::cin >> shape.m >> shape.n >> shape.k >> name >> plan.transposed >> plan.cluster.m >>
         plan.cluster.n >> plan.stream_k_tiles >> plan.workers >> plan.lockstep >> plan.parts >> us) {
    const std::size_t tile = step_22::number_of(name);
    const Prediction arithmetic = step_22::predict_by_arithmetic(tile, shape, plan, card);
    std::printf("%.9g %.9g", arithmetic.us, arithmetic.doubt);
    for (const double value : features_of(step_22::kTiles[tile], arithmetic, shape, card))
      std::printf(" %.9g", value);
    std::printf("\n");
  }
  return 0;
}
