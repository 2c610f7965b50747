// One kernel, ready to be shown or checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "code/flow.h"
#include "code/mix.h"
#include "toolchain/toolchain.h"

namespace sass {

/// A function with its main loop and what is known about it. Refers to the Binary it was made from.
struct KernelView {
  const Binary* binary = nullptr;
  const Function* function = nullptr;
  VariantInfo variant;
  Resources resources;
  Flow flow;
  const Loop* main_loop = nullptr;            // in `flow`; nullptr when no loop multiplies
  std::vector<const Instruction*> loop_code;  // the main loop in address order
  std::vector<const Instruction*> code;       // the whole kernel

  KernelView(const Binary& owner, const VariantInfo& info);
  KernelView(KernelView&&) = default;
  KernelView& operator=(KernelView&&) = default;
  KernelView(const KernelView&) = delete;

  /// How many k-tiles one iteration of the main loop works off: its multiply-adds, over all `threads` of a
  /// block, divided by those of a tile. Nothing when that is unknown or no whole number.
  std::optional<int> k_tiles_per_iteration(int threads) const;

  /// Instructions outside the main loop, in address order. Behind it is what the loop can lead to and stands
  /// at a higher address; before it is all the rest, also what the compiler has put out of the way, at the
  /// end of the function.
  std::vector<const Instruction*> before_loop() const;
  std::vector<const Instruction*> after_loop() const;
  std::uint32_t loop_start() const;

 private:
  std::vector<const Instruction*> outside_loop(bool behind) const;
};

}  // namespace sass
