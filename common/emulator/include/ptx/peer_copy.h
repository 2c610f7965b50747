// A copy from one GPU's memory to another one's by a copy engine, and the flag that says that it has arrived:
// the emulator's counterpart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/machine/ranks.h"
#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// cudaMemcpyPeerAsync
inline void copy_to_peer(void* to, int, const void* from, int, std::size_t bytes, Stream stream) {
  emulator::ranks::submit(stream, emulator::ranks::Work::kCopy,
                          [=] { emulator::ranks::copy(to, from, bytes); });
}

/// cuStreamWriteValue32
inline void write_flag(std::uint32_t* flag, std::uint32_t value, Stream stream) {
  emulator::ranks::submit(stream, emulator::ranks::Work::kCopy,
                          [=] { emulator::ranks::write_flag(flag, value); });
}

/// cudaStreamCreateWithFlags, cudaEventRecord, cudaStreamWaitEvent
class SideStream {
 public:
  SideStream()
      : stream_(emulator::ranks::make_stream(false)),
        begun_(emulator::ranks::make_event()),
        ended_(emulator::ranks::make_event()) {}
  ~SideStream() { emulator::ranks::destroy_stream(stream_); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  Stream begin_after(Stream main) {
    emulator::ranks::record(begun_, main);
    emulator::ranks::wait_for(stream_, begun_);
    return stream_;
  }
  void end_before(Stream main) {
    emulator::ranks::record(ended_, stream_);
    emulator::ranks::wait_for(main, ended_);
  }

 private:
  Stream stream_;
  emulator::ranks::Event begun_, ended_;
};

}  // namespace gemm::ptx
