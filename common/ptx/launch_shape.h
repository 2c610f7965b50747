// How a kernel is started; shared by the GPU and the emulator.
#pragma once

struct CUstream_st;

namespace gemm::ptx {

/// The CUDA runtime's stream handle. The emulator accepts only nullptr.
using Stream = CUstream_st*;

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  constexpr long long count() const { return static_cast<long long>(x) * y * z; }
};

/// Grid in CTAs, block in threads, cluster in CTAs, dynamic shared memory in bytes.
struct LaunchShape {
  Extent grid;
  Extent block;
  Extent cluster;
  int shared_bytes = 0;
  bool co_resident = false;  // every CTA of the grid must be on an SM at the same time
  bool dependent = false;  // may start before the grid before it in the stream has completed (griddepcontrol)
  int ctas_per_sm = 1;     // what the kernel's __launch_bounds__ promises; decides the registers at its start
};

}  // namespace gemm::ptx
