// One way to start a kernel: the emulator's counterpart. The grid has run when launch returns.
#pragma once

#include <functional>
#include <memory>
#include <tuple>

#include "emulator/machine/machine.h"
#include "emulator/machine/ranks.h"
#include "ptx/card.h"
#include "ptx/core.cuh"
#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// The address that identifies a kernel.
template <typename... Parameters>
const void* kernel_handle(void (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// An H200 with as many SMs as the emulator has.
inline Card this_card() {
  Card card = kH200;
  card.sms = static_cast<int>(emulator::resident_ctas({}));
  card.clusters = {};  // of any SMs
  return card;
}

/// How many CTAs the emulated GPU holds at once, a multiple of the cluster: shape.ctas_per_sm for each of its
/// SMs.
inline unsigned resident_ctas(const void*, const LaunchShape& shape) {
  return emulator::resident_ctas(shape);
}

/// Runs `kernel` with `shape`; `stream` must be nullptr, except in a run of several devices
/// (emulator/machine/ ranks.h), where the kernel runs when something waits for it. Throws
/// harness::EmulatorReport for a launch that hardware would refuse and for every rule that the kernel breaks.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, Stream stream,
            Arguments&&... arguments) {
  if (emulator::has_ranks()) {
    const auto kept =
        std::make_shared<const std::tuple<Parameters...>>(static_cast<Parameters>(arguments)...);
    return emulator::ranks::launch(shape, stream, kernel_handle(kernel),
                                   [kernel, kept] { std::apply(kernel, *kept); });
  }
  const std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
  emulator::run_grid(
      shape, stream, [&] { std::apply(kernel, values); }, kernel_handle(kernel));
}

}  // namespace gemm::ptx
