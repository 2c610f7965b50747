// Several devices in one run. A program has one unless it says otherwise; then each of its streams is an OS
// thread of its own, of which one runs at a time: the seed decides which, and every grid, copy and fill gives
// way again and again. So grids of several devices are resident at the same time, as they are on GPUs.
//
// CUDA C++ Programming Guide, "Multi-Device System"; PTX ISA, "Memory Consistency Model: Scope".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "emulator/memory/happens_before.h"
#include "ptx/launch_shape.h"

namespace emulator {

class Gang;
struct Buffer;
struct Failure;
struct Grid;

/// Of the program: what set_device_count() or the environment variable GEMM_STEPS_DEVICES says, else 1.
int device_count();
/// While no stream has anything to do. 0: what the environment says.
void set_device_count(int count);
inline bool has_ranks() {
  return device_count() > 1;
}
/// The calling OS thread's: where it allocates, launches and creates streams. 0 at first.
int current_device();
/// False: there is no such device.
bool set_current_device(int device);
/// Whether kernels of `device` may access memory of `owner`.
bool has_peer_access(int device, int owner);
/// False: it was so already.
bool set_peer_access(int device, int owner, bool enabled);

/// Streams, events and copies in a run of several devices.
namespace ranks {

using Stream = gemm::ptx::Stream;  // nullptr and the two small numbers: the current device's default stream
using Operation = std::function<void()>;
enum class Work : std::uint8_t { kKernel, kCopy, kOther };

/// On the current device.
Stream make_stream(bool waits_for_default);
/// Its work goes on.
void destroy_stream(Stream stream);
int device_of(Stream stream);
/// Runs later, in the order of the stream, on the stream's OS thread.
void submit(Stream stream, Work work, Operation operation);
/// A kernel, which calls `body`; its own arguments are copies.
void launch(const gemm::ptx::LaunchShape& shape, Stream stream, const void* kernel, Operation body);
/// Host code waits.
void finish(Stream stream);
void finish_device(int device);
bool is_empty(Stream stream);
/// The streams go on for a moment, while host code looks at them.
void go_on();
/// Nothing has anything to do any more, and what was done is known to all: between two runs.
void forget_everything();

struct EventState;
using Event = std::shared_ptr<EventState>;
Event make_event();
void record(const Event& event, Stream stream);
void wait_for(Stream stream, const Event& event);
void finish(const Event& event);
bool has_happened(const Event& event);
std::chrono::steady_clock::time_point time_of(const Event& event);

/// In an operation: moves the bytes piece by piece, as a copy engine does, and checks them as a thread's
/// accesses. `to` or `from` may be the host's.
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* memory, std::uint8_t value, std::size_t bytes);
/// In an operation: a release of system scope by whatever reads the stream's commands.
void write_flag(std::uint32_t* flag, std::uint32_t value);
/// copy() and fill() by host code that waits for them.
void copy_now(void* to, const void* from, std::size_t bytes);
void fill_now(void* memory, std::uint8_t value, std::size_t bytes);
/// Memory is about to be freed: its device has done its work, and no other one's may still use it.
void before_free(const void* memory);

// ---- For the machine.

/// Whether the calling OS thread is that of a stream.
bool is_stream_thread();
/// On such a thread: what run_grid() does there.
void run_grid(const gemm::ptx::LaunchShape& shape, const std::function<void()>& body, const void* kernel);
/// Between two steps of a gang: others may go first. False: the run is over, for the reason in `failure` or
/// because of another rank.
bool take_turn(Gang& gang, std::unique_ptr<Failure>& failure);

/// "(0,0,0) of rank 1": the CTA with this key, of any device in this run.
std::string name_cta(std::uint32_t key);
/// The same for a thread, or the copy that it stands for.
std::string name_thread(Stamp stamp);
/// The device to whose grid the key belongs; -1: unknown.
int rank_of(std::uint32_t key);
/// The same where it is another one than the grid's; -1: it is the same, or there is only one.
int rank_of_other(const Grid& grid, Stamp stamp);
/// Whether a copy engine has left this stamp.
bool is_engine(Stamp stamp);

}  // namespace ranks
}  // namespace emulator
