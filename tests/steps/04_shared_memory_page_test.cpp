// The numbers that docs/shared-memory.md says the emulator counts.
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "verify_shape.h"

namespace {

/// "| `plain` | 256 | 8192 | 7168 | 8.00 |", made from what the emulator counted over all ldmatrix.x4 of the
/// variant.
std::string counted_row(const gemm::Step& step, const std::string& variant) {
  harness::EmulatorControl control;
  control.counters = true;
  harness::control_emulator(control);
  harness::Workload workload({128, 128, 128}, harness::Pattern::kExact, 1);
  workload.poison();
  harness::take_emulator_counters();
  harness::find_variant(step, variant).prepare(workload.gemm())(nullptr);
  harness::synchronize();
  std::istringstream lines(harness::take_emulator_counters().table);
  harness::control_emulator({});
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    // place, instruction, requests, bytes, sectors, sectors a request, wavefronts, conflicts, of the least
    if (words.size() == 9 && words[0] == "all" && words[1] == "ldmatrix_x4")
      return fmt::format("| `{}` | {} | {} | {} | {} |", variant, words[2], words[6], words[7], words[8]);
  }
  return "no ldmatrix_x4 was counted for " + variant;
}

}  // namespace

TEST_CASE("docs/shared-memory.md says what the emulator counts", "[emulator]") {
  std::ifstream file(GEMM_SOURCE_DIR "/docs/shared-memory.md");
  std::string line;
  while (std::getline(file, line) && line.rfind("<!-- emulator: step 04, 128x128x128", 0) != 0) {
  }
  REQUIRE(file.good());
  std::vector<std::string> rows;
  while (std::getline(file, line) && line.rfind('#', 0) != 0) {
    if (line.rfind("| `", 0) == 0) rows.push_back(line);
  }
  const gemm::Step& step = step_under_test();
  const std::vector<std::string> variants = {"plain", "padded", "swizzled"};
  REQUIRE(rows.size() == variants.size());
  for (std::size_t i = 0; i < variants.size(); ++i) CHECK(rows[i] == counted_row(step, variants[i]));
}
