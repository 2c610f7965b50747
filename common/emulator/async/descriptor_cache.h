// Tensor maps that are changed while kernels run, and what the copy engine knows of a change.
//
// The copy engine reads a tensor map through a proxy of its own, which has a cache. A map in global memory
// that was changed there (tensormap.replace, ordinary stores) is the new one to an instruction only when the
// writer has executed a release fence of that proxy behind the change, and a thread of the CTA that uses the
// map an acquire fence behind that. PTX ISA, "membar, fence": fence.proxy.tensormap::generic;
// "tensormap.replace"; "tensormap.cp_fenceproxy"; "Memory Consistency Model". CUDA C++ Programming Guide,
// "Usage of a Modified Tensor Map". And a copy reads its map while it is under way, so a map may change only
// when the copies that use it are complete. PTX ISA, "Completion Mechanisms for Asynchronous Copy
// Operations".
#pragma once

#include <cstdint>
#include <string>

#include "emulator/async/async_memory.h"
#include "emulator/async/tensor_map.h"
#include "emulator/machine/where.h"

namespace emulator {

enum class FenceScope : std::uint8_t { kCta, kCluster, kGpu, kSys };

enum class MapField : std::uint8_t {
  kGlobalAddress,
  kRank,
  kBoxDim,
  kGlobalDim,
  kGlobalStride,
  kElementStride,
  kElementType,
  kInterleave,
  kSwizzle,
  kFill,
};

struct MapChange {
  const char* what;  // the instruction
  MapField field;
  unsigned ordinal;  // of the dimension, or of the stride
  std::uint64_t value;
  bool shared;  // where the map is: in shared::cta or in global memory
};

// Executed by the running thread.
void tensormap_replace(void* map, const MapChange& change, Where where);
/// By all lanes of a warp: a copy of 128 bytes from shared to global memory, and the release fence.
void tensormap_cp_fenceproxy(FenceScope scope, void* to, const void* from, Where where);
void fence_proxy_tensormap_release(FenceScope scope, Where where);
void fence_proxy_tensormap_acquire(FenceScope scope, const void* map, Where where);

/// "the tensormap.replace at kernel.cuh:40 (in maps.copy.b (shared + 0x38480))": where this launch has set a
/// field of the map, or "".
std::string describe_replaced(const TensorMapBits& map, MapField field, unsigned ordinal);

/// The copy engine reads this map for the running thread: reports a map that is not in parameter, constant or
/// global memory, and one in global memory of which it may still have the old bits.
void check_descriptor(const char* what, const TensorMapBits& map, Where where);
/// A copy that the running thread has issued reads this map until `completed`: a map in global memory may not
/// change before.
void note_map_use(const TensorMapBits& map, Stamp completed, Where where);

}  // namespace emulator
