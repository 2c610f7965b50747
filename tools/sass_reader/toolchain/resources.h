// What a kernel takes from the SM, from the compiler's own reports.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sass {

struct Resources {
  int registers = 0;          // per thread
  int shared_bytes = 0;       // static shared memory per block
  int stack_bytes = 0;        // per thread
  int spill_store_bytes = 0;  // per thread, statically counted by ptxas
  int spill_load_bytes = 0;
  int spill_bytes() const { return spill_store_bytes + spill_load_bytes; }
};

/// What ptxas -v says. `notes` are the lines that are not part of the report: warnings and advice such as
/// "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized ...".
struct PtxasLog {
  std::map<std::string, Resources> functions;  // by mangled name
  std::map<std::string, std::string> targets;  // "sm_90a", by mangled name
  std::vector<std::string> notes;
};
PtxasLog parse_ptxas_log(std::string_view text);

/// The answer of `cuobjdump --dump-resource-usage`: registers, shared memory and stack by mangled name (it
/// does not know spills).
std::map<std::string, Resources> parse_resource_usage(std::string_view text);

}  // namespace sass
