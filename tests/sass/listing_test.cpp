#include "code/listing.h"

#include <set>

#include "catch.h"
#include "fixtures.h"
#include "toolchain/resources.h"

TEST_CASE("functions, targets and source lines of a disassembly") {
  const sass::Listing& listing = fixtures::committed("kernels").listing;
  CHECK(listing.target == "sm_90a");
  std::set<std::string> names;
  for (const sass::Function& function : listing.functions) names.insert(function.name);
  CHECK(names == std::set<std::string>{"prefetched", "scalar", "async_early", "async_late", "spilling",
                                       "unrolled", "nested", "straight"});
  for (const sass::Function& function : listing.functions) {
    CAPTURE(function.name);
    REQUIRE_FALSE(function.instructions.empty());
    std::uint32_t address = 0;
    for (const sass::Instruction& instruction : function.instructions) {
      CHECK(instruction.address == address);
      CHECK(instruction.has_encoding);
      // The opcode of HFMA2 with RZ is known; nothing in our kernels may be unknown.
      CHECK(sass::find_opcode(instruction.opcode) != nullptr);
      if (instruction.opcode == "BRA") CHECK(instruction.target);
      address += 16;
    }
    CHECK(function.instructions.back().opcode != "NOP");
  }
  // prefetched() calls multiply(), which was inlined: the innermost place comes first, both are kept.
  const sass::Function* prefetched = listing.find("prefetched");
  REQUIRE(prefetched != nullptr);
  std::size_t depth = 0;
  for (const sass::Instruction& instruction : prefetched->instructions)
    if (instruction.opcode == "FFMA") {
      REQUIRE_FALSE(instruction.source.empty());
      CHECK(instruction.source.front().file == "tests/sass/kernels/kernels.cu");
      CHECK(instruction.source.front().line > 0);
      depth = std::max(depth, instruction.source.size());
    }
  CHECK(depth >= 2);
}

TEST_CASE("scoreboards are set before they are waited for") {
  // Decoded wrongly, the fields would not fit together.
  for (const char* file : {"kernels", "hopper", "serialised", "other_target"})
    for (const sass::Function& function : fixtures::committed(file).listing.functions) {
      unsigned set_anywhere = 0;
      for (const sass::Instruction& instruction : function.instructions) {
        if (instruction.control.write_barrier >= 0) set_anywhere |= 1u << instruction.control.write_barrier;
        if (instruction.control.read_barrier >= 0) set_anywhere |= 1u << instruction.control.read_barrier;
      }
      for (const sass::Instruction& instruction : function.instructions) {
        CAPTURE(function.name, instruction.address, instruction.text());
        CHECK((instruction.control.wait_mask & ~set_anywhere) == 0);
        CHECK(instruction.control.write_barrier < 6);
        CHECK(instruction.control.read_barrier < 6);
        // Arithmetic of fixed latency needs no scoreboard, a load always has one it can use.
        if (instruction.opcode == "FFMA" || instruction.opcode == "IADD3")
          CHECK(instruction.control.write_barrier == -1);
        if (instruction.opcode == "STG") CHECK(instruction.control.write_barrier == -1);
        // The reuse flags are printed as well as encoded.
        int printed = 0;
        for (const std::string& operand : instruction.operands)
          if (contains(operand, ".reuse")) ++printed;
        int encoded = 0;
        for (unsigned bits = instruction.control.reuse_mask; bits != 0; bits &= bits - 1) ++encoded;
        CHECK(printed == encoded);
      }
    }
}

TEST_CASE("both disassemblers give the same code") {
  const sass::Listing one = sass::parse_listing(fixtures::text("other_target.sass"));
  const sass::Listing other = sass::parse_listing(fixtures::text("other_target.cuobjdump"));
  CHECK(one.target == "sm_90");
  CHECK(other.target == "sm_90");
  REQUIRE(one.functions.size() == 1);
  REQUIRE(other.functions.size() == 1);
  const auto& a = one.functions[0].instructions;
  const auto& b = other.functions[0].instructions;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].text());
    CHECK(a[i].full_opcode() == b[i].full_opcode());
    CHECK(a[i].low == b[i].low);
    CHECK(a[i].high == b[i].high);
    CHECK(a[i].control == b[i].control);
    CHECK(a[i].target == b[i].target);
  }
}

TEST_CASE("text that is no disassembly is refused") {
  CHECK_THROWS_WITH(sass::parse_listing(""), has_text("no SASS function"));
  CHECK_THROWS_WITH(sass::parse_listing("hello\nworld\n"), has_text("no SASS function"));
  CHECK_THROWS_WITH(sass::parse_listing("\t.section\t.text.f,\"ax\"\n   /*0000*/   (nothing) ;  /* 0x0 */\n"),
                    has_text("line 2 of the disassembly is not SASS"));
  CHECK_THROWS_WITH(sass::parse_listing("   /*0000*/   EXIT ;\n"), has_text("line 1"));
}

TEST_CASE("what ptxas says") {
  const sass::PtxasLog log = sass::parse_ptxas_log(fixtures::text("kernels.log"));
  CHECK(log.functions.at("prefetched").registers == 37);
  CHECK(log.functions.at("prefetched").shared_bytes == 2048);
  CHECK(log.functions.at("prefetched").spill_bytes() == 0);
  CHECK(log.functions.at("spilling").registers == 64);
  CHECK(log.functions.at("spilling").stack_bytes == 176);
  CHECK(log.functions.at("spilling").spill_store_bytes == 344);
  CHECK(log.functions.at("spilling").spill_load_bytes == 348);
  CHECK(log.targets.at("spilling") == "sm_90a");
  CHECK(log.notes.empty());

  const sass::PtxasLog serialised = sass::parse_ptxas_log(fixtures::text("serialised.log"));
  REQUIRE(serialised.notes.size() == 2);
  CHECK_THAT(serialised.notes[0], has_text("(C7517)"));
  CHECK_THAT(serialised.notes[1], has_text("serialized"));
  CHECK(sass::parse_ptxas_log("ptxas warning : Stack size cannot be determined\n").notes.size() == 1);
}

TEST_CASE("what cuobjdump says about resources") {
  const auto usage = sass::parse_resource_usage(fixtures::text("kernels.usage"));
  CHECK(usage.size() == 8);
  CHECK(usage.at("spilling").registers == 64);
  CHECK(usage.at("spilling").stack_bytes == 176);
  // cuobjdump counts the 1 KB of shared memory that the system keeps; the assembled report does not.
  CHECK(usage.at("prefetched").shared_bytes == 2048 + 1024);
  CHECK(fixtures::committed("kernels").usage.at("prefetched").shared_bytes == 2048);
  CHECK(fixtures::committed("kernels").usage.at("spilling").spill_bytes() == 344 + 348);
}
