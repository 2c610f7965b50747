#include "mbarrier_device.h"

#include <algorithm>
#include <numeric>

#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"
#include "harness/backend/emulator_control.h"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_word.h"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace play {
namespace {

namespace ptx = gemm::ptx;

using harness::DeviceArray;

struct Shared {
  unsigned char copied[kCopySpaceBytes];
  std::uint64_t barrier;
};

/// An event as the kernel reads it.
struct DeviceEvent {
  std::uint32_t verb;
  std::uint32_t value;
  std::uint32_t map;    // of a copy: which of Maps
  std::uint32_t place;  // where it goes, in Shared::copied
};

/// One map for each size of a copy. Parameters of the kernel: there a map needs no fence.
struct Maps {
  ptx::TensorMap of_size[kMaxCopySizes];
};

/// How the kernel looks at the barrier.
struct Manner {
  bool memory_is_current;  // an ordinary load sees the word (emulator); otherwise only behind mbarrier.inval
  /// Tests of the barrier in which a copy of the GPU surely lands, and which a wait may take; 0: none are
  /// needed, copies land at once and a wait that never ends is reported.
  std::uint32_t patience;
};

/// Bit p: a wait for parity p would pass.
__device__ std::uint32_t passing_waits(std::uint64_t* barrier) {
  const std::uint32_t even = ptx::mbarrier_test_wait_parity(barrier, 0) ? 1 : 0;
  const std::uint32_t odd = ptx::mbarrier_test_wait_parity(barrier, 1) ? 2 : 0;
  return even | odd;
}

/// Waits for the phase of this parity: on the emulator, which explains a wait that never ends, as kernels do;
/// on the GPU not for ever.
__device__ bool wait(std::uint64_t* barrier, std::uint32_t parity, Manner manner) {
  if (manner.patience == 0) {
    while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
    }
    return true;
  }
  bool passes = false;
  for (std::uint32_t i = 0; !passes && i < manner.patience; ++i) {
    passes = ptx::mbarrier_test_wait_parity(barrier, parity);
  }
  return passes;
}

/// Executes `count` events and observes the barrier after each that can be observed.
__global__ void script_kernel(const DeviceEvent* events, int count, const __grid_constant__ Maps maps,
                              Observation* observations, Manner manner) {
  auto& shared = ptx::dynamic_shared<Shared>();
  std::uint64_t* const barrier = &shared.barrier;
  bool alive = false;
  std::uint32_t answer = 1;
  for (int i = 0; i < count && answer != 0; ++i) {
    const auto verb = static_cast<Verb>(ptx::ld_global(&events[i].verb));
    const std::uint32_t value = ptx::ld_global(&events[i].value);
    std::uint32_t tested = 1;
    switch (verb) {
      case Verb::kInit:
        ptx::mbarrier_init(barrier, value);
        ptx::fence_mbarrier_init_release_cluster();  // the copy engine will signal it
        alive = true;
        break;
      case Verb::kArrive:
        ptx::mbarrier_arrive(barrier);
        break;
      case Verb::kExpect:
        ptx::mbarrier_expect_tx(barrier, value);
        break;
      case Verb::kArriveExpect:
        ptx::mbarrier_arrive_expect_tx(barrier, value);
        break;
      case Verb::kComplete:
        ptx::cp_async_bulk_tensor_2d(shared.copied + ptx::ld_global(&events[i].place),
                                     &maps.of_size[ptx::ld_global(&events[i].map)], 0, 0, barrier);
        for (std::uint32_t j = 0; j < manner.patience; ++j) ptx::mbarrier_test_wait_parity(barrier, 0);
        break;
      case Verb::kTest:
        tested = ptx::mbarrier_test_wait_parity(barrier, value) ? 1 : 0;
        break;
      case Verb::kWait:
        answer = tested = wait(barrier, value, manner) ? 1 : 0;  // after a wait in vain nothing can follow
        break;
      case Verb::kInval:
        ptx::mbarrier_inval(barrier);
        alive = false;
        break;
    }
    ptx::st_global(&observations[i].answer, tested);
    if (alive && manner.memory_is_current) ptx::st_global(&observations[i].word, ptx::ld_shared(barrier));
    ptx::st_global(&observations[i].seen, 1u);
  }
  if (!alive || manner.memory_is_current) return;
  ptx::st_global(&observations[count - 1].complete, passing_waits(barrier));
  ptx::mbarrier_inval(barrier);
  ptx::st_global(&observations[count - 1].word, ptx::ld_shared(barrier));
}

/// A copy of `bytes` bytes from `source`, as one box.
ptx::TensorMap copy_map(const void* source, std::uint32_t bytes) {
  const std::uint32_t row = std::min(bytes, kRowBytes);
  ptx::TensorMapSpec spec;
  spec.base = source;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {kRowBytes / 4, kMaxCopyBytes / kRowBytes};
  spec.stride_bytes = {0, kRowBytes};
  spec.box = {row / 4, bytes / row};
  return ptx::make_tensor_map(spec);
}

}  // namespace

ScriptRun run_script(const std::vector<Event>& events, bool emulator) {
  constexpr std::uint32_t kPatience = 2000;
  std::vector<std::uint32_t> source(kMaxCopyBytes / 4);
  std::iota(source.begin(), source.end(), 0u);
  const DeviceArray<std::uint32_t> device_source(source, "the copies' source");

  std::vector<DeviceEvent> device_events;
  std::vector<std::uint32_t> sizes;
  Maps maps{};
  std::uint32_t place = 0;
  for (const Event& event : events) {
    device_events.push_back({static_cast<std::uint32_t>(event.verb), event.value, 0, place});
    if (event.verb != Verb::kComplete) continue;
    const auto known = std::find(sizes.begin(), sizes.end(), event.value);
    device_events.back().map = static_cast<std::uint32_t>(known - sizes.begin());
    if (known == sizes.end()) {
      maps.of_size[sizes.size()] = copy_map(device_source.get(), event.value);
      sizes.push_back(event.value);
    }
    place += (event.value + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
  }
  const DeviceArray<DeviceEvent> script(device_events, "the script");
  const DeviceArray<Observation> observations(std::vector<Observation>(events.size()), "the observations");
  const auto launch = [&](std::size_t count, Manner manner) {
    ptx::launch(script_kernel, {.block = {1}, .shared_bytes = sizeof(Shared)}, nullptr, script.get(),
                static_cast<int>(count), maps, observations.get(), manner);
    harness::synchronize();
  };

  ScriptRun run;
  if (!emulator) {
    for (std::size_t count = 1; count <= events.size() && run.crash.empty(); ++count) {
      try {
        launch(count, {.memory_is_current = false, .patience = kPatience});
        run.observations = observations.host();
        if (events[count - 1].verb == Verb::kWait && run.observations[count - 1].answer == 0) break;
      } catch (const harness::Error& error) {
        run.crash = error.what();  // nothing more can be asked of the device
      }
    }
    run.observations.resize(events.size());
    return run;
  }
  harness::control_emulator({.completion = harness::Completion::kEarliest});
  try {
    launch(events.size(), {.memory_is_current = true, .patience = 0});
  } catch (const harness::EmulatorReport& report) {
    run.rule = report.rule();
    run.report = report.what();
  }
  harness::control_emulator({});
  run.observations = observations.host();
  for (Observation& observation : run.observations)
    observation.complete = ptx::decode_mbarrier(observation.word).parity == 0 ? 2 : 1;
  return run;
}

}  // namespace play
