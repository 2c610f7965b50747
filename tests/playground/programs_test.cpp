// play_tma_swizzle, play_descriptor, play_tensor_map, play_events: what they print, and what they refuse.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "descriptor_rules.h"
#include "harness/backend/backend.h"
#include "run_play.h"

using namespace play_test;

namespace {

namespace ptx = gemm::ptx;

bool has(const std::vector<std::string>& sentences, const std::string& part) {
  for (const std::string& sentence : sentences) {
    if (contains(sentence, part)) return true;
  }
  return false;
}

constexpr std::uint32_t kRows = 64;

}  // namespace

TEST_CASE("play tma_swizzle: 64 bytes") {
  const Ran ran = run(play::tma_swizzle, "--swizzle 64");
  CHECK(ran.status == 0);
  CHECK(ran.text ==
        R"(a cell is 16 bytes, row.unit; a line is 128 bytes, all 32 banks, with its address at the left

swizzle 64 bytes: 8 rows of 64 bytes, the tile at shared + 0
           through the emulator's TMA                        the model
        0  0.0   0.1   0.2   0.3   1.0   1.1   1.2   1.3     0.0   0.1   0.2   0.3   1.0   1.1   1.2   1.3
      128  2.1   2.0   2.3   2.2   3.1   3.0   3.3   3.2     2.1   2.0   2.3   2.2   3.1   3.0   3.3   3.2
      256  4.2   4.3   4.0   4.1   5.2   5.3   5.0   5.1     4.2   4.3   4.0   4.1   5.2   5.3   5.0   5.1
      384  6.3   6.2   6.1   6.0   7.3   7.2   7.1   7.0     6.3   6.2   6.1   6.0   7.3   7.2   7.1   7.0
they agree: all 32 units are where the model says
)");
}

TEST_CASE("play tma_swizzle: every mode agrees with the model, wherever the tile starts") {
  for (const char* rows : {"1", "3", "8", "16", "256"}) {
    for (const char* at : {"0", "128", "256", "896", "1024", "65536"}) {
      const Ran ran = run(play::tma_swizzle, std::string("--rows ") + rows + " --at " + at);
      INFO(rows << " rows at " << at << "\n" << ran.text << ran.errors);
      CHECK(ran.status == 0);
      std::size_t agreements = 0;
      for (std::size_t found = ran.text.find("they agree"); found != std::string::npos;
           found = ran.text.find("they agree", found + 1))
        ++agreements;
      CHECK(agreements == 4);
    }
  }
  for (const char* row_bytes : {"16", "32"}) {
    const Ran ran = run(play::tma_swizzle, std::string("--rows 11 --at 384 --row-bytes ") + row_bytes);
    INFO(ran.text << ran.errors);
    CHECK(ran.status == 0);
  }
  // The pattern follows the address: 256 bytes further, row 0 looks like row 2 did.
  CHECK(contains(run(play::tma_swizzle, "--swizzle 128 --at 256").text, "      256  0.2   0.3   0.0   0.1 "));
}

TEST_CASE("play tma_swizzle: wrong input") {
  check_refused(play::tma_swizzle, "--swizzle 96", {"'96'", "none, 32, 64 or 128"});
  check_refused(play::tma_swizzle, "--rows 0", {"--rows is 0", "1 to 256"});
  check_refused(play::tma_swizzle, "--rows 257", {"--rows is '257'", "256"});
  check_refused(play::tma_swizzle, "--rows eight", {"--rows is 'eight'"});
  check_refused(play::tma_swizzle, "--row-bytes 24", {"--row-bytes is 24", "multiples of 16"});
  check_refused(play::tma_swizzle, "--swizzle 64 --row-bytes 80", {"--row-bytes is 80", "at most 64"});
  check_refused(play::tma_swizzle, "--colums 8", {"unknown flag '--colums'"});
  const Ran ran = run(play::tma_swizzle, "--at 100");
  CHECK(ran.status == harness::kExitEmulator);
  CHECK(contains(ran.errors, "tma-alignment"));
}

TEST_CASE("play descriptor: every field") {
  const Ran ran = run(play::descriptor, "decode 0x4000004000010042");
  CHECK(ran.status == 0);
  CHECK(ran.text == R"(0x4000004000010042
  bits  0-13  address         0x0042  x 16 = byte 0x420 of shared memory
  bits 16-29  leading offset  0x0001  x 16 = 16 bytes, ignored: a row of K is one swizzle span
  bits 32-45  stride          0x0040  x 16 = 1024 bytes from 8 rows to the next 8
  bits 49-51  base offset     0x0000  the swizzle's pattern begins 0 bytes past a multiple of its length
  bits 62-63  swizzle         0x0001  128 bytes
as 64 rows of 16 bf16 along K:
  row   0  k 0-7 at 0x00420  k 8-15 at 0x00430
  row   1  k 0-7 at 0x004b0  k 8-15 at 0x004a0
  row   7  k 0-7 at 0x007d0  k 8-15 at 0x007c0
  row   8  k 0-7 at 0x00820  k 8-15 at 0x00830
  row  63  k 0-7 at 0x023d0  k 8-15 at 0x023c0
note: the address is 32 bytes into row 0: k starts at 16 of the row's 64 elements
nothing is wrong
)");
}

TEST_CASE("play tensor_memory: where the scales of a row lie, in each kind") {
  const Ran ran = run(play::tensor_memory, "scales 205");
  CHECK(ran.status == 0);
  check_text(ran.text,
             {"  lane  13    row 141    row 173   [row 205 ]  row 237\n",
              "row 205: piece 1 along the rows, lanes 13, 45, 77 and 109, column 2",
              "elements  32-63   one instruction, scale factor ID 1: byte 1 of the word, from byte 217"});
  check_text(run(play::tensor_memory, "scales 0 --kind mxf4").text,
             {"elements  64-127  one instruction, scale factor ID 2: bytes 2-3 of the word"}, {"ID 1"});
  check_text(run(play::tensor_memory, "scales 0 --kind mxf4nvf4").text,
             {"blocks of 16 elements", "elements   0-63   one instruction, scale factor ID 0: bytes 0-3"},
             {"ID 2"});
  CHECK(contains(run(play::tensor_memory, "scales 0 --kind f16").errors, "mxf8f6f4, mxf4 or mxf4nvf4"));
  check_text(run(play::tensor_memory, "decode 0x08a00000 --kind mxf8f6f4").text,
             {"N = 128", "M = 128", "ue8m0", "nothing is wrong"});
  CHECK(contains(run(play::tensor_memory, "decode 0x08a00010 --kind mxf4").text, "wrong: "));
}

TEST_CASE("play tensor_memory: descriptors of tcgen05, field by field") {
  const Ran ran = run(play::tensor_memory, "decode 0x08200490");
  CHECK(ran.status == 0);
  CHECK(ran.text == R"(0x08200490
  bits  4-5   type of D       0x0001  f32
  bits  7-9   type of A       0x0001  bf16
  bits 10-12  type of B       0x0001  bf16
  bits 13-14  negate          0x0000  neither
  bits 15-16  transpose       0x0000  A and B are K-major
  bits 17-22  N / 8           0x0010  N = 128
  bits 24-28  M / 16          0x0008  M = 128
nothing is wrong
)");
  CHECK(run(play::tensor_memory, "encode --m 128 --n 128").text == ran.text);
  const Ran narrow = run(play::tensor_memory, "encode --m 128 --n 8");
  CHECK(narrow.status == harness::kExitMismatch);
  CHECK(contains(narrow.text, "wrong: N is not a multiple of 16"));
  // M = 256 is a pair's.
  const Ran pair = run(play::tensor_memory, "decode 0x10400490");
  CHECK(pair.status == 0);
  CHECK(contains(pair.text, "M = 256\nnothing is wrong for a pair of CTAs (cta_group::2)\n"));
  CHECK(run(play::tensor_memory, "encode --m 256 --n 256").text == pair.text);
  const Ran narrow_pair = run(play::tensor_memory, "encode --m 256 --n 24");
  CHECK(narrow_pair.status == harness::kExitMismatch);
  CHECK(contains(narrow_pair.text,
                 "wrong: N is not a multiple of 16 from 16 to 256, but a pair of CTAs needs that"));
  CHECK(contains(run(play::tensor_memory, "encode --m 192 --n 24").text, "wrong: M is neither 64 nor 128"));
  CHECK(contains(run(play::tensor_memory, "decode 0x4000404000010040").text, "nothing is wrong"));
  CHECK(contains(run(play::tensor_memory, "decode 0x4010404000010040").text, "an address"));
  const Ran hopper = run(play::tensor_memory, "decode 0x4000004000010040");
  CHECK(hopper.status == harness::kExitMismatch);
  CHECK(contains(hopper.text, "wrong: bits 46-48 are not 0b001"));
  check_refused(play::tensor_memory, "decode xyz", {"the descriptor is 'xyz'", "hexadecimal digits"});
  check_refused(play::tensor_memory, "encode --n 9", {"N is 9", "multiple of 16 and N a multiple of 8"});
}

TEST_CASE("play tensor_memory: a map of columns and lanes") {
  const Ran ran = run(play::tensor_memory, "map 128,64");
  CHECK(ran.status == 0);
  check_text(ran.text,
             {"allocation 1: columns 128-191, address 0x00000080",
              "  warp 2: lanes  64-95   rows  64-95   address 0x00400080", "320 of 512 columns are free"});
  CHECK(contains(run(play::tensor_memory, "map 256 --m 64").text, "warp 3: lanes  96-111  rows  48-63"));
  CHECK(contains(run(play::tensor_memory, "map 256,256,32").text, "allocation 2 of 32 columns waits"));
  for (const char* wrong : {"map 96", "map 16", "map 64,128"})
    CHECK(run(play::tensor_memory, wrong).status == harness::kExitMismatch);
  check_refused(play::tensor_memory, "map 128 --m 96", {"--m is 96", "64 or 128"});
  const std::string path = GEMM_BUILD_DIR "/tensor_memory_of_the_test.json";
  REQUIRE(run(play::tensor_memory, "map 64,32 --m 64 --json " + path).status == 0);
  std::ifstream file(path);
  const auto map = nlohmann::json::parse(file);
  std::remove(path.c_str());
  const auto& part = map["allocations"][1];
  CHECK(part["columns"] == nlohmann::json({64, 95}));
  CHECK(part["warps"][3] ==
        nlohmann::json({{"lanes", {96, 111}}, {"rows", {48, 63}}, {"address", 0x00600040}}));
}

TEST_CASE("play descriptor: encoding is the inverse of decoding") {
  for (const char* fields :
       {"--address 0x420 --swizzle 128", "--address 0x420 --swizzle 128B --leading 16 --stride 1024",
        "--address 1056 --swizzle 128 --stride 0x400 --base-offset 0"}) {
    CHECK(run(play::descriptor, std::string("encode ") + fields).text ==
          run(play::descriptor, "decode 4000004000010042").text);
  }
  CHECK(run(play::descriptor, "encode --swizzle none --address 16").text.rfind("0x0000001000080001\n", 0) ==
        0);
  CHECK(run(play::descriptor, "encode --swizzle 64").text.rfind("0x8000002000010000\n", 0) == 0);
  CHECK(run(play::descriptor, "encode --swizzle 32 --base-offset 1 --address 128")
            .text.rfind("0xc002001000010008\n", 0) == 0);
}

TEST_CASE("descriptor rules: each is found, alone") {
  const ptx::MatrixDescriptor dense{
      .address = 1024, .leading_bytes = 16, .stride_bytes = 1024, .swizzle = ptx::Swizzle::k128B};
  const ptx::MatrixDescriptor plain{
      .address = 0, .leading_bytes = 128, .stride_bytes = 256, .swizzle = ptx::Swizzle::kNone};
  auto examine = [](const ptx::MatrixDescriptor& d, std::uint32_t rows = kRows) {
    return play::examine_descriptor(ptx::encode(d), rows);
  };
  for (const ptx::MatrixDescriptor& right : {dense, plain}) {
    CHECK(examine(right).wrong.empty());
    CHECK(examine(right).odd.empty());
    CHECK(examine(right).notes.empty());
  }
  for (int bit = 0; bit < 64; ++bit) {
    const bool reserved = bit == 14 || bit == 15 || bit == 30 || bit == 31 || (bit >= 46 && bit <= 48) ||
                          (bit >= 52 && bit <= 61);
    const auto found = play::examine_descriptor(ptx::encode(dense) ^ (std::uint64_t{1} << bit), kRows);
    INFO(bit);
    CHECK(has(found.wrong, "no field of a wgmma descriptor") == reserved);
  }
  auto wrong = [&](ptx::MatrixDescriptor d, const std::string& part, std::uint32_t rows = kRows) {
    INFO(part);
    const play::DescriptorFindings found = examine(d, rows);
    CHECK(found.wrong.size() == 1);
    CHECK(has(found.wrong, part));
  };
  auto odd = [&](ptx::MatrixDescriptor d, const std::string& part) {
    INFO(part);
    const play::DescriptorFindings found = examine(d);
    CHECK(found.wrong.empty());
    CHECK(found.odd.size() == 1);
    CHECK(has(found.odd, part));
  };
  auto with = [](ptx::MatrixDescriptor d, auto change) {
    change(d);
    return d;
  };
  wrong(with(dense, [](auto& d) { d.address += 112; }), "112 bytes into a row of 128 bytes");

  wrong(with(dense, [](auto& d) { d.stride_bytes = 512; }), "overlap rows 0 to 7");
  wrong(with(dense, [](auto& d) { d.address = 227 * 1024 / 1024 * 1024 - 7 * 1024; }),
        "at most 232448 bytes");
  wrong(with(plain, [](auto& d) { d.base_offset = 1; }), "a base offset but no swizzle");
  wrong(with(plain, [](auto& d) { d.leading_bytes = 16; }), "k 8 to 15 overlap");
  wrong(with(plain, [](auto& d) { d.stride_bytes = 64; }), "rows 8 to 15 overlap");
  wrong(with(plain, [](auto& d) { d.stride_bytes = 128; }), "the leading offset and the stride are both 128");
  odd(with(dense, [](auto& d) { d.address += 16; }), "16 bytes into row 0");
  odd(with(dense, [](auto& d) { d.stride_bytes = 2048; }), "in a dense tile");
  odd(with(dense, [](auto& d) { d.stride_bytes = 1152; }), "start inside the swizzle's pattern");
  odd(with(dense, [](auto& d) { d.leading_bytes = 1024; }), "ignores it");
  odd(with(dense, [](auto& d) { d.address += 384; }), "row 0 lies on row 3 of the swizzle's pattern");
  odd(with(dense, [](auto& d) { d.base_offset = 1; }), "the base offset is 1");

  odd(with(plain, [](auto& d) { d.stride_bytes = 272; }), "not a multiple of 128");
  // Eight rows need no stride.
  CHECK(examine(with(dense, [](auto& d) { d.stride_bytes = 0; }), 8).wrong.empty());
  CHECK(run(play::descriptor, "encode --address 0x470").status == harness::kExitMismatch);
}

TEST_CASE("play descriptor: wrong input") {
  check_refused(play::descriptor, "--rows 64", {"'--rows' is unknown here; begin with decode or encode"});
  check_refused(play::descriptor, "dekode 0", {"'dekode' is unknown", "decode or encode"});
  check_refused(play::descriptor, "decode", {"bits is required"});
  check_refused(play::descriptor, "decode 12g", {"'12g'", "hexadecimal"});
  check_refused(play::descriptor, "decode 0x10000000000000000", {"'0x10000000000000000'", "1 to 16"});
  check_refused(play::descriptor, "encode --address 8", {"--address is 8", "multiple of 16"});
  check_refused(play::descriptor, "encode --stride 262144", {"--stride is '262144'", "262128"});
  check_refused(play::descriptor, "encode --base-offset 8", {"--base-offset is '8'", "7"});
  check_refused(play::descriptor, "encode --rows 12", {"--rows is 12", "multiple of 8"});
  check_refused(play::descriptor, "encode --adress 5", {"did you mean '--address'?"});
}

TEST_CASE("play tensor_map: what a map means, and back from its bytes") {
  const Ran ran = run(play::tensor_map, "encode --extent 4096,1000 --box 64,128 --swizzle 128");
  CHECK(ran.status == 0);
  const std::string meaning = R"(tensor   bf16 at 0x7f0000000000, 2 dimensions
  dim 0  4096 elements, 2 bytes apart
  dim 1  1000 elements, 8192 bytes apart
box      64 x 128 elements: 128 rows of 128 bytes, 16384 bytes for the mbarrier
swizzle  128 bytes: unit u of row r at place u xor (r mod 8), if the tile starts on a multiple of 1024
L2       promotion 128
tiling   64 x 8 boxes cover the tensor; the last ones extend beyond it by 24 elements of dimension 1
         elements beyond the tensor arrive as zeros and count as bytes
)";
  const std::string heading = "bytes, the emulator's\n";
  CHECK(ran.text.rfind(meaning + heading, 0) == 0);
  const std::string bytes = ran.text.substr(meaning.size() + heading.size());
  CHECK(run(play::tensor_map, "decode " + bytes).text == meaning);
  std::string damaged = bytes;
  damaged[70] = damaged[70] == '1' ? '2' : '1';
  check_refused(play::tensor_map, "decode " + damaged, {"not a tensor map of the emulator", "checksum"});
  const Ran five =
      run(play::tensor_map,
          "encode --extent 64,5,6,7,8 --stride 256,4096,65536,0x100000 --box 32,1,2,3,4 --swizzle 64B "
          "--element fp16 --l2 none --base 0x100");
  CHECK(five.status == 0);
  check_text(five.text, {"fp16 at 0x100, 5 dimensions", "  dim 4  8 elements, 1048576 bytes apart\n",
                         "24 rows of 64 bytes, 1536 bytes for the mbarrier",
                         "extend beyond it by 2 elements of dimension 3"});
  CHECK(contains(
      run(play::tensor_map, "encode --extent 64,8 --box 16,8 --swizzle 128").text,
      "unusual: rows of 32 bytes are shorter than the swizzle's span; an H200 gives each row 128 bytes"));
}

TEST_CASE("play descriptor, play tensor_map: without arguments an example") {
  struct Case {
    play::Program program;
    const char* words;
  };
  for (const auto& [program, words] :
       {Case{play::descriptor, "encode --address 0x420 --swizzle 128"},
        Case{play::tensor_map, "encode --extent 4096,1000 --box 64,128 --swizzle 128"}}) {
    const Ran ran = run(program, "");
    CHECK(ran.status == 0);
    CHECK(ran.errors.empty());
    CHECK(contains(ran.text, std::string(words) + " (--help explains)\n" + run(program, words).text));
  }
}

TEST_CASE("play tensor_map: the violated rule") {
  check_refused(play::tensor_map, "encode --extent 4096,1000 --box 128,128 --swizzle 128",
                {"a row of the box is 256 bytes", "span of 128"});
  check_refused(play::tensor_map, "encode --extent 100,1000 --box 64,128",
                {"stride of dimension 1 is 200 bytes"});
  check_refused(play::tensor_map, "encode --extent 64,64 --box 64,257",
                {"257 elements in dimension 1", "1 to 256"});
  check_refused(play::tensor_map, "encode --extent 64,0 --box 64,8", {"dimension 1 has 0 elements"});
  check_refused(play::tensor_map, "encode --extent 64,64 --box 4,8", {"a row of the box is 8 bytes"});
  check_refused(play::tensor_map, "encode --extent 64,64 --box 64,8 --base 0x1008",
                {"8 bytes past a multiple of 16"});
  check_refused(play::tensor_map, "encode --extent 64,64 --box 64,8 --base 0", {"base address is null"});
  check_refused(play::tensor_map, "encode --extent 4294967296,4294967296,2 --box 8,1,1", {"below 2^40"});
}

TEST_CASE("play tensor_map: wrong input") {
  check_refused(play::tensor_map, "encode --extent 5", {"--box is required"});
  check_refused(play::tensor_map, "encode --extent 5 --box 3,4",
                {"--extent has 1 dimensions, but --box has 2"});
  check_refused(play::tensor_map, "encode --extent 8,8,8,8,8,8 --box 8", {"--extent has 6 numbers"});
  check_refused(play::tensor_map, "encode --extent 64,,8 --box 8,8,8", {"--extent is ''"});
  check_refused(play::tensor_map, "encode --extent 64,8 --box 8,8 --stride 128,1024",
                {"--stride has 2 numbers", "needs 1"});
  check_refused(play::tensor_map, "encode --extent 64,8 --box 8,8 --element int7", {"'int7'", "bf16, fp16"});
  check_refused(play::tensor_map, "encode --extent 64,8 --box 8,8 --l2 32", {"--l2 is '32'"});
  check_refused(play::tensor_map, "decode 00", {"2 hexadecimal digits", "256 digits"});
  check_refused(play::tensor_map, "decode xy", {"'x' is not a hexadecimal digit"});
}

TEST_CASE("play events: columns are as wide as the longest name") {
  const Ran ran = run(play::events, "16 --shape 128x256x64");
  CHECK(ran.status == 0);
  const std::size_t head = ran.text.find("CTA       barrier");
  REQUIRE(head != std::string::npos);
  const std::string row = "(0,0,0)   ring.empty[0] mbarrier_init";
  const std::size_t first = ran.text.find(row);
  REQUIRE(first != std::string::npos);
  CHECK(ran.text.find("event", head) - head == row.find("mbarrier_init"));
}

TEST_CASE("play events: one row for what many threads do alike") {
  const Ran ran = run(play::events, "09 --shape 128x128x128");
  INFO(ran.text << ran.errors);
  CHECK(ran.status == 0);
  check_text(ran.text,
             {"09_tma 128x128, 128x128x128, seed 1, completion random\n",
              "full       mbarrier_arrive_expect_tx, 32768 bytes      0        0  32768  thread 0 ",
              "full       mbarrier_wait_parity                        2        1      0  128 threads ",
              "wgmma, 8 instructions"});
}

TEST_CASE("play events: wrong input") {
  check_refused(play::events, "04", {"04_mma_sync uses no mbarriers", "09"});
  check_refused(play::events, "08", {"08_wgmma uses no mbarriers"});
  check_refused(play::events, "11 --shape 1024", {"1024x1024x1024", "512x512x512"});
  check_refused(play::events, "99", {"unknown step '99'"});
  check_refused(play::events, "11 --variant 64x64", {"64x64"});
  check_refused(play::events, "11 --shape 128x128x65", {"65"});
  check_refused(play::events, "11 --completion sometimes", {"'sometimes'", "random, earliest or latest"});
  check_refused(play::events, "11 --slow-warps 3-1", {"'3-1'", "must not be after the last"});
  check_refused(play::events, "11 --slow-warps 0-1-2", {"'0-1-2'", "0-3 or 4,5"});
  check_refused(play::events, "11 --slow-warps 32", {"--slow-warps is '32'", "31"});
  check_refused(play::events, "11 --json /nonexistent/events", {"'/nonexistent/events' cannot be written"});
}

TEST_CASE("play events: slow warps go on only where nothing else can") {
  // Step 11 with one warpgroup: thread 0 issues the copies. Where its warp is slow, the others wait for the
  // first k-tile before it issues the second copy; where the others are slow, it has issued both.
  const auto copies_before_first_wait = [](const std::string& warps) {
    const std::string path = GEMM_BUILD_DIR "/slow_events.jsonl";
    REQUIRE(run(play::events, "11 --completion earliest --slow-warps " + warps + " --json " + path).status ==
            0);
    std::ifstream file(path);
    int copies = 0;
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json event = nlohmann::json::parse(line);
      if (event["event"] == "mbarrier_wait_parity" &&
          contains(event["barrier"].get<std::string>(), "full[0]"))
        return copies;
      copies += event["event"] == "mbarrier_arrive_expect_tx" ? 1 : 0;
    }
    return -1;
  };
  CHECK(copies_before_first_wait("0") == 1);
  CHECK(copies_before_first_wait("1-3") == 2);
}
