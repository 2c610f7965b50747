// Decoding tensor maps on the emulator.
#include <cstring>

#include "emulator/async/tma.h"
#include "harness/backend/backend.h"
#include "tensor_map_device.h"

namespace play {

gemm::ptx::TensorMapSpec decode_tensor_map(const TensorMapBytes& bytes) {
  emulator::TensorMapBits bits;
  static_assert(sizeof bits == sizeof bytes, "a tensor map is 128 bytes");
  std::memcpy(&bits, bytes.data(), sizeof bits);
  gemm::ptx::TensorMapSpec spec;
  if (!emulator::decode_tensor_map(bits, spec)) {
    throw harness::Error(
        "these 128 bytes are not a tensor map of the emulator: its first word or its checksum is missing. A "
        "map made by a driver cannot be decoded, because its layout is not documented");
  }
  return spec;
}

}  // namespace play
