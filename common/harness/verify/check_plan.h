// What a bare --check runs on the emulator: shapes and schedules that exercise the variant, derived from what
// it declares. A kernel that is broken where its ring wraps, where a CTA takes its second tile or where a
// cluster is cut by the edge of D passes a shape that has none of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

struct Schedule {
  std::uint64_t seed = 1;
  Completion completion = Completion::kRandom;
  CtaOrder cta_order = CtaOrder::kSeed;
  bool operator==(const Schedule&) const = default;
};

/// Inputs, and under how many of a case's schedules.
struct CheckInputs {
  Pattern pattern = Pattern::kExact;
  std::size_t schedules = 1;  // the first ones; another schedule finds another bug, other values do not
  bool same_bits = false;     // the results have the same bits under all schedules_of_bits()
  bool in_streams = false;    // also launched in two streams (launch_in_streams)
};

/// One shape on an emulated GPU of `sms` SMs, under several schedules.
struct CheckCase {
  gemm::Shape shape;
  int sms = 0;
  std::vector<Schedule> schedules;
  std::string why;            // "3 x 3 tiles on 2 CTAs, 9 k-tiles through 4 stages"
  int launches = 1;           // of one plan: 2 where it keeps a workspace, for what the first left there
  gemm::Epilogue epilogue{};  // of a variant with a source: each case another one
  bool in_place = false;      // D is C
  int c_pitch = 0;            // elements from one row of C to the next; 0: N
  int aux_pitch = 0;          // the same of the auxiliary tensor, of a mask bits; 0: least
  std::vector<gemm::GroupRows> groups{};  // of a variant that takes them: each case others, or none
  int capacity = 0;                       // rows that each has room for, of a variant that takes counts
  std::uint64_t placement = 0;            // seed of groups that lie anywhere, of a variant that takes them
  bool device_only = false;               // of these only the device knows
  std::vector<CheckInputs> inputs{};      // in this order
  bool adds_parts = false;                // of CTAs, which finish in any order, in a workspace
  int parts = 0;                          // at least so many CTAs share a tile, or its sums; 0: none
};

/// Behind `first`: those under which an order that is not fixed shows. Where CTAs add parts, they get to the
/// end in ascending and in descending order. The seed stays, because it also decides how far off an
/// approximation is.
std::vector<Schedule> schedules_of_bits(const CheckCase& one, const Schedule& first);

struct ProblemForm;
/// What the case asks of the problem; `form` has the rest.
ProblemForm form_of(const CheckCase& one, const gemm::Variant& variant, ProblemForm form);

/// What is known of a variant at a shape on this GPU.
struct CheckFacts {
  int tiles_m = 0;
  int tiles_n = 0;
  int k_tiles = 0;
  std::int64_t ctas = 0;
  int cluster = 1;          // CTAs
  bool persistent = false;  // the grid does not grow with D
  bool splits =
      false;  // partials of tiles that are split along K: a workspace with room for more than counters
  bool workspace = false;  // that, or one for sums of the epilogue

  std::int64_t tiles() const { return static_cast<std::int64_t>(tiles_m) * tiles_n; }
};
/// Of the emulated GPU as control_emulator has set it up.
CheckFacts check_facts(const gemm::Variant& variant, const gemm::Shape& shape);

/// The cases for a variant, cheapest first. `quick`: one seed. `seed` is that of the first schedule. Changes
/// the number of SMs of the emulated GPU; the caller sets it for each case.
///
/// The first case has more than 2 * stages k-tiles, the last of them incomplete; an odd number of tiles in
/// each direction, so that clusters are whole and cut, with incomplete tiles at both edges; at least two
/// tiles for each CTA where the grid is persistent, more tiles than SMs elsewhere; whole and split tiles
/// where tiles are split. The others have one k-tile; where the grid is persistent, or has clusters, more
/// rows of tiles than a raster group, so that the last group is lower; and, where tiles are split, fewer
/// tiles than CTAs and tiles that three CTAs share, so that a CTA's range begins inside a tile and ends
/// there. What is left is what the first case has not: whole tiles, an even number of k-tiles, no more
/// k-tiles than stages, one more, a single tile, rows that are no whole vectors, and rows of whole ones that
/// end inside a tile, the smallest K, tiles that are barely begun. Where the grid is persistent and there is
/// no workspace, two more have tiles whose first row, or column, is a number that 16 bits do not hold.
///
/// A variant with a source gets the epilogues in turn: C with beta = 1, beta = 0 with a C that must not be
/// read, other factors with rows of C that lie farther apart than those of D, and D in place of C. Of an
/// auxiliary tensor, too, every second case has rows that lie farther apart.
///
/// A variant with groups gets some in turn, or none: few with most of the rows in one of them, more than a
/// warp looks at once, more than two such looks, empty ones, all rows in one; with guard rows between them. A
/// variant that reads counts from device memory gets them with a capacity, and is launched twice, with other
/// counts. One that takes groups anywhere gets them so in all cases but those without guard rows; where it
/// needs no host to know them, the first is launched twice, and they move.
///
/// The first case has inputs of every kind, special ones among them. It also asks for the same bits under
/// several schedules, where all are rounded; so does the one in which most CTAs share a tile. That one and
/// the smallest one, or the smallest with a workspace, are also launched in two streams. Sums of an epilogue
/// that keeps no workspace for them are added as CTAs finish, and nobody promises their bits.
std::vector<CheckCase> plan_check(const gemm::Step& step, const gemm::Variant& variant, std::uint64_t seed,
                                  bool quick);

/// The cases for a variant that is checked beside another one. The last tiles are barely begun, and where the
/// grid is persistent, CTAs get several tiles, in two clusters where there are clusters, and a second case
/// has one k-tile. A persistent variant with a workspace has a case whose work CTAs share evenly, and one,
/// the smallest there is, in which it cuts tiles along K beside whole ones; one whose clusters cut K has a
/// single tile, of which they get unequal parts, two tiles in one cluster, and a K too short for all of a
/// cluster; the largest tile of a step that cuts tiles along K has one with a long K. Of many variants some
/// cut tiles: then every CTA has whole ones behind them, or CTAs outnumber the tiles; and where CTAs meet,
/// tiles go in strips.
std::vector<CheckCase> plan_brief_check(const gemm::Step& step, const gemm::Variant& variant,
                                        std::uint64_t seed, bool quick);

}  // namespace harness
