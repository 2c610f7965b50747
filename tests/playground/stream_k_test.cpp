// play_stream_k: ranges that can be checked by hand, and what it refuses.
#include "run_play.h"

using namespace play_test;

TEST_CASE("play stream_k: ranges that can be checked by hand") {
  // 3 x 16 k-tiles are 12 for each of 4 workers; storing partials takes 8 k-tiles, adding those of a slot 5.
  const Ran ran = run(play::stream_k, "--tiles 3 --k-tiles 16");
  CHECK(ran.status == 0);
  CHECK(ran.text == R"(3 tiles of 16 k-tiles on 4 workers

data-parallel: ends after 16 k-tiles; predicted: 16
  worker 0: tile 0
  worker 1: tile 1
  worker 2: tile 2
  worker 3: nothing

stream-K: ends after 25 k-tiles; predicted: 30
  worker 0: tile 0: 0-11, store partials
  worker 1: tile 1: 0-7, store partials, tile 0: 12-15, fix up
  worker 2: tile 2: 0-3, store partials, tile 1: 8-15, fix up
  worker 3: tile 2: 4-15, fix up

hybrid: ends after 16 k-tiles; predicted: 16
  worker 0: tile 0
  worker 1: tile 1
  worker 2: tile 2
  worker 3: nothing
)");
  // All four share one tile, and the last of them waits for the partials of the others.
  CHECK(contains(run(play::stream_k, "--tiles 1 --k-tiles 16").text,
                 "  worker 3: tile 0: 12-15, wait for 8, fix up\n"));
}

TEST_CASE("play stream_k: wrong input") {
  check_refused(play::stream_k, "--tiles 0", {"--tiles is 0"});
  check_refused(play::stream_k, "--workers many", {"--workers is 'many'"});
  check_refused(play::stream_k, "--k-tiles 100000", {"10000"});
  check_refused(play::stream_k, "--json /nowhere/stream_k.json", {"/nowhere/stream_k.json"});
}
