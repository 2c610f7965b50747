// harness/timing/timing.h where there is no time to take.
#include "harness/backend/backend.h"
#include "harness/timing/timing.h"

namespace harness {

ShapeRecord time_shape(const gemm::Shape&, const std::vector<Contestant>&, const TimingOptions&) {
  throw Error("the emulator says nothing about speed; timing needs the GPU build and a GPU");
}

std::string cublas_version() {
  return {};
}

}  // namespace harness
