// harness/timing/timing.h where there is no time to take.
#include "harness/backend/backend.h"
#include "harness/timing/ranks.h"
#include "harness/timing/timing.h"

namespace harness {

ShapeRecord time_shape(const gemm::Shape&, const std::vector<Contestant>&, const TimingOptions&) {
  throw Error("the emulator says nothing about speed; timing needs the GPU build and a GPU");
}

void time_ranks(RankRun&, std::vector<RankContestant>&, const TimingOptions&) {
  throw Error("the emulator says nothing about speed; timing needs the GPU build and GPUs");
}

std::vector<RankContestant> gather_opponents(RankGather&) {
  return {};
}

std::vector<RankContestant> scatter_opponents(RankScatter&) {
  return {};
}

void delay_rank(gemm::ptx::Stream, double) {}

std::string cublas_version() {
  return {};
}

}  // namespace harness
