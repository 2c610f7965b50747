// Decoding tensor maps is not possible on a GPU.
#include "harness/backend/backend.h"
#include "tensor_map_device.h"

namespace play {

gemm::ptx::TensorMapSpec decode_tensor_map(const TensorMapBytes&) {
  throw harness::Error(
      "a CUtensorMap is opaque (CUDA Driver API, \"Tensor Map Object Management\"), so only the emulator "
      "decodes maps, and only its own: add --backend emulator");
}

}  // namespace play
