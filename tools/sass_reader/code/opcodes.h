// What the opcodes of SASS are for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sass {

/// What an instruction does for the kernel. The order is the order of the rows in the instruction mix.
enum class Class {
  kMatrixMath,  // HMMA, HGMMA
  kMath,        // FFMA and relatives
  kGlobalLoad,
  kGlobalStore,
  kAsyncCopy,  // LDGSTS, TMA: global <-> shared without passing through registers
  kSharedLoad,
  kSharedStore,
  kMatrixLoad,  // LDSM, STSM: fragments
  kLocal,       // LDL, STL: the stack, which is where spilled registers go
  kConstantLoad,
  kAtomic,
  kBarrier,  // barriers, fences, waits for asynchronous work
  kConversion,
  kAddress,  // integer and address arithmetic
  kCompare,  // predicates and selects
  kMove,     // moves, constants, special registers, shuffles
  kControl,  // branches, reconvergence, exit
  kOther,
};

std::string_view to_string(Class value);
/// Every class, in the order of the mix.
const std::vector<Class>& all_classes();

struct Opcode {
  std::string_view name;
  Class kind;
  std::string_view summary;  // "" for opcodes the course does not meet
};

/// Opcodes named by NVIDIA for sm_80 to sm_90a. Source: CUDA Binary Utilities, "Instruction Set Reference"
/// (NVIDIA Ampere GPU and Ada; Hopper). The summaries are this project's.
const std::vector<Opcode>& opcode_table();

/// nullptr when the opcode is not in the table.
const Opcode* find_opcode(std::string_view name);

}  // namespace sass
