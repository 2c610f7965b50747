// What is wrong with a wgmma descriptor, and what is odd about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/descriptor.h"

namespace play {

inline constexpr std::uint32_t kSharedBytes = 227 * 1024;  // that a CTA can have, sm_90

struct DescriptorFindings {
  std::vector<std::string>
      wrong;                     // wgmma would read something that cannot be meant, or the bits are undefined
  std::vector<std::string> odd;  // allowed, and rarely what was meant
  std::vector<std::string> notes;
};

/// Looks at a descriptor of a K-major bf16 operand of `rows` rows (64 for A, N for B) and 16 elements of K.
/// PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout: Matrix Descriptor Format", "Strides".
DescriptorFindings examine_descriptor(std::uint64_t bits, std::uint32_t rows);

/// Where the 16 bytes of row `row` that hold k 0-7 (unit 0) or k 8-15 (unit 1) lie in shared memory.
std::uint32_t operand_address(const gemm::ptx::MatrixDescriptor& descriptor, std::uint32_t row,
                              std::uint32_t unit);

}  // namespace play
