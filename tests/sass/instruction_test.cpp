#include "code/instruction.h"

#include <set>

#include "catch.h"
#include "fixtures.h"

using sass::Class;
using sass::decode_control;
using sass::OpcodePattern;
using sass::parse_instruction;

TEST_CASE("control fields of the encoding") {
  SECTION("every field at its place") {
    const auto encode = [](unsigned stall, unsigned no_yield, unsigned write, unsigned read, unsigned wait,
                           unsigned reuse) {
      const unsigned bits = stall | no_yield << 4 | write << 5 | read << 8 | wait << 11 | reuse << 17;
      return static_cast<std::uint64_t>(bits) << 41;
    };
    const sass::ControlFields none = decode_control(encode(0, 1, 7, 7, 0, 0));
    CHECK(none == sass::ControlFields{});
    CHECK(decode_control(encode(13, 1, 7, 7, 0, 0)) == sass::ControlFields{.stall = 13});
    CHECK(decode_control(encode(0, 0, 7, 7, 0, 0)) == sass::ControlFields{.yield = true});
    CHECK(decode_control(encode(0, 1, 5, 7, 0, 0)) == sass::ControlFields{.write_barrier = 5});
    CHECK(decode_control(encode(0, 1, 7, 0, 0, 0)) == sass::ControlFields{.read_barrier = 0});
    CHECK(decode_control(encode(0, 1, 7, 7, 0b101010, 0)) == sass::ControlFields{.wait_mask = 0b101010});
    CHECK(decode_control(encode(0, 1, 7, 7, 0, 0b1001)) == sass::ControlFields{.reuse_mask = 0b1001});
  }
  SECTION("words that ptxas wrote") {
    // S2R R9, SR_CTAID.Y: its result arrives under scoreboard 0.
    CHECK(decode_control(0x000e220000002600) == sass::ControlFields{.stall = 1, .write_barrier = 0});
    // IMAD that waits for it, and whose successor has to wait five cycles.
    CHECK(decode_control(0x001fca00078e0200) ==
          sass::ControlFields{.stall = 5, .yield = true, .wait_mask = 1});
  }
}

TEST_CASE("the parts of an instruction") {
  const auto load = parse_instruction("@!P1 LDG.E.128.CONSTANT R4, desc[UR8][R12.64+0x2]");
  CHECK(load.predicate == "@!P1");
  CHECK(load.opcode == "LDG");
  CHECK(load.modifiers == std::vector<std::string>{"E", "128", "CONSTANT"});
  CHECK(load.operands == std::vector<std::string>{"R4", "desc[UR8][R12.64+0x2]"});
  CHECK(load.text() == "@!P1 LDG.E.128.CONSTANT R4, desc[UR8][R12.64+0x2]");

  const auto copy = parse_instruction("LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64], P0");
  CHECK(copy.operands == std::vector<std::string>{"[R5]", "desc[UR4][R2.64]", "P0"});
  CHECK(parse_instruction("EXIT").operands.empty());
  CHECK_THROWS_AS(parse_instruction(""), std::invalid_argument);
  CHECK_THROWS_AS(parse_instruction("@P0"), std::invalid_argument);
  CHECK_THROWS_AS(parse_instruction("(something)"), std::invalid_argument);
}

TEST_CASE("classes, sizes and work") {
  struct Row {
    const char* text;
    Class kind;
    int bytes;
    double multiply_adds;
  };
  const Row row = GENERATE(values<Row>({
      {"FFMA R0, R1, R2, R0", Class::kMath, 0, 1},
      {"HMMA.16816.F32.BF16 R0, R4, R8, R0", Class::kMatrixMath, 0, 64},
      {"HMMA.1688.F32.TF32 R0, R4, R8, R0", Class::kMatrixMath, 0, 32},
      {"IMMA.16832.S8.S8 R0, R4, R8, R0", Class::kMatrixMath, 0, 128},
      {"HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", Class::kMatrixMath, 0, 2048},
      {"HFMA2.BF16_V2 R0, R1, R2, R3", Class::kMath, 0, 2},
      {"HFMA2.MMA R14, -RZ, RZ, 0, 0", Class::kMove, 0, 0},
      {"LDG.E.128.CONSTANT R4, [R2.64]", Class::kGlobalLoad, 16, 0},
      {"LDG.E.U16 R4, [R2.64]", Class::kGlobalLoad, 2, 0},
      {"LDG.E R4, [R2.64]", Class::kGlobalLoad, 4, 0},
      {"STG.E.64 [R2.64], R4", Class::kGlobalStore, 8, 0},
      {"LDGSTS.E.BYPASS.128 [R5], [R2.64]", Class::kAsyncCopy, 16, 0},
      {"UTMALDG.2D [UR8], [UR4]", Class::kAsyncCopy, 0, 0},
      {"LDS.128 R4, [R2]", Class::kSharedLoad, 16, 0},
      {"STS.U8 [R2], R4", Class::kSharedStore, 1, 0},
      {"LDSM.16.M88.4 R4, [R2]", Class::kMatrixLoad, 16, 0},
      {"LDSM.16.MT88.2 R4, [R2]", Class::kMatrixLoad, 8, 0},
      {"LDL R4, [R1+0x8]", Class::kLocal, 4, 0},
      {"BAR.SYNC.DEFER_BLOCKING 0x0", Class::kBarrier, 0, 0},
      {"LDGDEPBAR", Class::kBarrier, 0, 0},
      {"IMAD.U32 R4, R3, 0x10000, RZ", Class::kConversion, 0, 0},
      {"SHF.L.U32 R4, R3, 0x10, RZ", Class::kConversion, 0, 0},
      {"SHF.L.U32 R4, R3, 0x4, RZ", Class::kAddress, 0, 0},
      {"LOP3.LUT R4, R3, 0xffff0000, RZ, 0xc0, !PT", Class::kConversion, 0, 0},
      {"IMAD.MOV.U32 R4, RZ, RZ, R3", Class::kMove, 0, 0},
      {"IMAD.U32 R4, RZ, RZ, UR1", Class::kMove, 0, 0},
      {"IMAD.WIDE R4, R3, 0x4, R6", Class::kAddress, 0, 0},
      {"ISETP.GE.AND P0, PT, R4, R3, PT", Class::kCompare, 0, 0},
      {"@P0 BRA `(.L_x_0)", Class::kControl, 0, 0},
      {"BRANDNEW R4", Class::kOther, 0, 0},
      {"@!PT LDS RZ, [RZ]", Class::kOther, 0, 0},
      {"@!PT FFMA R0, R1, R2, R0", Class::kOther, 0, 0},
  }));
  CAPTURE(row.text);
  const auto instruction = parse_instruction(row.text);
  CHECK(classify(instruction) == row.kind);
  CHECK(access_bytes(instruction) == row.bytes);
  CHECK(multiply_adds(instruction) == row.multiply_adds);
}

TEST_CASE("the instructions of tcgen05 have classes, and the multiplication counts as one") {
  const auto multiplication =
      parse_instruction("UTCHMMA gdesc[UR24], gdesc[UR2], tmem[UR0], tmem[UR16], idesc[UR17], UP0");
  CHECK(classify(multiplication) == Class::kMatrixMath);
  CHECK(multiply_adds(multiplication) == 128 * 128 * 16 / 128);
  const auto scaled = parse_instruction(
      "UTCQMMA gdesc[UR28], gdesc[UR30], tmem[UR25], tmem[UR26], idesc[UR27], tmem[UR14], UP0");
  CHECK(classify(scaled) == Class::kMatrixMath);
  CHECK(multiply_adds(scaled) == 128 * 128 * 32 / 128);
  const auto packed = parse_instruction(
      "UTCOMMA.4X gdesc[UR12], gdesc[UR14], tmem[UR10], tmem[UR4], idesc[UR5], tmem[UR8], UP0");
  CHECK(multiply_adds(packed) == 128 * 128 * 64 / 128);
  CHECK(classify(parse_instruction("UTCCP.T.S.4x32dp128bit tmem[UR14+0x4], gdesc[UR6]")) ==
        Class::kAsyncCopy);
  CHECK(classify(parse_instruction("UTCBAR [UR21], URZ")) == Class::kBarrier);
  CHECK(classify(parse_instruction("UTCBAR.MULTICAST [UR4], URZ, UR5")) == Class::kBarrier);
  CHECK(classify(parse_instruction("LDTM.x32 R4, tmem[UR5]")) == Class::kMatrixLoad);
  CHECK(classify(parse_instruction("STTM.x8 tmem[UR4], R8")) == Class::kMatrixLoad);
  CHECK(classify(parse_instruction("UTCATOMSWS.AND URZ, UR5")) == Class::kAtomic);
}

TEST_CASE("barriers and fences of the asynchronous engines are named") {
  struct Row {
    const char* text;
    const char* name;
  };
  const Row row = GENERATE(values<Row>({
      {"SYNCS.EXCH.64 URZ, [UR8+0x30000], UR4", "mbarrier init"},
      {"SYNCS.ARRIVE.TRANS64 RZ, [UR2+0x8000], R2", "mbarrier arrive"},
      {"@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ+0x30020], RZ", "mbarrier arrive"},
      {"SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR7+0x8000], R2", "mbarrier wait"},
      {"WARPGROUP.ARRIVE", "wgmma fence"},
      {"WARPGROUP.DEPBAR.LE gsb0, 0x1", "wgmma wait"},
      {"FENCE.VIEW.ASYNC.S", "proxy fence"},
      {"BAR.SYNC.DEFER_BLOCKING 0x0", ""},
      {"DEPBAR.LE SB0, 0x1", ""},
      {"HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", ""},
  }));
  CAPTURE(row.text);
  const auto instruction = parse_instruction(row.text);
  CHECK(synchronisation(instruction) == row.name);
  if (row.name[0] != 0) CHECK(classify(instruction) == Class::kBarrier);
}

TEST_CASE("opcode patterns") {
  const auto load = parse_instruction("LDG.E.128.CONSTANT R4, [R2.64]");
  CHECK(OpcodePattern("LDG").matches(load));
  CHECK(OpcodePattern("LDG.128").matches(load));
  CHECK(OpcodePattern("LDG.CONSTANT.E").matches(load));
  CHECK(OpcodePattern("LDS | LDG.128").matches(load));
  CHECK_FALSE(OpcodePattern("LDG.64").matches(load));
  CHECK_FALSE(OpcodePattern("LD").matches(load));
  CHECK_FALSE(OpcodePattern("LDGSTS").matches(load));
  CHECK(OpcodePattern("LDS").matches(parse_instruction("@!P0 LDS R0, [R1]")));
  CHECK_FALSE(OpcodePattern("LDS").matches(parse_instruction("@!PT LDS RZ, [RZ]")));
  const auto registers = parse_instruction("USETMAXREG.DEALLOC.CTAPOOL 0x18");
  CHECK(OpcodePattern("USETMAXREG.DEALLOC 0x18").matches(registers));
  CHECK_FALSE(OpcodePattern("USETMAXREG.DEALLOC 0x28").matches(registers));
  const auto last = parse_instruction("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0");
  CHECK(OpcodePattern("HGMMA gsb0").matches(last));
  const auto transposed = parse_instruction("HGMMA.64x256x16.F32 R24, gdesc[UR8].tnspA.tnspB, R24");
  CHECK(OpcodePattern("HGMMA .tnspA").matches(transposed));
  CHECK(OpcodePattern("HGMMA .tnspB").matches(transposed));
  CHECK_FALSE(OpcodePattern("HGMMA .tnsp").matches(transposed));
  CHECK_FALSE(OpcodePattern("HGMMA .tnspA").matches(last));
  CHECK_FALSE(OpcodePattern("HGMMA gsb0")
                  .matches(parse_instruction("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, UP0")));
  CHECK(OpcodePattern("WARPGROUP.DEPBAR 0x1").matches(parse_instruction("WARPGROUP.DEPBAR.LE gsb0, 0x1")));
  CHECK_THROWS_WITH(OpcodePattern("LDGST"), has_text("there is no SASS opcode 'LDGST'; did you mean"));
  CHECK_THROWS_AS(OpcodePattern(""), std::invalid_argument);
}

TEST_CASE("the opcode table names every opcode once") {
  std::set<std::string_view> seen;
  for (const sass::Opcode& opcode : sass::opcode_table()) {
    CAPTURE(opcode.name);
    CHECK(seen.insert(opcode.name).second);
  }
}
