// Turns return codes of the CUDA runtime into sentences. GPU build only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace harness {

/// What the error usually means, as the end of a sentence; "" when its name says it all.
const char* usual_meaning(cudaError_t status);

/// Throws Error "<what> failed: cudaErrorName (the runtime's words): usual meaning". Clears the runtime's
/// last error, so that a later call does not report this one again.
void check_cuda(cudaError_t status, const std::string& what);

}  // namespace harness
