#include "view/kernel_view.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/backend/backend.h"

namespace sass {

KernelView::KernelView(const Binary& owner, const VariantInfo& info) : binary(&owner), variant(info) {
  function = owner.listing.find(info.function);
  if (function == nullptr)
    throw harness::Error(fmt::format("the cubin has no kernel {}", demangle(info.function)));
  const auto usage = owner.usage.find(info.function);
  if (usage != owner.usage.end()) resources = usage->second;
  flow = analyse_flow(*function);
  main_loop = find_main_loop(*function, flow);
  if (main_loop != nullptr) loop_code = instructions_of(*function, flow, *main_loop);
  for (const Instruction& instruction : function->instructions) code.push_back(&instruction);
}

std::optional<int> KernelView::k_tiles_per_iteration(int threads) const {
  // tcgen05.mma is as large as the CTA's tile; one thread issues it.
  int depth = 0;
  for (const Instruction* instruction : loop_code) depth += tensor_memory_depth(instruction->opcode);
  if (depth > 0) {
    if (variant.tile_k <= 0 || depth % variant.tile_k != 0) return std::nullopt;
    return depth / variant.tile_k;
  }
  const double tile = double{1} * variant.tile_m * variant.tile_n * variant.tile_k;
  const double work = count_mix(loop_code).multiply_adds * threads;
  if (tile <= 0 || work <= 0 || std::fmod(work, tile) != 0) return std::nullopt;
  return static_cast<int>(work / tile);
}

std::uint32_t KernelView::loop_start() const {
  return loop_code.empty() ? 0 : loop_code.front()->address;
}

std::vector<const Instruction*> KernelView::before_loop() const {
  return outside_loop(false);
}

std::vector<const Instruction*> KernelView::after_loop() const {
  return outside_loop(true);
}

std::vector<const Instruction*> KernelView::outside_loop(bool behind) const {
  std::vector<const Instruction*> result;
  if (main_loop == nullptr) return result;
  const std::vector<bool> follows = reachable_from(flow, main_loop->blocks);
  for (std::size_t i = 0; i < flow.blocks.size(); ++i) {
    const Block& block = flow.blocks[i];
    const bool is_behind = follows[i] && function->instructions[block.first].address > loop_start();
    if (main_loop->contains(i) || is_behind != behind) continue;
    for (std::size_t j = block.first; j <= block.last; ++j) result.push_back(&function->instructions[j]);
  }
  return result;
}

}  // namespace sass
