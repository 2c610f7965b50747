// What only the source of a kernel says: the emulator's compiler is not told what __grid_constant__ means,
// and no shape that the emulator can run is large enough for an offset in 32 bits to overflow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emulator {

/// A parameter of a kernel that is a tensor map by value, without __grid_constant__.
struct CopiedTensorMap {
  std::string kernel;
  std::string parameter;
  int line = 0;
};

/// Those of all kernels (__global__) in the source. What the preprocessor or a type's name hides is not seen.
std::vector<CopiedTensorMap> copied_tensor_maps(std::string_view source);

/// A kernel.cuh that was compiled into this program, told by the generated source that includes it.
class KernelSource {
 public:
  /// `scope`: the namespace inside gemm that its kernels are in; `path`: as reports name it. All of static
  /// lifetime.
  KernelSource(const char* scope, const char* path, const char* text);
};

/// A header of common/gemm, which kernels are made of.
struct HeaderSource {
  const char* path;  // as reports name it
  const char* text;
};
/// All of them, from a generated source.
const std::vector<HeaderSource>& header_sources();

/// The whole text of a kernel's source, by its path in reports, or "".
std::string_view source_text(std::string_view path);

/// A line of a source or header in the program, by its path in reports, or "".
std::string source_line(std::string_view path, int line);

/// "begun" of "ptx::mbarrier_init(&shared.begun, 1);", "" where the object is an element of an array.
std::string initialised_member(std::string_view line);

/// The same text with spaces for comments and literals, so that places stay where they are.
std::string without_comments(std::string_view source);

/// "steps/09_tma/kernel.cuh:43", or "" for a kernel whose source nobody has told.
std::string place_of_kernel(const void* kernel);

/// Reports what the source of this kernel says about its parameters and the hardware would not forgive.
void check_kernel_source(const void* kernel);

}  // namespace emulator
