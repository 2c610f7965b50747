// A copy from one GPU's memory to another one's by a copy engine: the emulator's counterpart.
#pragma once

#include <cstddef>

#include "emulator/machine/ranks.h"
#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// cudaMemcpyPeerAsync
inline void copy_to_peer(void* to, int, const void* from, int, std::size_t bytes, Stream stream) {
  emulator::ranks::submit(stream, emulator::ranks::Work::kCopy,
                          [=] { emulator::ranks::copy(to, from, bytes); });
}

}  // namespace gemm::ptx
