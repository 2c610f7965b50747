#include "emulator/report/member_names.h"

#include <fmt/format.h>

#include "emulator/machine/machine.h"

namespace emulator {
namespace {

constexpr std::size_t kSmallElement = 8;  // bytes; of a barrier, every index counts

/// Whether what lies there has a name.
bool append(std::string& name, const MemberTable& table, std::size_t offset) {
  // The last that begins there or before: with [[no_unique_address]] it may lie in the padding of another
  // one.
  for (auto found = table.members.rbegin(); found != table.members.rend(); ++found) {
    const Member& member = *found;
    if (offset - member.offset >= member.bytes) continue;
    if (!name.empty()) name += '.';
    name += member.name;
    std::size_t rest = offset - member.offset;
    std::size_t stride = member.bytes;
    for (std::size_t i = 0; i < member.extents.size(); ++i) {
      stride /= member.extents[i];
      const bool last_of_tile =
          i > 0 && i + 1 == member.extents.size() && member.element_bytes < kSmallElement;
      if (!last_of_tile) name += fmt::format("[{}]", rest / stride);
      rest %= stride;
    }
    if (member.nested && member.element_bytes >= kSmallElement && !member.nested->members.empty())
      return append(name, *member.nested, rest);
    return true;
  }
  return false;
}

}  // namespace

void name_dynamic_shared(const MemberTable* table) {
  running_thread().cta->members = table;
}

std::string member_name(const Cta& cta, std::uint32_t offset) {
  std::string name;
  if (cta.members) static_cast<void>(append(name, *cta.members, offset));
  return name;
}

bool lacks_member_name(const Cta& cta, std::uint32_t offset) {
  std::string name;
  return cta.members != nullptr && !append(name, *cta.members, offset);
}

}  // namespace emulator
