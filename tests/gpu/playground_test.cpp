// The playground's programs on a GPU: the hardware against the models.
#include <string>

#include "catch.h"
#include "device.h"
#include "play.h"

TEST_CASE("play tma_swizzle: the hardware permutes as the model does, wherever the tile starts", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  for (const char* at : {"0", "128", "256", "640", "1024"}) {
    for (const char* rows : {"8", "16", "3"}) {
      play::Output output;
      const int status = play::tma_swizzle({"--at", at, "--rows", rows}, output);
      INFO(output.text << output.errors);
      CHECK(status == 0);
    }
  }
}

TEST_CASE("play tma_swizzle: rows shorter than the swizzle take its span", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  for (const char* row_bytes : {"16", "32"}) {
    play::Output output;
    const int status = play::tma_swizzle({"--rows", "11", "--at", "384", "--row-bytes", row_bytes}, output);
    INFO(output.text << output.errors);
    CHECK(status == 0);
  }
}

TEST_CASE("play mbarrier: the hardware's word and waits are the emulator's", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  play::Output output;
  const int status = play::mbarrier(
      {"init 2, arrive_expect 1024, complete 512, arrive, complete 512, wait 0, test 1, arrive 2, wait 1"},
      output);
  INFO(output.text << output.errors);
  CHECK(status == 0);
  CHECK(
      output.text ==
      R"(event               word                phase         arrivals missing  bytes missing  wait parity 0  wait parity 1  answer
init 2              0x7ffff000001ffffc  0 (parity 0)  2 of 2            0              waits          passes
arrive_expect 1024  0x7ffffbff801ffffc  0 (parity 0)  1 of 2            1024           waits          passes
complete 512        0x7ffffbffc01ffffc  0 (parity 0)  1 of 2            512            waits          passes
arrive              0x000003ffc01ffffc  0 (parity 0)  0 of 2            512            waits          passes
complete 512        0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits
wait 0              0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits          passed
test 1              0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits          no: not complete
arrive              0xfffff800001ffffc  1 (parity 1)  1 of 2            0              passes         waits
arrive              0x7ffff000001ffffc  2 (parity 0)  2 of 2            0              waits          passes
wait 1              0x7ffff000001ffffc  2 (parity 0)  2 of 2            0              waits          passes         passed
)");
}

TEST_CASE("play mbarrier: what would be undefined or endless is refused or given up", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  for (const char* script : {"arrive", "init 0", "init 1, wait 2"}) {
    play::Output output;
    CHECK(play::mbarrier({script}, output) == 2);
    CHECK(output.errors.rfind("error: ", 0) == 0);
  }
  // One arrival too many is not tried here: the hardware ends the kernel, and with it every later test.
  play::Output output;
  CHECK(play::mbarrier({"init 2, arrive, wait 0"}, output) == 1);
  CHECK(contains(output.errors, "a kernel would hang"));
}

// The bytes of one copy may be counted in parts. If a part makes the count zero, the phase ends and the rest
// is owed by the next; if the count passes zero, it stays. An H200 has done both.
TEST_CASE("play mbarrier: more bytes than expected end the phase or leave it open", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  play::Output output;
  CHECK(play::mbarrier({"init 1, arrive_expect 512, complete 1024"}, output) == 0);
  INFO(output.text);
  const bool open = contains(output.text, "0 (parity 0)  0 of 1            -512           waits ");
  const bool ended = contains(output.text, "1 (parity 1)  1 of 1            -512           passes ");
  CHECK((open || ended));
}

TEST_CASE("play tensor_map: the driver's bytes are printed, not decoded", "[device]") {
  if (gpu_test::skip_without_hopper()) return;
  play::Output output;
  CHECK(play::tensor_map({"encode", "--extent", "4096,1000", "--box", "64,128", "--swizzle", "128"},
                         output) == 0);
  const std::string bytes = output.text.substr(output.text.rfind("\nbytes\n") + 7);
  CHECK(bytes.size() == 256 + 4);
  play::Output decoded;
  CHECK(play::tensor_map({"decode", bytes}, decoded) == 2);
  CHECK(contains(decoded.errors, "--backend emulator"));
}
