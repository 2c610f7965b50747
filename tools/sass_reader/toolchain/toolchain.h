// nvcc and the disassembler: finding them, and compiling a step for its machine code. Needs no GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "code/listing.h"
#include "toolchain/resources.h"

namespace sass {

/// nvcc or the disassembler is not there, or too old. what() is one line that says how to get it. The program
/// exits with kExitSkipped, which ctest counts as skipped.
class MissingTool : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
inline constexpr int kExitSkipped = 77;

struct Toolchain {
  std::string nvcc;
  std::string nvdisasm;
  std::string cuobjdump;
  std::string compiler_version;      // "13.0.88", of nvcc
  std::string disassembler_version;  // of nvdisasm
};

/// The compiler is $CUDACXX if that is set. Otherwise, and for the disassembler, looks in $PATH,
/// $CUDA_HOME/bin, <root>/.toolchain/bin, <root>/.toolchain/cuda/bin and $GEMM_STEPS_SYSTEM_CUDA/bin
/// (/usr/local/cuda/bin), in this order.
/// A disassembler older than the compiler is passed over: it does not know the compiler's file format and
/// forgets the "a" of sm_90a. Throws MissingTool.
Toolchain find_toolchain(const std::filesystem::path& root);

/// Directories that hold NN_name/kernel.cuh below root/steps, by name.
std::vector<std::string> list_steps(const std::filesystem::path& root);
/// "7", "07", "07_name" or "name" -> "07_name". Throws harness::Error with the nearest match.
std::string find_step(const std::filesystem::path& root, const std::string& name);

/// One variant of a step, as kernel.cuh registers it.
struct VariantInfo {
  std::string name;
  std::string summary;
  std::string function;  // mangled name of its kernel
  int tile_m = 0, tile_n = 0, tile_k = 0;
  int stages = 0;
  int threads = 0;  // per block, at 4096^3
  int dynamic_shared_bytes = 0;
  int math_threads = 0;  // those that multiply, as expect.json says; 0: all
};

/// A compiled file.
struct Binary {
  std::string architecture;  // "sm_90a": what was asked for
  std::string target;        // what the cubin says it was built for
  Listing listing;
  PtxasLog log;
  std::map<std::string, Resources> usage;  // by mangled name; spills from ptxas, the rest from cuobjdump
};

struct StepBinary : Binary {
  std::string step;  // "01_naive"
  std::vector<VariantInfo> variants;
  /// Throws harness::Error with the nearest match; "" is the default variant.
  const VariantInfo& find_variant(const std::string& name) const;
};

/// Compiles steps/NN_name/kernel.cuh with the flags of the build, for the step's own architecture unless
/// another is named, and reads the result back. What was compiled is kept below root/build/sass and used
/// again while no input changed. Throws harness::Error when the compiler refuses.
StepBinary build_step(const Toolchain& toolchain, const std::filesystem::path& root, const std::string& step,
                      const std::string& architecture = "");

/// Reads a step from its objects of the GPU build, beside which lies what ptxas said (cmake/keep_ptxas_log).
/// `linked` is what makes it a program: variants/built_step.cpp, compiled, and the library of common/ptx.
StepBinary read_built_step(const Toolchain& toolchain, const std::filesystem::path& root,
                           const std::string& step, const std::vector<std::string>& objects,
                           const std::vector<std::string>& linked);

/// "sm_100a" for a step whose kernel.cuh says Architecture::kSm100a, "sm_90a" for every other one.
std::string architecture_of_step(const std::filesystem::path& root, const std::string& step);

/// Compiles any file of kernels to a cubin in `folder` and reads it back.
Binary build_file(const Toolchain& toolchain, const std::filesystem::path& source,
                  const std::filesystem::path& folder, const std::string& architecture,
                  const std::vector<std::string>& options = {});

/// Puts together what the two tools and the compiler printed; what the tests do with committed files.
Binary assemble_binary(const std::string& disassembly, const std::string& usage, const std::string& log,
                       const std::string& architecture);

/// "gemm::step_01::naive_kernel<16, 16>": without parameters and return type.
std::string demangle(const std::string& name);

/// -gencode arguments for "sm_90a".
std::string gencode(const std::string& architecture);

std::string read_file(const std::filesystem::path& path);
/// Writes beside the file and renames, so that nothing half-written is left behind.
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace sass
