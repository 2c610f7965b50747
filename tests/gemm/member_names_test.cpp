// What reports call the parts of shared memory that several steps use: structs with a base class beside
// members of their own would have no names.
#include "emulator/report/member_names.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/pipeline/subtile_loader.cuh"

namespace {

using Names = std::vector<std::string>;

Names names_of(const emulator::MemberTable* table) {
  Names names;
  if (table != nullptr) {
    for (const emulator::Member& member : table->members) names.emplace_back(member.name);
  }
  return names;
}

struct Base {
  std::uint64_t full;
};
struct BesideMembers : Base {
  std::uint64_t empty;
};
struct Alone : Base {};

}  // namespace

TEST_CASE("reports name what a ring of loaded subtiles consists of") {
  const auto loaded = std::make_unique<gemm::LoadedSubtiles<3>>();
  const emulator::MemberTable* const table = emulator::reflection::table_of(*loaded);
  CHECK(names_of(table) == Names{"ring", "main_loads_begun"});
  REQUIRE(table->members.size() == 2);
  CHECK(names_of(table->members[0].nested) == Names{"buffer", "full", "empty"});
  CHECK(table->members[1].offset == sizeof(gemm::SubtileRing<3>));
}

TEST_CASE("a struct with a base class has names where it adds no members") {
  using emulator::reflection::member_count;
  CHECK(member_count<Alone>() == 1);
  CHECK(member_count<BesideMembers>() == 0);
}
