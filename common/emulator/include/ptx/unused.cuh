// Shared memory that is read although nothing was written there, and whose contents do not matter: the
// emulator's counterpart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/memory/device_memory.h"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tma.cuh"

namespace gemm::ptx {

namespace detail {
/// Device memory full of bf16 NaNs.
inline const void* nans() {
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  static const void* const memory = [] {
    const std::vector<std::uint16_t> values(kBytes / 2, 0x7fff);
    void* const device = emulator::allocate_buffer(kBytes, "unused rows");
    emulator::copy_in(device, values.data(), kBytes);
    return device;
  }();
  return memory;
}
}  // namespace detail

/// A copy of NaNs, of `bytes`, a multiple of 16 and at most 64 KB, that signals `full` like the loads beside
/// it, and is expected there. On the GPU nothing happens.
__device__ __forceinline__ void fill_unused(void* shared, int bytes, std::uint64_t* full,
                                            Where where = Where::here()) {
  if (bytes == 0) return;
  mbarrier_expect_tx(full, static_cast<std::uint32_t>(bytes), where);
  cp_async_bulk(shared, detail::nans(), static_cast<std::uint32_t>(bytes), full, where);
}

}  // namespace gemm::ptx
