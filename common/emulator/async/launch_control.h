// clusterlaunchcontrol: CTAs that cancel clusters of their grid that have not started, and take their place.
//
// A request is a load of 16 bytes whose contents are decided when it lands. Which clusters a gang may find
// waiting follows from the seed alone: the machine divides the grid into as many queues as clusters are
// resident at once, and a queue runs on one OS thread (machine/launch.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/machine/where.h"

namespace emulator {

class HopperEngine;

/// One try_cancel: what becomes of it.
struct CancelRequest {
  std::uint32_t serial = 0;  // in the gang
  Stamp issuer = 0;
  Where where;
  bool decided = false;
  bool canceled = false;
  uint3 first{};         // CTA of the cluster
  bool decoded = false;  // some thread knows which cluster it is
  struct Answer {
    const Cta* cta;
    Stamp arrives;
  };
  std::vector<Answer> answers;  // known to be there behind these
};

/// Part of the HopperEngine, made by the first request.
class LaunchControl {
 public:
  explicit LaunchControl(HopperEngine& engine) : engine_(engine) {}

  // Executed by the running thread.
  void try_cancel(const char* what, void* response, void* barrier, bool multicast, Where where);
  bool is_canceled(const char* what, const void* response, Where where);
  uint3 first_ctaid(const char* what, const void* response, Where where);

  /// The request has been carried out: its 16 bytes.
  void answer(CancelRequest& request, unsigned char (&bytes)[16]);
  void thread_exits(const Thread& thread);

 private:
  CancelRequest& request_of(const char* what, const void* response, Where where);
  void check_not_refused(const char* what, const Thread& thread, Where where);

  HopperEngine& engine_;
  std::vector<std::shared_ptr<CancelRequest>> requests_;
};

/// Of the running thread's gang, made on first use.
LaunchControl& launch_control(const char* what, Where where);

/// The program has kernels that cancel clusters: from now on launches are divided into queues.
bool expect_launch_control();

}  // namespace emulator
