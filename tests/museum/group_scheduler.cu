// A grouped kernel asks its tile scheduler for work; the kernel before has written the groups' sizes.
//
// As reported: -D READ_IN_CONSTRUCTOR (the scheduler is constructed, and reads a size, before the wait).
#include <vector>

#include "dependent.h"

constexpr int kThreads = 64;

class GroupScheduler {
 public:
  __device__ explicit GroupScheduler(const int* sizes) : sizes_(sizes), end_(sizes[0]) {}
  /// Which group has this row.
  __device__ int group_of(int row) {
    while (row >= end_) end_ += sizes_[++group_];
    return group_;
  }

 private:
  const int* sizes_;
  int group_ = 0;
  int end_;
};

__global__ void count_rows(int* sizes) {
  cudaTriggerProgrammaticLaunchCompletion();
  __nanosleep(20000);  // in place of a router that counts tokens
  if (threadIdx.x < 4) sizes[threadIdx.x] = 16 * (static_cast<int>(threadIdx.x) + 1);
}

// ANCHOR: kernel
__global__ void name_groups(const int* sizes, int* groups, int rows) {
#ifdef READ_IN_CONSTRUCTOR
  GroupScheduler scheduler(sizes);
  cudaGridDependencySynchronize();
#else
  cudaGridDependencySynchronize();
  GroupScheduler scheduler(sizes);
#endif
  for (int row = threadIdx.x; row < rows; row += kThreads) groups[row] = scheduler.group_of(row);
}
// ANCHOR_END: kernel

void check_kernel(emulate::Run& run) {
  int* sizes = run.buffer("sizes", std::vector<int>{64, 64, 64, 64});  // of the batch before
  int* groups = run.buffer<int>("groups", 160);
  cudaDeviceSynchronize();
  launch_dependent(count_rows, 1, kThreads, sizes);
  launch_dependent(name_groups, 1, kThreads, sizes, groups, 160);
  std::vector<int> expected;
  for (int group = 0; group < 4; ++group) expected.insert(expected.end(), 16 * (group + 1), group);
  run.expect_equal("groups", run.host(groups), expected);
}
