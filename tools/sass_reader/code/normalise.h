// Listings that change only when the code does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "code/listing.h"

namespace sass {

/// Rewrites the operands and predicates of `code` (in place):
/// - Registers get new numbers in order of appearance. Registers that some instruction uses as one vector
///   stay consecutive, and numbers keep their value modulo 4, so that alignment and bank stay visible.
///   The same is done for uniform registers and, without groups, for predicates.
/// - Branch targets become "L0", "L1", ... by address, or "out" when they leave `code`.
/// - Kernel parameters c[0x0][...] become param[offset].
/// What the register allocator did outside of `code`, and where `code` was placed, no longer shows.
void normalise(std::vector<Instruction>& code, const std::string& target);

/// The addresses inside `code` that branches of `code` go to, ascending: L0, L1, ... in this order.
std::vector<std::uint32_t> branch_targets(const std::vector<Instruction>& code);

/// Opcode and kinds of operands without any number: equal for two instructions that
/// differ only in allocation.
std::string shape_of(const Instruction& instruction);

}  // namespace sass
