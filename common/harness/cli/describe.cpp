#include "harness/cli/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/backend/emulator_control.h"
#include "harness/base/output.h"
#include "harness/predict/autotune.h"
#include "harness/predict/budget.h"

namespace harness {
namespace {

void print_choice(const Entry& entry, const ResolvedVariant& choice) {
  fmt::print("{}\n",
             prose(fmt::format("  {} chose {}: {}", entry.step->name, choice.variant->name, choice.why)));
}

const char* name_of(gemm::MathUnit unit) {
  switch (unit) {
    case gemm::MathUnit::kFma:
      return "fma";
    case gemm::MathUnit::kMmaSync:
      return "mma_sync";
    case gemm::MathUnit::kWgmma:
      return "wgmma";
    case gemm::MathUnit::kTcgen05:
      return "tcgen05";
  }
  return "";
}

const char* name_of(gemm::Architecture architecture) {
  switch (architecture) {
    case gemm::Architecture::kSm80:
      return "80";
    case gemm::Architecture::kSm90a:
      return "90a";
    case gemm::Architecture::kSm100a:
      return "100a";
  }
  return "";
}

nlohmann::ordered_json description(const gemm::Variant& variant) {
  const gemm::Types& types = variant.types;
  const auto major = [](gemm::Major of) { return of == gemm::Major::kK ? "K" : "MN"; };
  return {{"name", variant.name},
          {"summary", variant.summary},
          {"tile", {variant.tile.m, variant.tile.n, variant.tile.k}},
          {"stages", variant.stages},
          {"types",
           {{"a", gemm::name_of(types.a)},
            {"b", gemm::name_of(types.b)},
            {"d", gemm::name_of(types.d)},
            {"major_a", major(types.major_a)},
            {"major_b", major(types.major_b)}}},
          {"chooses", variant.choose != nullptr}};
}

nlohmann::ordered_json description(const gemm::Step& step) {
  nlohmann::ordered_json variants = nlohmann::ordered_json::array();
  for (const gemm::Variant& variant : step.variants) variants.push_back(description(variant));
  return {{"name", step.name},
          {"title", step.title},
          {"builds_on", step.builds_on},
          {"unit", name_of(step.unit)},
          {"architecture", name_of(step.architecture)},
          {"contract",
           {{"m_multiple", step.contract.m_multiple},
            {"n_multiple", step.contract.n_multiple},
            {"k_multiple", step.contract.k_multiple}}},
          {"variants", variants}};
}

}  // namespace

void print_header(const DeviceInfo& device) {
  const std::string line =
      device.is_emulator
          ? fmt::format("emulator: {} SMs; it checks rules and results and says nothing about speed",
                        device.sm_count)
          : fmt::format("{}: {} SMs, compute capability {}.{}, driver {}, CUDA {}", device.name,
                        device.sm_count, device.compute_capability / 10, device.compute_capability % 10,
                        device.driver_version, device.runtime_version);
  fmt::print("{}\n", fitted(line));
}

void print_choices(const std::vector<Entry>& entries, const gemm::Shape& shape) {
  for (const Entry& entry : entries) {
    const ResolvedVariant choice = resolved(entry, shape);
    if (choice.variant != entry.variant) print_choice(entry, choice);
  }
}

void print_variants(const std::vector<const gemm::Step*>& steps) {
  for (const gemm::Step* step : steps) {
    fmt::print("{}\n", fitted(fmt::format("{}: {}", step->name, step->title)));
    std::size_t width = 0;
    for (const gemm::Variant& variant : step->variants) width = std::max(width, variant.name.size());
    for (const gemm::Variant& variant : step->variants) {
      const char* mark = &variant == &step->variants.front() ? " (default)" : "";
      fmt::print("{}\n", fitted(fmt::format("  {:<{}}  {}{}", variant.name, width, variant.summary, mark)));
    }
  }
}

void print_descriptions(const std::vector<const gemm::Step*>& steps) {
  for (const gemm::Step* step : steps)
    fmt::print("{}{}", step == steps.front() ? "[" : ",\n", description(*step).dump());
  fmt::print("]\n");
}

void print_budgets(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                   const DeviceInfo& device, const std::string& architecture) {
  for (const Entry& entry : entries) {
    const DeviceInfo budgeted = budgeted_device(*entry.step, device, architecture);
    // A persistent kernel asks how many CTAs fit: on the GPU that the budget assumes.
    if (device.is_emulator) control_emulator({.sm_count = budgeted.sm_count});
    for (const gemm::Shape& shape : shapes) {
      const ResolvedVariant choice =
          resolve(*entry.step, *entry.variant, shape, device, TunedChoices(autotune_file()));
      if (!choice.why.empty()) print_choice(entry, choice);
      if (choice.host_us > 0)
        fmt::print("{}\n", fitted(fmt::format("  choosing took {:.2f} ms of one core, once for this shape",
                                              choice.host_us / 1e3)));
      fmt::print("{}\n", fitted(budget_text(*entry.step, *choice.variant, shape, budgeted)));
    }
  }
}

}  // namespace harness
