#include "code/flow.h"

#include <algorithm>

#include "catch.h"
#include "code/mix.h"
#include "code/normalise.h"
#include "fixtures.h"

namespace {

/// A function of hand-written instructions, 16 bytes apart. "-> 3" behind one is the index it branches to.
sass::Function function_of(const std::vector<std::string>& lines) {
  sass::Function function{"f", {}};
  for (const std::string& line : lines) {
    const auto arrow = line.find("->");
    auto instruction = sass::parse_instruction(line.substr(0, arrow));
    instruction.address = static_cast<std::uint32_t>(16 * function.instructions.size());
    if (arrow != std::string::npos)
      instruction.target = static_cast<std::uint32_t>(16 * std::stoi(line.substr(arrow + 2)));
    function.instructions.push_back(instruction);
  }
  return function;
}

std::vector<int> main_loop_of(const sass::Function& function) {
  const sass::Flow flow = sass::analyse_flow(function);
  const sass::Loop* loop = sass::find_main_loop(function, flow);
  std::vector<int> result;
  if (loop != nullptr)
    for (const sass::Instruction* instruction : sass::instructions_of(function, flow, *loop))
      result.push_back(static_cast<int>(instruction->address / 16));
  return result;
}

}  // namespace

TEST_CASE("basic blocks and their successors") {
  const sass::Flow flow = sass::analyse_flow(function_of({
      "MOV R0, RZ",            // 0: block 0
      "@P0 BRA -> 4",          // 1
      "IADD3 R0, R0, R1, RZ",  // 2: block 1
      "@P1 EXIT",              // 3
      "BRA.U !UP0 -> 0",       // 4: block 2; a predicate operand makes it conditional
      "BRA -> 7",              // 5: block 3
      "NOP",                   // 6: block 4, unreachable
      "EXIT",                  // 7: block 5
  }));
  REQUIRE(flow.blocks.size() == 6);
  CHECK(flow.blocks[0].successors == std::vector<std::size_t>{2, 1});
  CHECK(flow.blocks[1].successors == std::vector<std::size_t>{2});
  CHECK(flow.blocks[2].successors == std::vector<std::size_t>{0, 3});
  CHECK(flow.blocks[3].successors == std::vector<std::size_t>{5});
  CHECK(flow.blocks[5].successors.empty());
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].header == 0);
  CHECK(flow.loops[0].blocks == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("the main loop is the one that multiplies most") {
  SECTION("before its remainder loop") {
    CHECK(main_loop_of(function_of({"MOV R0, RZ", "FFMA R0, R1, R2, R0", "FFMA R0, R1, R2, R0",
                                    "@P0 BRA -> 1", "FFMA R0, R1, R2, R0", "@P0 BRA -> 4", "EXIT"})) ==
          std::vector<int>{1, 2, 3});
  }
  SECTION("behind it") {
    CHECK(main_loop_of(function_of({"FFMA R0, R1, R2, R0", "@P0 BRA -> 0", "FFMA R0, R1, R2, R0",
                                    "FFMA R0, R1, R2, R0", "@P0 BRA -> 2", "EXIT"})) ==
          std::vector<int>{2, 3, 4});
  }
  SECTION("the inner one of two, although the outer one contains it") {
    CHECK(main_loop_of(function_of({"FADD R0, R1, R2", "FFMA R0, R1, R2, R0", "@P0 BRA -> 1",
                                    "FFMA R0, R1, R2, R0", "@P0 BRA -> 0", "EXIT"})) ==
          std::vector<int>{1, 2});
  }
  SECTION("the outer one, when the inner one only waits") {
    CHECK(main_loop_of(function_of({"LDG.E R0, [R2.64]", "@P0 BRA -> 0", "FFMA R0, R1, R2, R0",
                                    "@P0 BRA -> 0", "EXIT"})) == std::vector<int>{0, 1, 2, 3});
    CHECK(main_loop_of(function_of({"MOV R0, RZ", "LDG.E R0, [R2.64]", "@P0 BRA -> 1", "FFMA R0, R1, R2, R0",
                                    "@P0 BRA -> 0", "EXIT"})) == std::vector<int>{0, 1, 2, 3, 4});
  }
  SECTION("one tensor core instruction outweighs many FFMA") {
    CHECK(main_loop_of(function_of({"FFMA R0, R1, R2, R0", "FFMA R0, R1, R2, R0", "@P0 BRA -> 0",
                                    "HMMA.16816.F32.BF16 R0, R4, R8, R0", "@P0 BRA -> 3", "EXIT"})) ==
          std::vector<int>{3, 4});
  }
  SECTION("none without multiplications in a loop") {
    CHECK(main_loop_of(function_of({"FFMA R0, R1, R2, R0", "MOV R0, R1", "@P0 BRA -> 1", "EXIT"})).empty());
    CHECK(main_loop_of(function_of({"HFMA2.MMA R14, -RZ, RZ, 0, 0", "@P0 BRA -> 0", "EXIT"})).empty());
    CHECK(main_loop_of(function_of({"EXIT"})).empty());
  }
  SECTION("a forward branch that skips part of the body stays inside") {
    CHECK(main_loop_of(function_of({"ISETP.GE.AND P0, PT, R1, R2, PT", "@P0 BRA -> 3", "LDG.E R0, [R2.64]",
                                    "FFMA R0, R1, R2, R0", "@P1 BRA -> 0", "EXIT"})) ==
          std::vector<int>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("main loops of compiled kernels") {
  const sass::Binary& binary = fixtures::committed("kernels");
  const auto loop_mix = [&](const char* kernel) {
    return sass::count_mix(fixtures::view(binary, kernel).loop_code);
  };
  CHECK(loop_mix("prefetched").multiply_adds == 16);
  CHECK(loop_mix("prefetched").count(sass::Class::kBarrier) == 2);
  CHECK(loop_mix("scalar").multiply_adds == 16);
  // Unrolled: the compiler may unroll further than the four that were asked for, but the remainder is not it.
  const sass::Mix unrolled = loop_mix("unrolled");
  CHECK(unrolled.multiply_adds >= 4);
  CHECK(unrolled.count(sass::Class::kGlobalLoad) == 2 * unrolled.multiply_adds);
  // The loop over k, with the spinning loop inside and without the stores of the loop over tiles.
  const sass::Mix nested = loop_mix("nested");
  CHECK(nested.multiply_adds == 1);
  CHECK(nested.count(sass::Class::kGlobalStore) == 0);
  CHECK(nested.count(sass::Class::kGlobalLoad) == 3);
  CHECK(nested.count(sass::Class::kControl) >= 2);
  CHECK(fixtures::view(binary, "straight").main_loop == nullptr);
  // wgmma: 64 x 8 x 16 over the 128 threads of a warpgroup.
  const sass::KernelView wgmma = fixtures::view(fixtures::committed("serialised"), "serialised");
  REQUIRE(wgmma.main_loop != nullptr);
  const sass::Mix mix = sass::count_mix(wgmma.loop_code);
  CHECK(mix.count(sass::Class::kMatrixMath) == mix.math_instructions);
  CHECK(mix.multiply_adds == 64.0 * mix.math_instructions);
}

namespace {

int count_of(const std::vector<const sass::Instruction*>& code, const char* pattern) {
  const sass::OpcodePattern matcher(pattern);
  return static_cast<int>(std::count_if(
      code.begin(), code.end(), [&](const auto* instruction) { return matcher.matches(*instruction); }));
}

}  // namespace

TEST_CASE("the main loop of a ring holds its waits, wherever the compiler has put them") {
  const sass::KernelView view = fixtures::view(fixtures::committed("hopper"), "ring");
  REQUIRE(view.main_loop != nullptr);
  CHECK(count_of(view.loop_code, "HGMMA") == 4);
  CHECK(count_of(view.loop_code, "UTMALDG") == 2);
  // Each of the two waits tries once in line and goes on trying behind the end of the kernel.
  CHECK(count_of(view.loop_code, "SYNCS.PHASECHK") == 4);
  CHECK(view.loop_code.back()->address > view.after_loop().back()->address);
  // So does the prologue's, which is not part of what comes behind the loop.
  CHECK(count_of(view.before_loop(), "SYNCS.PHASECHK") == 2);
  CHECK(count_of(view.before_loop(), "SYNCS.EXCH") == 8);
  CHECK(count_of(view.after_loop(), "SYNCS") == 0);
  CHECK(count_of(view.after_loop(), "STG") == 4);
  CHECK(view.before_loop().size() + view.loop_code.size() + view.after_loop().size() == view.code.size());
}

TEST_CASE("what stands before and behind the main loop") {
  sass::Binary binary;
  binary.listing.target = "sm_90a";
  binary.listing.functions.push_back(function_of({
      "@P0 BRA -> 8",         // 0: before, out to 8 and back
      "MOV R0, RZ",           // 1: before
      "FFMA R0, R1, R2, R0",  // 2: the loop, in which
      "@P0 BRA -> 10",        // 3: ... a part stands at the end
      "@P0 BRA -> 2",         // 4
      "STG.E [R2.64], R0",    // 5: behind
      "@P1 BRA -> 1",         // 6: behind, and on to the next tile
      "EXIT",                 // 7: behind
      "NOP",                  // 8: before
      "BRA -> 1",             // 9
      "NOP",                  // 10: the loop
      "BRA -> 4",             // 11
  }));
  const auto places = [](const std::vector<const sass::Instruction*>& code) {
    std::vector<int> result;
    for (const sass::Instruction* instruction : code)
      result.push_back(static_cast<int>(instruction->address / 16));
    return result;
  };
  const sass::KernelView view(binary, {.name = "f", .function = "f"});
  CHECK(places(view.loop_code) == std::vector<int>{2, 3, 4, 10, 11});
  CHECK(places(view.before_loop()) == std::vector<int>{0, 1, 8, 9});
  CHECK(places(view.after_loop()) == std::vector<int>{5, 6, 7});
}

TEST_CASE("k-tiles of one iteration") {
  const sass::Binary& binary = fixtures::committed("kernels");
  CHECK(fixtures::view(binary, "prefetched").k_tiles_per_iteration(64) == 1);
  CHECK(fixtures::view(binary, "prefetched").k_tiles_per_iteration(128) == 2);
  CHECK_FALSE(fixtures::view(binary, "prefetched").k_tiles_per_iteration(32));  // half a tile
  CHECK_FALSE(fixtures::view(binary, "straight").k_tiles_per_iteration(64));
}

namespace {

std::vector<sass::Instruction> loop_of(const char* kernel) {
  const sass::KernelView view = fixtures::view(fixtures::committed("kernels"), kernel);
  std::vector<sass::Instruction> code;
  for (const sass::Instruction* instruction : view.loop_code) code.push_back(*instruction);
  return code;
}

std::vector<std::string> texts(const std::vector<sass::Instruction>& code) {
  std::vector<std::string> lines;
  for (const sass::Instruction& instruction : code) lines.push_back(instruction.text());
  return lines;
}

/// Adds `step` to the number of every register of `file` ("R", "UR", "P").
void shift_registers(std::vector<sass::Instruction>& code, const std::string& file, int step) {
  const auto shift = [&](std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
      const bool starts_word =
          i == 0 || (!std::isalnum(static_cast<unsigned char>(text[i - 1])) && text[i - 1] != '.');
      std::size_t end = i + file.size();
      if (starts_word && text.compare(i, file.size(), file) == 0 && end < text.size() &&
          std::isdigit(static_cast<unsigned char>(text[end]))) {
        std::size_t used = 0;
        const int number = std::stoi(text.substr(end), &used);
        result += file + std::to_string(number + step);
        i = end + used;
      } else {
        result += text[i++];
      }
    }
    text = result;
  };
  for (sass::Instruction& instruction : code) {
    shift(instruction.predicate);
    for (std::string& operand : instruction.operands) shift(operand);
  }
}

}  // namespace

TEST_CASE("a normalised loop does not show where registers and code were placed") {
  const char* kernel = GENERATE("prefetched", "scalar", "async_early", "unrolled", "nested");
  CAPTURE(kernel);
  auto expected = loop_of(kernel);
  sass::normalise(expected, "sm_90a");

  auto moved = loop_of(kernel);
  shift_registers(moved, "R", 40);
  shift_registers(moved, "UR", 8);
  shift_registers(moved, "P", 2);
  for (sass::Instruction& instruction : moved) {
    instruction.address += 0x400;
    if (instruction.target) *instruction.target += 0x400;
  }
  CHECK(texts(moved) != texts(loop_of(kernel)));
  sass::normalise(moved, "sm_90a");
  CHECK(texts(moved) == texts(expected));
  // Once more changes nothing.
  for (sass::Instruction& instruction : moved) instruction.target.reset();
  auto again = moved;
  sass::normalise(again, "sm_90a");
  CHECK(texts(again) == texts(moved));
}

TEST_CASE("normalising keeps vectors together and different registers different") {
  std::vector<sass::Instruction> code;
  for (const char* line :
       {"LDS.128 R20, [R7]", "FFMA R90, R21, R23, R90", "IADD3 R8, R7, 0x10, RZ",
        "@P5 LDG.E.64 R32, desc[UR8][R12.64+0x4]", "FFMA R91, R33, R20.reuse, R91", "LDC R9, c[0x0][0x214]"})
    code.push_back(sass::parse_instruction(line));
  sass::normalise(code, "sm_90a");
  CHECK(texts(code) == std::vector<std::string>{"LDS.128 R0, [R7]", "FFMA R6, R1, R3, R6",
                                                "IADD3 R4, R7, 0x10, RZ",
                                                "@P0 LDG.E.64 R8, desc[UR0][R12.64+0x4]",
                                                "FFMA R11, R9, R0.reuse, R11", "LDC R5, param[0x4]"});
}

TEST_CASE("branch targets become labels") {
  auto function = function_of({"FFMA R0, R1, R2, R0", "@P3 BRA `(.L_x_7) -> 3", "MOV R1, R2",
                               "@P3 BRA `(.L_x_8) -> 0", "@!P3 BRA `(.L_x_9) -> 9"});
  sass::normalise(function.instructions, "sm_90a");
  CHECK(texts(function.instructions) == std::vector<std::string>{"FFMA R0, R1, R2, R0", "@P0 BRA L1",
                                                                 "MOV R1, R2", "@P0 BRA L0", "@!P0 BRA out"});
}

TEST_CASE("shapes leave numbers out") {
  const auto shape = [](const char* text) { return sass::shape_of(sass::parse_instruction(text)); };
  CHECK(shape("@!P1 LDG.E.128 R4, desc[UR8][R12.64+0x2]") == "@!P LDG.E.128 R, desc[UR][R.64+#]");
  CHECK(shape("FFMA R0, R1.reuse, R2, R0") == shape("FFMA R9, R8, R7.reuse, R6"));
  CHECK(shape("LDS R0, [R1]") != shape("LDS.128 R0, [R1]"));
  CHECK(shape("LDS R0, [R1]") != shape("LDS R0, [R1+0x10]"));
}
