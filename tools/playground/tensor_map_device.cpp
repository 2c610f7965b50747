#include "tensor_map_device.h"

#include <cstring>

#include "harness/backend/backend.h"
#include "ptx/tensor_map.h"

namespace play {

TensorMapBytes encode_tensor_map(const gemm::ptx::TensorMapSpec& spec) {
  harness::device_free(
      harness::device_allocate(sizeof(TensorMapBytes), "nothing"));  // the driver wants a context
  const gemm::ptx::TensorMap map = gemm::ptx::make_tensor_map(spec);
  TensorMapBytes bytes;
  static_assert(sizeof map == sizeof bytes, "a tensor map is 128 bytes");
  std::memcpy(bytes.data(), &map, sizeof map);
  return bytes;
}

}  // namespace play
