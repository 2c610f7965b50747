// What the shims of the CUDA runtime are made of (common/emulator/cuda), and what a kernel's file tells about
// its kernels.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "ptx/launch_shape.h"

namespace emulator_cuda {

/// The name of the next allocation, for reports: "x" instead of "allocation 3".
void name_next_allocation(const std::string& name);
void* allocate(std::size_t bytes);
/// Of both sides: what it holds counts as written, and host code may touch it.
void* allocate_managed(std::size_t bytes);
/// After everything that streams have to do; free_in_stream: at once.
void free(void* memory);
void free_in_stream(void* memory);
/// The memory stays, and holds nothing that was written: what a graph frees, and allocates again.
void forget_contents(void* memory);
/// Of several devices the current one: waits for it, and frees its memory.
void reset_device();
/// Whose memory it is, in a run of several devices; -1: the host's, or not known.
int owner_of(const void* memory);
/// Frees what a run has left, so that the next one begins as the first did.
void free_everything();
/// Pinned, which is the same here.
void* allocate_host(std::size_t bytes);
void free_host(void* memory);
/// What malloc has allocated becomes accessible to kernels, and again the host's alone.
void register_host(void* memory, std::size_t bytes);
void unregister_host(void* memory);
/// Managed or pinned: host code may look at it.
bool is_of_both(const void* memory);
/// Between host and device, in either direction.
void copy(void* to, const void* from, std::size_t bytes);
void set(void* memory, int value, std::size_t bytes);

void allow_shared_bytes(const void* kernel, int bytes);
/// The threads that a CTA of this kernel may have; `limit` is the caller's, or 0.
int largest_block(const void* kernel, int limit);
/// What the kernel itself says about its launches; refuses more dynamic shared memory than it has asked for.
/// `call` calls the kernel with its arguments, in case that it declares its cluster itself.
void prepare_launch(const void* kernel, gemm::ptx::LaunchShape& shape, const std::function<void()>& call);

/// Ends the program with this sentence.
[[noreturn]] void refuse_launch(const char* sentence);

/// __cluster_dims__ of the kernel of this name (tools/emulate writes such a variable after it). Without
/// sizes: its first statement declares them.
class ClusterDims {
 public:
  explicit ClusterDims(const char* kernel);
  ClusterDims(const char* kernel, unsigned x, unsigned y = 1, unsigned z = 1);
};

/// The first statement of a kernel whose __cluster_dims__ depend on its template parameters: ends the call by
/// which prepare_launch asks for them, and does nothing in a launch.
void declare_cluster(unsigned x, unsigned y = 1, unsigned z = 1);

/// What an assertion of a kernel that fails ends with; host code ends as always.
void fail_assertion(const char* expression, const char* file, unsigned line);

}  // namespace emulator_cuda
