// Which worker multiplies what (gemm/schedule/decomposition.h): nothing twice, nothing never, and no circle
// of waits.
#include "gemm/schedule/decomposition.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.h"
#include "decomposition_checks.h"

namespace gemm {
namespace {

constexpr int kSmsOfH200 = 132;

/// Every form: the four splits, and mixtures that no split makes.
std::vector<Decomposition> forms(int tiles, int k_tiles, int workers) {
  std::vector<Decomposition> result;
  for (const Split split : {Split::kDataParallel, Split::kStreamK, Split::kHybrid})
    result.push_back(decompose(split, tiles, k_tiles, workers));
  for (const int splits : {1, 2, 3, 4, 7, 100})
    result.push_back(decompose(Split::kSplitK, tiles, k_tiles, workers, splits));
  for (const int stream_k_tiles : {1, tiles / 2, tiles - 1}) {
    for (const int splits : {1, 2, 3}) {
      if (stream_k_tiles >= 0 && splits <= k_tiles)
        result.push_back({tiles, k_tiles, workers, stream_k_tiles, splits});
    }
  }
  return result;
}

template <typename Check>
void for_many(const Check& check) {
  for (const int workers : {1, 2, 3, 4, 5, 7, 16, kSmsOfH200}) {
    for (const int tiles :
         {1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 17, 23, 33, 45, 60, 131, 132, 133, 153, 264, 265}) {
      if (tiles > 60 && workers < 16) continue;
      for (const int k_tiles : {1, 2, 3, 4, 5, 16, 33, 128}) {
        for (const Decomposition& all : forms(tiles, k_tiles, workers)) check(all);
      }
    }
  }
}

}  // namespace

TEST_CASE(
    "decomposition: every k-tile of every tile once, every tile finished once, every slot written once") {
  int cases = 0;
  for_many([&](const Decomposition& all) {
    ++cases;
    const std::string mistake = mistake_in_cover(all);
    if (!mistake.empty()) FAIL(to_string(all) << ": " << mistake);
  });
  CHECK(cases > 5000);
}

TEST_CASE(
    "decomposition: the fix-up of a tile reads its peers' partials, in order of k, and waits for no worker "
    "that waits for it") {
  for_many([](const Decomposition& all) {
    for (const int first : {0, all.workers - 1, all.workers / 2}) {
      const std::string mistake = mistake_in_run(all, first);
      if (!mistake.empty()) FAIL(to_string(all) << ", worker " << first << " first: " << mistake);
    }
  });
}

TEST_CASE("decomposition: worker_at finds the worker whose range holds a k-tile") {
  for_many([](const Decomposition& all) {
    int worker = 0;
    for (int k_tile = 0; k_tile < all.stream_k_tiles * all.k_tiles; ++k_tile) {
      while (k_tile >= all.range_begin(worker + 1)) ++worker;
      if (all.worker_at(k_tile) != worker)
        FAIL(to_string(all) << ": k-tile " << k_tile << " is worker " << worker << "'s, not "
                            << all.worker_at(k_tile) << "'s");
    }
  });
}

TEST_CASE("decomposition: the stream-K tiles, linearised, are divided evenly") {
  for_many([](const Decomposition& all) {
    if (all.stream_k_tiles == 0) return;
    int shortest = all.stream_k_tiles * all.k_tiles;
    int longest = 0;
    for (int worker = 0; worker < all.workers; ++worker) {
      const int length = all.range_begin(worker + 1) - all.range_begin(worker);
      if (worker < all.ranges() && length == 0)
        FAIL(to_string(all) << ": worker " << worker << " has no range");
      if (worker >= all.ranges() && length > 0)
        FAIL(to_string(all) << ": worker " << worker << " has a range");
      if (worker < all.ranges()) shortest = std::min(shortest, length);
      longest = std::max(longest, length);
    }
    if (longest > shortest + 1)
      FAIL(to_string(all) << ": ranges of " << shortest << " to " << longest << " k-tiles");
  });
}

TEST_CASE(
    "decomposition: a worker does its range from the end to the beginning, and data-parallel work tiles "
    "after it") {
  for_many([](const Decomposition& all) {
    for (const auto& list : all_work_tiles(all)) {
      for (std::size_t i = 1; i < list.size(); ++i) {
        const bool stream_k_tiles = list[i].tile < all.stream_k_tiles;
        if (stream_k_tiles && list[i].tile >= list[i - 1].tile) FAIL(to_string(all) << ": not from the end");
        if (!stream_k_tiles && list[i].tile < list[i - 1].tile)
          FAIL(to_string(all) << ": data-parallel tiles out of order");
      }
    }
  });
}

TEST_CASE("decomposition: a work tile from the middle of a tile begins at a multiple of the range's length") {
  // 5 tiles of 20 k-tiles for 12 workers: ranges of 8 or 9 k-tiles, aligned to 9.
  const Decomposition all{5, 20, 12, 5, 1};
  int wrapped = 0;
  for (const auto& list : all_work_tiles(all)) {
    for (const WorkTile& work : list) {
      CHECK(work.k_tile(0) == work.k_first);
      if (work.k_first == work.k_begin) continue;
      ++wrapped;
      CHECK(work.k_first % 9 == 0);
      CHECK(work.k_tile(work.count() - 1) == work.k_first - 1);
      CHECK(work.k_end < all.k_tiles);
    }
  }
  CHECK(wrapped > 0);
  // Wraps: 5, 6, 7, 3, 4.
  const WorkTile work{.tile = 0, .k_begin = 3, .k_end = 8, .k_first = 5, .slot = 0};
  const int expected[] = {5, 6, 7, 3, 4};
  for (int i = 0; i < work.count(); ++i) CHECK(work.k_tile(i) == expected[i]);
}

TEST_CASE("decomposition: what the chapter says of 10 tiles and 4 workers") {
  // Streamed over everything: 10 tiles of 8 k-tiles, 20 for each worker.
  const Decomposition streamed = decompose(Split::kStreamK, 10, 8, 4);
  CHECK(busiest(streamed) == 20);
  CHECK(busiest(decompose(Split::kDataParallel, 10, 8, 4)) == 24);
  CHECK(busiest(decompose(Split::kSplitK, 10, 8, 4, 2)) == 20);
  const auto lists = all_work_tiles(streamed);
  // Worker 1 has 20 to 39: the second half of tile 2, tile 3, tile 4; last first.
  REQUIRE(lists[1].size() == 3);
  CHECK(lists[1][0].tile == 4);
  CHECK(lists[1][2].tile == 2);
  CHECK(lists[1][2].k_begin == 4);
  const SlotRange peers = peers_of(streamed, lists[1][2], 1);
  CHECK(peers.first == 0);
  CHECK(peers.end == 1);
  CHECK(lists[0][0].tile == 2);
  CHECK(lists[0][0].k_end == 4);
  CHECK(lists[0][0].slot == 0);
}

TEST_CASE("decomposition: slots of the workspace") {
  CHECK(decompose(Split::kDataParallel, 45, 512, kSmsOfH200).slots() == 0);
  CHECK(decompose(Split::kSplitK, 45, 512, kSmsOfH200, 2).slots() == 45);
  CHECK(decompose(Split::kSplitK, 45, 512, kSmsOfH200, 4).slots() == 135);
  CHECK(decompose(Split::kSplitK, 45, 3, kSmsOfH200, 4).slots() == 90);  // no more splits than k-tiles
  CHECK(decompose(Split::kStreamK, 45, 512, kSmsOfH200).slots() == kSmsOfH200);
  CHECK(Decomposition{45, 512, kSmsOfH200, 5, 3}.slots() == kSmsOfH200 + 40 * 2);
  CHECK(Decomposition{45, 512, kSmsOfH200, 5, 3}.data_parallel_slots(7) == kSmsOfH200 + 14);
}

TEST_CASE("predicted time: data-parallel takes whole waves") {
  for (const auto& [tiles, waves] : {std::pair{1, 1}, {132, 1}, {133, 2}, {264, 2}, {265, 3}, {1024, 8}})
    CHECK(predicted_k_tiles(decompose(Split::kDataParallel, tiles, 64, kSmsOfH200)) == Approx(64 * waves));
}

TEST_CASE("predicted time: no less than what the busiest worker multiplies, less a k-tile of rounding") {
  for_many([](const Decomposition& all) {
    // The prediction gives every worker the same range and the same number of data-parallel work tiles.
    if (all.splits > 1 && all.k_tiles % all.splits != 0) return;
    if (predicted_k_tiles(all) + 1 <= busiest(all) - 1e-9)
      FAIL(to_string(all) << ": predicted " << predicted_k_tiles(all) << ", busiest " << busiest(all));
  });
}

TEST_CASE("predicted time: the table of the chapter") {
  struct Row {
    int tiles;
    int k_tiles;
    double plain, hybrid, stream_k, split_k2, split_k4;
  };
  for (const Row& row : {Row{45, 512, 512, 198, 198, 269, 279}, Row{153, 128, 256, 161, 161, 205, 183},
                         Row{64, 224, 224, 132, 132, 125, 135}, Row{32, 128, 128, 64, 64, 77, 55},
                         Row{2048, 128, 2048, 2048, 1999, 2061, 2039}}) {
    INFO(row.tiles << " tiles of " << row.k_tiles << " k-tiles");
    const auto predicted = [&](Split split, int splits = 1) {
      return predicted_k_tiles(decompose(split, row.tiles, row.k_tiles, kSmsOfH200, splits));
    };
    CHECK(predicted(Split::kDataParallel) == Approx(row.plain).margin(0.5));
    CHECK(predicted(Split::kHybrid) == Approx(row.hybrid).margin(0.5));
    CHECK(predicted(Split::kStreamK) == Approx(row.stream_k).margin(0.5));
    CHECK(predicted(Split::kSplitK, 2) == Approx(row.split_k2).margin(0.5));
    CHECK(predicted(Split::kSplitK, 4) == Approx(row.split_k4).margin(0.5));
  }
}

TEST_CASE("hybrid: never predicted slower than data-parallel, and only where the gain is worth it") {
  for (int tiles = 1; tiles < 1500; tiles += tiles < 300 ? 1 : 13) {
    for (const int k_tiles : {1, 4, 24, 64, 128, 512}) {
      const Decomposition plain = decompose(Split::kDataParallel, tiles, k_tiles, kSmsOfH200);
      const Decomposition hybrid = decompose(Split::kHybrid, tiles, k_tiles, kSmsOfH200);
      const double gain = predicted_k_tiles(hybrid) / predicted_k_tiles(plain);
      if (hybrid.stream_k_tiles == 0 ? gain != 1 : gain > kWorthwhile)
        FAIL(to_string(hybrid) << ": predicted " << gain << " of data-parallel");
      // Whole waves behind the stream-K tiles.
      if (hybrid.stream_k_tiles > 0 && (tiles - hybrid.stream_k_tiles) % kSmsOfH200 != 0)
        FAIL(to_string(hybrid));
      if (hybrid.stream_k_tiles >= 2 * kSmsOfH200)
        FAIL(to_string(hybrid) << ": more than two waves of stream-K tiles");
    }
  }
}

TEST_CASE("hybrid: falls back to whole tiles") {
  const auto stream_k_tiles = [](int tiles, int k_tiles) {
    return decompose(Split::kHybrid, tiles, k_tiles, kSmsOfH200).stream_k_tiles;
  };
  SECTION("where the last wave is full") {
    CHECK(stream_k_tiles(132, 512) == 0);
    CHECK(stream_k_tiles(264, 512) == 0);
    CHECK(stream_k_tiles(130, 128) == 0);
    CHECK(stream_k_tiles(260, 128) == 0);
  }
  SECTION("where K is too short to pay for passing partials") {
    for (const int tiles : {1, 9, 66, 133, 153, 200}) {
      CHECK(stream_k_tiles(tiles, 1) == 0);
      CHECK(stream_k_tiles(tiles, 8) == 0);
    }
  }
  SECTION("where there are many waves") {
    CHECK(stream_k_tiles(2048, 128) == 0);    // 8192^3: 15.5 waves
    CHECK(stream_k_tiles(32 * 96, 24) == 0);  // 4096 x 24576 x 1536
    CHECK(stream_k_tiles(64 * 132 + 1, 64) == 0);
  }
  SECTION("and not where the problem is hostile to waves") {
    CHECK(stream_k_tiles(45, 512) == 45);    // 1152 x 1152 x 32768: a third of a wave
    CHECK(stream_k_tiles(153, 128) == 153);  // 2176 x 2304 x 8192: a wave and a sixth
    CHECK(stream_k_tiles(64, 224) == 64);    // 512 x 4096 x 14336: half a wave
    CHECK(stream_k_tiles(133, 128) > 0);
  }
}

TEST_CASE("decomposition: far fewer k-tiles than workers") {
  for (const int workers : {1, 7, kSmsOfH200}) {
    const Decomposition one = decompose(Split::kStreamK, 1, 1, workers);
    CHECK(one.ranges() == 1);
    CHECK(mistake_in_cover(one).empty());
    CHECK(mistake_in_run(one, workers - 1).empty());
  }
}

TEST_CASE("decomposition: many k-tiles do not overflow") {
  // 16384 x 16384 x 1048576: 8192 tiles of 16384 k-tiles are 2^27 k-tiles; times 132 workers more than an
  // int.
  const Decomposition all = decompose(Split::kStreamK, 8192, 16384, kSmsOfH200);
  CHECK(all.range_begin(kSmsOfH200) == 8192 * 16384);
  CHECK(all.range_begin(66) ==
        66 * 1016801);  // the first 128 ranges have 1016801 k-tiles, the others 1016800
  CHECK(all.range_begin(130) == 128 * 1016801 + 2 * 1016800);
  for (int worker = 0; worker < kSmsOfH200; ++worker)
    CHECK(all.range_begin(worker) < all.range_begin(worker + 1));
}

}  // namespace gemm
