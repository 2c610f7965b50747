#include "ptx/peer_copy.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gemm::ptx {
namespace {

using WriteValue = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned flags);

/// Of the driver, which the programs are not linked with.
WriteValue* find_write_value() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kIntroducedIn = 11070;  // in this form
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function,
                                                              kIntroducedIn, cudaEnableDefault, &result);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuStreamWriteValue32", &function, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess || function == nullptr) {
    cudaGetLastError();
    throw std::runtime_error("the driver has no cuStreamWriteValue32, which raises a flag after a copy");
  }
  return reinterpret_cast<WriteValue*>(function);
}

}  // namespace

void write_flag(std::uint32_t* flag, std::uint32_t value, Stream stream) {
  static WriteValue* const write_value = find_write_value();
  // The default puts a fence of system scope before the write.
  const CUresult status =
      write_value(stream, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("a flag could not be written by a stream: error " +
                             std::to_string(static_cast<int>(status)) + " of cuStreamWriteValue32");
}

}  // namespace gemm::ptx
