#include "plans.h"

#include <cstddef>

#include "kernel.cuh"
#include "steps/22_peak.tiles.cuh"  // the kernels are the step's own

gemm::Card fit::card() {
  return gemm::step_22::card();
}

gemm::Launcher fit::prepare(std::size_t tile, const gemm::Gemm& gemm, const gemm::FittedPlan& plan) {
  return gemm::step_22::kernels()[tile].prepare(gemm, plan);
}
