// Asynchronous copies of a group on the emulator: every thread copies a part with cp.async.
//
// CUDA C++ Programming Guide, "Cooperative Groups: memcpy_async".
#pragma once

#include "async_copies.h"
#include "cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T>
void memcpy_async(const Group& group, T* shared, const T* global, std::size_t bytes,
                  emulator::Where where = emulator::Where::here()) {
  emulator_cuda::copy_async("memcpy_async", shared, global, bytes, group.thread_rank(), group.num_threads(),
                            where);
  emulator::cp_async_engine("memcpy_async", where).commit(where);
}
/// At most the latest kPrior copies of each thread are under way, and the group meets.
template <unsigned kPrior, typename Group>
void wait_prior(const Group& group, emulator::Where where = emulator::Where::here()) {
  emulator::cp_async_engine("wait_prior", where).wait_groups(kPrior, where);
  group.sync(where);
}
template <typename Group>
void wait(const Group& group, emulator::Where where = emulator::Where::here()) {
  emulator::cp_async_engine("wait", where).wait_all(where);
  group.sync(where);
}

}  // namespace cooperative_groups
