#include "harness/predict/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "gemm/fitted/choosing.h"
#include "harness/base/files.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

namespace fs = std::filesystem;

std::string gpu_key(const DeviceInfo& device) {
  return fmt::format("{}, {} SMs", device.name, device.sm_count);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

fs::path autotune_file() {
  if (const char* file = variable("GEMM_STEPS_AUTOTUNE")) return file;
  if (const char* cache = variable("XDG_CACHE_HOME")) return fs::path(cache) / "gemm-steps" / "autotune.json";
  if (const char* home = variable("HOME")) return fs::path(home) / ".cache" / "gemm-steps" / "autotune.json";
  return "autotune.json";
}

TunedChoices::TunedChoices(fs::path file) : file_(std::move(file)), choices_(nlohmann::json::object()) {
  std::ifstream stream(file_);
  if (!stream) return;
  const bool is_folder = fs::is_directory(file_);
  if (!is_folder) choices_ = nlohmann::json::parse(stream, nullptr, false);
  if (is_folder || !choices_.is_object())
    throw Error(fmt::format(
        "{} does not hold what --autotune writes: remove it, or set GEMM_STEPS_AUTOTUNE to another file",
        file_.string()));
}

std::optional<TunedChoice> TunedChoices::find(const DeviceInfo& device, const std::string& step,
                                              const gemm::Shape& shape) const {
  const auto path = nlohmann::json::json_pointer() / gpu_key(device) / step / to_string(shape);
  if (!choices_.contains(path)) return std::nullopt;
  const nlohmann::json& entry = choices_.at(path);
  if (!entry.is_object()) return std::nullopt;
  try {
    return TunedChoice{entry.value("variant", ""), entry.value("median_us", 0.0), entry.value("date", ""),
                       entry.value("commit", "")};
  } catch (const nlohmann::json::exception&) {  // of another type
    return std::nullopt;
  }
}

void TunedChoices::remember(const DeviceInfo& device, const std::string& step, const gemm::Shape& shape,
                            const TunedChoice& choice) {
  nlohmann::json* entry = &choices_;
  for (const std::string& key : {gpu_key(device), step}) {
    entry = &(*entry)[key];
    if (!entry->is_object()) *entry = nlohmann::json::object();  // of another form: made anew
  }
  (*entry)[to_string(shape)] = {{"variant", choice.variant},
                                {"median_us", choice.median_us},
                                {"date", choice.date},
                                {"commit", choice.commit}};
}

void TunedChoices::save() const {
  std::error_code error;
  if (file_.has_parent_path()) fs::create_directories(file_.parent_path(), error);
  if (!error) error = write_file(file_, choices_.dump(1) + '\n');
  if (error)
    throw Error(fmt::format("{} could not be written ({}): set GEMM_STEPS_AUTOTUNE to a file that can",
                            file_.string(), error.message()));
}

ResolvedVariant resolve(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                        const DeviceInfo& device, const TunedChoices& tuned) {
  if (variant.choose == nullptr) return {&variant, ""};
  const auto choice = tuned.find(device, step.name, shape);
  if (choice && gemm::choosing == gemm::Choosing::kCorrected) {
    const auto known = std::find_if(step.variants.begin(), step.variants.end(), [&](const auto& other) {
      return other.name == choice->variant && other.choose == nullptr;
    });
    if (known != step.variants.end())
      return {&*known, fmt::format("fastest when all were measured on {} ({:.1f} us, commit {})",
                                   choice->date.substr(0, 10), choice->median_us, choice->commit)};
  }
  gemm::Choice by_model = variant.choose(shape);
  if (!by_model.faster_step.empty())
    by_model.why +=
        fmt::format("; step {} is faster at a shape like this", by_model.faster_step.substr(0, 2));
  return {&find_variant(step, by_model.variant), by_model.why, by_model.host_us};
}

}  // namespace harness
