// play_raster: the table, the map, the figure's data, and what it refuses.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "run_play.h"

using namespace play_test;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("play raster: a table that can be checked by hand") {
  // 4 x 4 tiles on 4 SMs; a row of A and a row of B have 1 MiB each.
  const Ran ran = run(play::raster, "--shape 1024x1024x2048 --tile 256x256 --sms 4");
  CHECK(ran.status == 0);
  CHECK(
      ran.text ==
      R"(1024x1024x2048, tiles of 256 x 256: 4 x 4 = 16 tiles on 4 SMs = 4.00 waves, 4 with the last; 100.0 % of the SMs' time is used
a row of tiles needs 1.00 MiB of A, a column 1.00 MiB of B

order     rows  columns  A (MiB)  B (MiB)      sum  all waves     share
along_n      1        4      1.0      4.0      5.0         20    62.5 %
along_m      4        1      4.0      1.0      5.0         20    62.5 %
group2       2        2      2.0      2.0      4.0         16    50.0 %
group4       4        1      4.0      1.0      5.0         20    62.5 %
group8       4        1      4.0      1.0      5.0         20    62.5 %
group16      4        1      4.0      1.0      5.0         20    62.5 %
hilbert      2        2      2.0      2.0      4.0         16    50.0 %
)");
}

TEST_CASE("play raster: a map") {
  const Ran ran = run(play::raster, "--shape 512x768x64 --tile 128x128 --sms 4 --order group3");
  CHECK(ran.status == 0);
  // Three rows column by column, then the fourth.
  CHECK(
      ran.text ==
      R"(512x768x64, tiles of 128 x 128: 4 x 6 = 24 tiles on 4 SMs = 6.00 waves, 6 with the last; 100.0 % of the SMs' time is used
a row of tiles needs 0.02 MiB of A, a column 0.02 MiB of B

order     rows  columns  A (MiB)  B (MiB)      sum  all waves     share
group3       3        2      0.0      0.0      0.1          0    64.6 %

D, with one character for each tile: the last digit of its wave (the first wave is 0)
001233
011234
012234
445555
)");
}

TEST_CASE("play raster: the figure's data is what the scheduler gives") {
  const std::string path = GEMM_BUILD_DIR "/rasters_of_the_test.json";
  const Ran ran = run(play::raster, "--json " + path);
  CHECK(ran.status == 0);
  CHECK(ran.text == "the first 3 waves of 7 orders are in " + path + "\n");
  const std::string written = text_of(path);
  std::remove(path.c_str());
  CHECK_FALSE(written.empty());
  // If not: tools/play raster --json docs/figures/rasters.json && tools/figures/draw_rasters.py
  CHECK(written == text_of(GEMM_SOURCE_DIR "/docs/figures/rasters.json"));
}

TEST_CASE("play raster: wrong input") {
  check_refused(play::raster, "--order zigzag", {"'zigzag'", "along_n", "group16"});
  check_refused(play::raster, "--order group0", {"'group0'"});
  check_refused(play::raster, "--order groupx", {"'x'"});
  check_refused(play::raster, "--tile 128", {"'128'", "128x256"});
  check_refused(play::raster, "--tile 0x256", {"'0x256'"});
  check_refused(play::raster, "--sms 0", {"--sms is 0"});
  check_refused(play::raster, "--sms many", {"--sms is 'many'"});
  check_refused(play::raster, "--shape 12x", {"12x"});
  check_refused(play::raster, "--shape 128x65536x64 --order along_n", {"256 columns", "200"});
  check_refused(play::raster, "--json /nowhere/rasters.json", {"/nowhere/rasters.json"});
}
