// Which structs have names in reports: base classes are the limit.
#include "emulator/report/member_names.h"

#include <cstdint>

#include "catch.h"

namespace {

struct Base {
  std::uint64_t full;
};
struct BesideMembers : Base {
  std::uint64_t empty;
};
struct Alone : Base {};

}  // namespace

TEST_CASE("a struct with a base class has names where it adds no members") {
  using emulator::reflection::member_count;
  CHECK(member_count<Alone>() == 1);
  CHECK(member_count<BesideMembers>() == 0);
}
