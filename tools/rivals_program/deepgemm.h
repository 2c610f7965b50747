// The rival's kernels, as the program that races them sees them.
#pragma once

#include <memory>
#include <vector>

#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace rivals {

inline constexpr const char* kDeepGemm = "deepgemm";

/// Which operand the two CTAs of a cluster share, so that one copy brings it to both.
enum class Multicast { kNone, kA, kB };

/// What is multiplied: e4m3 whose blocks have scales, or bf16; either in groups of rows, each of which has a
/// B; or e4m3 in groups that have room for as many rows each, with their counts on the device.
enum class Form { kBlockScales, kBf16, kBf16Groups, kBlockScalesGroups, kBlockScalesMasked };

constexpr bool has_scales(Form form) {
  return form != Form::kBf16 && form != Form::kBf16Groups;
}
constexpr bool has_contiguous_groups(Form form) {
  return form == Form::kBf16Groups || form == Form::kBlockScalesGroups;
}

/// One configuration of DeepGEMM's kernel for such a problem: its tile, and what follows from it.
struct Configuration {
  Form form = Form::kBlockScales;
  gemm::TileShape tile;
  Multicast multicast = Multicast::kNone;
  int n = 0;  // the N, the K and the SMs of the GPU that it was compiled for
  int k = 0;
  int sms = 0;
  int groups = 1;  // with counts on the device: for how many it was compiled
  int stages = 0;
  int producer_threads = 0;
  int consumer_threads = 0;
  int shared_bytes = 0;
  int output_span = 0;  // bytes that the swizzle of D's tile stays inside

  constexpr int ctas_per_cluster() const { return multicast == Multicast::kNone ? 1 : 2; }
};

/// A kernel like DeepGEMM's own: compiled for one N and one K.
struct Kernel {
  Configuration configuration;
  gemm::Variant variant;
};

/// What a launch takes beside sizes.
struct Arguments {
  gemm::ptx::TensorMap a, b, d;
  gemm::ptx::TensorMap scales_a{};
  float* scales_b = nullptr;
  std::shared_ptr<const gemm::ptx::DeviceCopy> groups{};  // int [m]: the group of each row; or [count]: rows
  std::shared_ptr<const gemm::ptx::DeviceCopy> scales{};  // of A, where they must lie otherwise
  int rows = 0;                                           // of A, or for which a group has room

  int* layout_of_groups() const {
    return groups ? static_cast<int*>(const_cast<void*>(groups->memory())) : nullptr;
  }
};

/// The variant, but for its kernel and how that is prepared.
gemm::Variant described(const Configuration& configuration);
gemm::ptx::LaunchShape launch_shape_of(const Configuration& configuration);
/// Throws std::invalid_argument where the kernel was compiled for another problem, or scales lie otherwise.
Arguments arguments_of(const Configuration& configuration, const gemm::Problem& problem);

/// Poisons what DeepGEMM's kernel for counts on the device may have left behind a group's rows: whole tiles
/// are stored, and nobody says what these rows hold then.
void poison_rest(const gemm::Problem& problem);

/// All that were compiled. Generated.
std::vector<Kernel> deepgemm_kernels();

/// What the build was given: the checkout's folder, and its commit, or nothing where git knows none.
extern const char* const kCheckout;
extern const char* const kCheckoutCommit;

/// The steps of this course that were linked. Generated.
std::vector<const gemm::Step*> our_steps();

}  // namespace rivals
