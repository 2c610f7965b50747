#include "harness/cli/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"

namespace harness {

std::vector<Entry> select_variants(const gemm::Step& step, const std::string& names) {
  std::vector<Entry> entries;
  if (names == "all") {
    for (const gemm::Variant& variant : step.variants) entries.push_back({&step, &variant});
    return entries;
  }
  std::size_t begin = 0;
  while (begin <= names.size()) {
    const std::size_t comma = std::min(names.find(',', begin), names.size());
    if (comma == begin && !names.empty())
      throw Error(fmt::format("the list of variants '{}' has an empty name in it; write a or a,b", names));
    entries.push_back({&step, &find_variant(step, names.substr(begin, comma - begin))});
    begin = comma + 1;
  }
  return entries;
}

Selection select_words(const std::vector<const gemm::Step*>& steps, const std::vector<std::string>& words) {
  Selection selection;
  for (const std::string& word : words) {
    if (is_shape(word)) {
      selection.shapes.push_back(parse_shape(word));
      continue;
    }
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::vector<const gemm::Step*> named = find_steps(steps, word.substr(0, colon));
    const std::string variants = colon < word.size() ? word.substr(colon + 1) : "";
    if (variants.empty() && colon < word.size())
      throw Error(fmt::format("'{}' names no variant after its colon; write 03:64, 03:all or 03", word));
    for (const gemm::Step* step : named) {
      if (step->takes_ranks()) {
        if (named.size() > 1) continue;
        throw Error(fmt::format(
            "{} is about several GPUs and is not compared with kernels of one; tools/run {} runs it",
            step->name, step->name.substr(0, 2)));
      }
      for (const Entry& entry : select_variants(*step, variants)) selection.entries.push_back(entry);
    }
  }
  return selection;
}

std::vector<Entry> last_two(const std::vector<const gemm::Step*>& steps) {
  const auto chooses = [](const gemm::Step* step) { return step->variants.front().choose != nullptr; };
  const bool has_peak = std::any_of(steps.begin(), steps.end(), chooses);
  std::vector<Entry> entries;
  for (const gemm::Step* step : steps) {
    if (!step->epilogue.is_plain() || step->takes_ranks()) continue;
    entries.push_back({step, &step->variants.front()});
    if (entries.size() > 2) entries.erase(entries.begin());
    if (has_peak && chooses(step)) break;  // later steps solve other problems, or run on other GPUs
  }
  return entries;
}

gemm::Epilogue epilogue_of(const Entry& entry, const gemm::Epilogue& asked, bool alone) {
  gemm::Epilogue epilogue = gemm::with_fixed(entry.variant->epilogues, asked);
  const bool has_sources = std::any_of(entry.step->variants.begin(), entry.step->variants.end(),
                                       [](const gemm::Variant& other) { return other.epilogues.source; });
  if (!alone && has_sources && !entry.variant->epilogues.source) epilogue.beta = 0;
  return epilogue;
}

ResolvedVariant resolved(const Entry& entry, const gemm::Shape& shape) {
  if (entry.variant->choose == nullptr) return {entry.variant, ""};
  return resolve(*entry.step, *entry.variant, shape, device_info(), TunedChoices(autotune_file()));
}

}  // namespace harness
