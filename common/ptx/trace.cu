#include "ptx/core.cuh"
#include "ptx/trace.h"

namespace gemm::ptx {
namespace {

TraceMemory memory;

}  // namespace

bool set_trace([[maybe_unused]] int ctas) {
#ifdef GEMM_STEPS_TRACE
  constexpr std::size_t kRecords = std::size_t{kTraceCtas} * kTraceRoles * kTraceRecords;
  if (ctas > 0 && memory.records == nullptr) {
    if (cudaMalloc(&memory.records, kRecords * sizeof(TraceWords)) != cudaSuccess ||
        cudaMalloc(&memory.headers, kTraceCtas * sizeof(TraceHeader)) != cudaSuccess) {
      cudaGetLastError();
      cudaFree(memory.records);
      memory = {};
      return false;
    }
  }
  memory.ctas = ctas;
  return true;
#else
  return false;
#endif
}

const TraceMemory& trace_memory() {
  return memory;
}

}  // namespace gemm::ptx
