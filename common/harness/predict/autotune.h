// Choosing a variant by measuring: what --autotune found, remembered for each GPU.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"

namespace harness {

/// The fastest variant of a step for a shape, as it was measured once.
struct TunedChoice {
  std::string variant;
  double median_us = 0;
  std::string date;    // ISO 8601, UTC
  std::string commit;  // of the kernels that were raced
};

/// The choices of one file, for every GPU that it was used with: by name and number of SMs.
class TunedChoices {
 public:
  /// A file that does not exist holds nothing. Throws Error that names the file when it holds something else.
  explicit TunedChoices(std::filesystem::path file);

  std::optional<TunedChoice> find(const DeviceInfo& device, const std::string& step,
                                  const gemm::Shape& shape) const;
  void remember(const DeviceInfo& device, const std::string& step, const gemm::Shape& shape,
                const TunedChoice& choice);
  /// Writes the file, and its folder when that is missing. Throws Error when that fails.
  void save() const;
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  nlohmann::json choices_;  // [GPU][step][shape]
};

/// $GEMM_STEPS_AUTOTUNE, or gemm-steps/autotune.json in $XDG_CACHE_HOME or ~/.cache.
std::filesystem::path autotune_file();

/// The variant that runs, and why.
struct ResolvedVariant {
  const gemm::Variant* variant = nullptr;
  std::string why;     // empty for a variant that does not choose
  double host_us = 0;  // processor time that the step's model took to choose; 0: it was not asked
};

/// For a variant that chooses by shape: what was measured for this GPU if there is such a choice, otherwise
/// what the step's model chooses. A remembered name that the step no longer has is passed over.
ResolvedVariant resolve(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                        const DeviceInfo& device, const TunedChoices& tuned);

}  // namespace harness
