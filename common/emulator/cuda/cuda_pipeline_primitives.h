// The pipeline primitives on the emulator: cp.async and its groups.
//
// CUDA C++ Programming Guide, "Pipeline Primitives Interface".
#pragma once

#include <cstddef>

#include "cuda_runtime.h"
#include "emulator/async/cp_async.h"

/// 4, 8 or 16 bytes, of which the last `zeros` are zeros instead of what is there.
inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                    std::size_t zeros = 0, emulator::Where where = emulator::Where::here()) {
  emulator::cp_async_engine("__pipeline_memcpy_async", where)
      .issue("__pipeline_memcpy_async", shared, global, static_cast<unsigned>(bytes),
             static_cast<int>(bytes - zeros), where);
}
inline void __pipeline_commit(emulator::Where where = emulator::Where::here()) {
  emulator::cp_async_engine("__pipeline_commit", where).commit(where);
}
/// Waits until at most the latest `prior` groups are under way.
inline void __pipeline_wait_prior(std::size_t prior, emulator::Where where = emulator::Where::here()) {
  emulator::cp_async_engine("__pipeline_wait_prior", where).wait_groups(prior, where);
}
