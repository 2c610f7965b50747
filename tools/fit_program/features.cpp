// What tools/fit_choice.py asks of the model of step 22: reads plans that were measured on an H200, or with
// the argument h100 on an H100, and prints for each its time by arithmetic, its time with the correction,
// what it must be better by, and what the correction knows.
#include <cstdio>
#include <iostream>
#include <string>

#include "choice.h"

int main(int argc, char** argv) {
  using namespace gemm;
  Card card = argc > 1 && std::string(argv[1]) == "h100" ? kH100 : kH200;
  card.clusters = {66, 30, 15};  // of the cards that measured them
  Shape shape;
  std::string tile;
  FittedPlan plan;
  double us = 0;
  while (std::cin >> shape.m >> shape.n >> shape.k >> tile >> plan.transposed >> plan.cluster.m >>
         plan.cluster.n >> plan.stream_k_tiles >> plan.workers >> plan.lockstep >> plan.parts >> us) {
    const std::size_t number = step_22::number_of(tile);
    const step_22::Prediction arithmetic = step_22::predict_by_arithmetic(number, shape, plan, card);
    std::printf("%.9g %.9g %.9g", arithmetic.us, step_22::predict(number, shape, plan, card).us,
                arithmetic.doubt);
    for (const double feature : step_22::features_of(arithmetic, shape, card)) std::printf(" %.9g", feature);
    std::printf("\n");
  }
  return 0;
}
