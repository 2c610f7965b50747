#include "emulator/member_names.h"

namespace emulator {

std::string member_name(const Cta&, std::uint32_t) {
  return {};
}

}  // namespace emulator
