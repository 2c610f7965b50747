#include "harness/verify/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "gemm/problem/gemm.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

constexpr int kSmsOfPersistent = 2;  // few, so that few tiles are several for each CTA
constexpr int kSms = 4;
constexpr int kManyTiles = 64;  // in each direction: more than any grid that does not grow with D
constexpr int kMostKTiles = 128;
constexpr int kMostWork = 640;  // k-tiles of all tiles
constexpr int kMostTiles = 8;   // in each direction, where clusters are large
constexpr int kRowsOfGroups =
    19;                          // of tiles: more than the 16 of the largest raster group, and not two groups
constexpr int kSharedTiles = 2;  // for kSharingCtas CTAs: ranges of 2/5 of a tile, of which the fourth
constexpr int kSharingCtas = 5;  // begins and ends inside the second tile
constexpr int kSmsOfFewTiles = 6;
constexpr int kKTilesOfFewTiles = 57;  // that six CTAs do not share evenly
constexpr int kSmsOfStrips = 7;
constexpr int kSmsOfParts = 8;  // for the largest cluster whose CTAs share the K of a tile
constexpr int kFewMaskedGroups = 3;
constexpr std::size_t kCasesOfManyGroups = 3;
constexpr int kMostKTilesOfManyGroups = 32;
constexpr std::size_t kRelaunchedCases = 2;  // with other counts
constexpr int kMoreThanLanes = 35;           // k-tiles
constexpr int kSummedTiles = 70;             // whose partials a thread does not read all at once
constexpr int kBeyond16Bits = 1 << 16;       // rows or columns
constexpr int kMostTilesBeyond = 600;
constexpr std::int64_t kLeastPartials =
    std::int64_t{64} * 8 * 4;  // bytes of the smallest tile's partials; counters take less
constexpr double kMostCutProducts = 4e8;
constexpr std::size_t kOneOfCuts = 5;
constexpr int kSeeds = 4;
constexpr std::size_t kManyVariants = 10;

/// The extent of `tiles` tiles, the last of them incomplete by about a third where the contract allows that.
int ragged(int tiles, int extent, int multiple) {
  const int wanted = (tiles * extent - std::max(1, extent / 3)) / multiple * multiple;
  const int least = ((tiles - 1) * extent / multiple + 1) * multiple;
  return std::max(wanted, least);
}

struct Tiles {
  int m, n, k;
};

/// The last tile in each direction is barely begun: a share of it, or all of a cluster's but one, lies
/// outside.
gemm::Shape barely(const gemm::Step& step, const gemm::TileShape& tile, const Tiles& tiles) {
  return {(tiles.m - 1) * tile.m + step.contract.m_multiple,
          (tiles.n - 1) * tile.n + step.contract.n_multiple,
          (tiles.k - 1) * tile.k + step.contract.k_multiple};
}

/// Whole tiles in every direction.
gemm::Shape whole_shape(const gemm::TileShape& tile, const Tiles& tiles) {
  return {tiles.m * tile.m, tiles.n * tile.n, tiles.k * tile.k};
}

/// One tile, through all stages once, that lacks one row, one column and one step of K: the last round of a
/// loop
/// is all but complete.
gemm::Shape nearly(const gemm::Step& step, const gemm::Variant& variant) {
  const auto less = [](int extent, int multiple) { return std::max(multiple, extent - multiple); };
  const gemm::TileShape& tile = variant.tile;
  return {less(tile.m, step.contract.m_multiple), less(tile.n, step.contract.n_multiple),
          less(std::max(1, variant.stages) * tile.k, step.contract.k_multiple)};
}

/// The smallest shape of the contract.
gemm::Shape smallest(const gemm::Step& step) {
  return {step.contract.m_multiple, step.contract.n_multiple, step.contract.k_multiple};
}

/// The next smaller extent of which 4, or 2 where it must be, is the largest power of two: kernels that move
/// vectors where they can have a path of their own for it.
int half_vectors(int extent, int multiple, int power) {
  if (multiple > power) return extent;
  const int smaller = extent / (2 * power) * (2 * power) - power;
  return smaller >= multiple ? smaller : extent;
}

gemm::Shape shape_of(const gemm::Step& step, const gemm::TileShape& tile, const Tiles& tiles) {
  return {ragged(tiles.m, tile.m, step.contract.m_multiple),
          ragged(tiles.n, tile.n, step.contract.n_multiple),
          ragged(tiles.k, tile.k, step.contract.k_multiple)};
}

/// Many tiles along the extent that an epilogue sums over, and one along the others.
gemm::Shape long_sum(const gemm::Step& step, const gemm::Variant& variant) {
  const bool over_rows = variant.epilogues.reduction == gemm::Reduction::kColumnSums;
  return shape_of(step, variant.tile, over_rows ? Tiles{kSummedTiles, 1, 1} : Tiles{1, kSummedTiles, 1});
}

void set_sms(int sms) {
  control_emulator({.sm_count = sms});
}

enum class Depth { kOne, kTwo, kAll };

std::vector<Schedule> schedules_of(std::uint64_t seed, Depth depth) {
  std::vector<Schedule> schedules;
  for (int i = 0; i < (depth == Depth::kAll ? kSeeds : 1); ++i)
    schedules.push_back({seed + static_cast<std::uint64_t>(i), Completion::kRandom});
  if (depth == Depth::kAll) schedules.push_back({seed, Completion::kEarliest});
  if (depth != Depth::kOne) schedules.push_back({seed, Completion::kLatest});
  return schedules;
}

std::string describe(const gemm::Variant& variant, const CheckFacts& facts, int sms, int launches) {
  std::string text =
      fmt::format("{} x {} tiles on {} CTAs, {} SMs", facts.tiles_m, facts.tiles_n, facts.ctas, sms);
  if (facts.cluster > 1) text += fmt::format(", clusters of {}", facts.cluster);
  text += fmt::format(", {} k-tile{}", facts.k_tiles, facts.k_tiles == 1 ? "" : "s");
  if (variant.stages > 1) text += fmt::format(" through {} stages", variant.stages);
  if (facts.splits && variant.busiest_tiles) text += ", some tiles split along K";
  if (launches > 1) text += variant.busiest_tiles ? ", launched twice" : ", launched twice on one workspace";
  return text;
}

/// The shape with the fewest k-tiles of work at which the variant splits tiles, and has more tiles than CTAs.
bool find_split(const gemm::Step& step, const gemm::Variant& variant, int k_tiles, gemm::Shape& shape) {
  for (; k_tiles <= kMostKTiles; k_tiles += (k_tiles + 1) / 2) {
    for (const auto& [m, n] : {std::pair{3, 1}, std::pair{5, 1}, std::pair{3, 3}}) {
      shape = shape_of(step, variant.tile, {m, n, k_tiles});
      const CheckFacts facts = check_facts(variant, shape);
      if (facts.splits && facts.tiles() > facts.ctas) return true;
    }
  }
  return false;
}

/// Few tiles for many CTAs, with the fewest k-tiles at which the variant splits them. False where the number
/// of CTAs cannot be had, or nothing is split.
bool find_shared(const gemm::Step& step, const gemm::Variant& variant, int k_tiles, int cluster,
                 gemm::Shape& shape) {
  set_sms(kSharingCtas * cluster);
  int per_sm = 1;  // CTAs; with as many more tiles the ranges stay what they are
  for (; k_tiles <= kMostKTiles; ++k_tiles) {
    shape = shape_of(step, variant.tile, {kSharedTiles * cluster * per_sm, 1, k_tiles});
    const CheckFacts facts = check_facts(variant, shape);
    if (per_sm == 1 && facts.ctas == std::int64_t{2} * kSharingCtas * cluster) {
      per_sm = 2;
      --k_tiles;
      continue;
    }
    if (facts.ctas != std::int64_t{kSharingCtas} * cluster * per_sm) return false;
    if (facts.splits) return true;
  }
  return false;
}

/// One and a half tiles for each of kSms CTAs, or clusters, with the fewest k-tiles at which the variant
/// splits them: every other range begins where a tile begins. False where the number of CTAs cannot be had,
/// or nothing is split.
bool find_begun(const gemm::Step& step, const gemm::Variant& variant, int cluster, gemm::Shape& shape) {
  set_sms(kSms * cluster);
  for (int k_tiles = 4; k_tiles <= kMostKTiles; k_tiles *= 2) {
    shape = shape_of(step, variant.tile, {kSms * cluster * 3 / 2, 1, k_tiles});
    const CheckFacts facts = check_facts(variant, shape);
    if (facts.ctas != std::int64_t{kSms} * cluster || facts.tiles() * facts.k_tiles > kMostWork) return false;
    if (facts.splits) return true;
  }
  return false;
}

/// The same tiles with an odd number of k-tiles: a range of a tile and a half begins inside one tile, takes
/// the next one whole, and ends inside the third. False as above.
bool find_cut(const gemm::Step& step, const gemm::Variant& variant, int cluster, gemm::Shape& shape) {
  set_sms(kSms * cluster);
  for (int k_tiles = 5; k_tiles <= kMostKTiles; k_tiles = k_tiles * 3 / 2 | 1) {
    shape = shape_of(step, variant.tile, {kSms * cluster * 3 / 2, 1, k_tiles});
    const CheckFacts facts = check_facts(variant, shape);
    if (facts.ctas != std::int64_t{kSms} * cluster || facts.tiles() * facts.k_tiles > kMostWork) return false;
    if (facts.splits) return true;
  }
  return false;
}

/// A variant that cuts tiles along K, beside whole ones, at this shape and on so many SMs.
struct Cut {
  const gemm::Variant* variant;
  gemm::Shape shape;
  int sms;
};

/// The smallest such shape of each variant that cuts tiles at one that is quickly checked; the first variant
/// apart. Of many variants, one where every CTA has whole tiles behind the cut ones, if there is one: it adds
/// partials while it has more to do.
std::vector<Cut> find_cuts(const gemm::Step& step) {
  const bool is_one_of_many = step.variants.size() > kManyVariants;
  std::vector<Cut> found;
  for (std::size_t i = 1; i < step.variants.size(); ++i) {
    const gemm::Variant& variant = step.variants[i];
    if (variant.workspace_bytes == nullptr) continue;
    Cut best{&variant, {}, 0};
    double least = kMostCutProducts;
    bool goes_on = false;  // with whole tiles
    set_sms(kSmsOfParts);
    const gemm::Shape single = shape_of(step, variant.tile, {1, 1, 1});
    if (!is_one_of_many && check_facts(variant, single).cluster > 1) continue;  // so few SMs may hold none
    for (const int sms : {2, 3, 4}) {
      set_sms(sms);
      for (const auto& [m, n] : {std::pair{3, 1}, std::pair{5, 1}, std::pair{7, 1}, std::pair{5, 2}}) {
        for (const int k_tiles : {17, 37, 55, 83}) {
          const gemm::Shape shape = shape_of(step, variant.tile, {m, n, k_tiles});
          const double products = static_cast<double>(shape.m) * shape.n * shape.k;
          if (products >= (is_one_of_many && !goes_on ? kMostCutProducts : least)) continue;
          const CheckFacts facts = check_facts(variant, shape);
          if (!facts.splits || facts.tiles() <= facts.ctas) continue;
          const bool whole_behind = is_one_of_many && facts.tiles() > 2 * facts.ctas;
          if (whole_behind == goes_on ? products >= least : goes_on) continue;
          best = {&variant, shape, sms};
          least = products;
          goes_on = whole_behind;
        }
      }
    }
    if (best.sms > 0) found.push_back(best);
  }
  return found;
}

/// Where a step has many variants, they are tiles of one kernel, and one in kOneOfCuts will do.
const Cut* cut_of(const gemm::Step& step, const gemm::Variant& variant) {
  static std::map<const gemm::Step*, std::vector<Cut>> cuts_of;
  auto known = cuts_of.find(&step);
  if (known == cuts_of.end()) known = cuts_of.emplace(&step, find_cuts(step)).first;
  const std::size_t each = step.variants.size() > kManyVariants ? kOneOfCuts : 1;
  for (std::size_t i = 0; i < known->second.size(); i += each) {
    if (known->second[i].variant == &variant) return &known->second[i];
  }
  return nullptr;
}

constexpr int kVectorElements = 8;     // bf16 in 16 bytes
constexpr int kBitsOfMaskPitch = 128;  // bits that the pitch of a mask is a multiple of

/// More than `columns` elements of bf16, in whole vectors of 16 bytes.
int wider(int columns) {
  return (gemm::ceil_div(columns, kVectorElements) + 1) * kVectorElements;
}

/// Gives the cases of a variant with an epilogue of its own one each, in turn.
void use_epilogues(const gemm::Variant& variant, std::vector<CheckCase>& cases) {
  if (variant.epilogues.fixed) {
    constexpr float kAlphas[] = {1, -0.5F, 0.125F};
    for (std::size_t i = 0; i < cases.size(); ++i) {
      cases[i].epilogue = gemm::with_fixed(variant.epilogues, {});
      if (variant.epilogues.alpha) cases[i].epilogue.alpha = kAlphas[i % std::size(kAlphas)];
      const gemm::Auxiliary auxiliary = cases[i].epilogue.auxiliary;
      if ((gemm::is_read(auxiliary) || gemm::is_written(auxiliary)) && (i % 2 == 1 || cases.size() == 1))
        cases[i].aux_pitch = gemm::is_mask(auxiliary)
                                 ? (gemm::ceil_div(cases[i].shape.n, kBitsOfMaskPitch) + 1) * kBitsOfMaskPitch
                                 : wider(cases[i].shape.n);
    }
  }
  if (!variant.epilogues.source) return;
  struct Use {
    float alpha;
    float beta;
    bool in_place;
    bool wider;  // rows of C
  };
  constexpr Use kUses[] = {
      {1, 1, false, false}, {1, 0, false, false}, {-0.5F, 2, false, true}, {1, 1, true, false}};
  // The case that exercises the most, with all of them.
  CheckCase again = cases.front();
  again.schedules.resize(std::min<std::size_t>(2, again.schedules.size()));
  cases.insert(cases.begin() + 1, std::size(kUses) - 1, again);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Use& use = kUses[i % std::size(kUses)];
    cases[i].epilogue.alpha = variant.epilogues.alpha ? use.alpha : 1;
    cases[i].epilogue.beta = use.beta;
    cases[i].in_place = use.in_place && variant.types.d == gemm::Type::kBf16;
    if (use.wider) cases[i].c_pitch = wider(cases[i].shape.n);
  }
}

/// "9 k-tiles through 4 stages"
std::string k_tiles_of(const gemm::Variant& variant, const gemm::Shape& shape) {
  const int k_tiles = gemm::ceil_div(shape.k, variant.tile.k);
  return fmt::format("{} k-tile{} through {} stages", k_tiles, k_tiles == 1 ? "" : "s", variant.stages);
}

/// Gives the cases of a variant with groups some, in turn.
void use_groups(const gemm::Step& step, const gemm::Variant& variant, bool brief,
                std::vector<CheckCase>& cases) {
  if (!variant.takes_groups()) return;
  struct Use {
    int groups;
    GroupSizes distribution;
    int guard_rows;
  };
  constexpr Use kUses[] = {{6, GroupSizes::kZipf, 2},
                           {40, GroupSizes::kEmpty, 1},
                           {70, GroupSizes::kUniform, 0},
                           {0, GroupSizes::kEqual, 0},
                           {5, GroupSizes::kOne, 0}};
  // Many groups have many tiles, so each of these is small.
  CheckCase many = cases.front();
  many.shape.n = variant.tile.n + step.contract.n_multiple;
  many.shape.k = variant.tile.k + step.contract.k_multiple;
  if (many.schedules.size() > 2) many.schedules = {many.schedules.front(), many.schedules.back()};
  cases.insert(cases.begin() + 1, 2, many);
  if (brief) cases[2].schedules.resize(1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CheckCase& one = cases[i];
    const auto& [usual_groups, distribution, guard_rows] = kUses[i % std::size(kUses)];
    const bool long_k = one.shape.k > kMostKTilesOfManyGroups * variant.tile.k;
    const int groups = long_k ? std::min(usual_groups, kUses[0].groups) : usual_groups;
    if (groups == 0) continue;
    if (variant.groups == gemm::GroupForm::kMasked) {
      // Of few groups one is full, and that is a tile and a half; of many each has a few rows. Later cases
      // are there for their shapes, and have one group.
      const bool few = i == 0;
      const int count = few ? kFewMaskedGroups : i < kCasesOfManyGroups ? groups : 1;
      one.capacity = few ? variant.tile.m * 3 / 2 : std::max(1, one.shape.m / count);
      one.shape.m = one.capacity * count;
      std::vector<std::int64_t> sizes =
          draw_groups(count, count > 1 ? one.shape.m * 2 / 3 : one.shape.m, distribution, i + 1);
      for (std::int64_t& size : sizes) size = std::min<std::int64_t>(size, one.capacity);
      one.groups = place_masked_groups(sizes, one.capacity, one.shape.m);
      one.launches = i < kRelaunchedCases ? 2 : 1;
      one.why = fmt::format("{}, room for {} rows each{}; {} SMs, {}", to_string(one.groups), one.capacity,
                            one.launches > 1 ? ", launched twice with other counts" : "", one.sms,
                            k_tiles_of(variant, one.shape));
      continue;
    }
    // The products of a strided batch have as many rows each. Later cases are there for their shapes, and are
    // one product.
    const bool strided = variant.groups == gemm::GroupForm::kStrided;
    const int count = strided && i >= kCasesOfManyGroups ? 1 : groups;
    if (strided) one.shape.m = count * gemm::ceil_div(one.shape.m, count) + (count - 1) * guard_rows;
    const int guards = (count - 1) * guard_rows < one.shape.m ? guard_rows : 0;
    one.groups = place_groups(draw_groups(count, one.shape.m - (count - 1) * guards,
                                          strided ? GroupSizes::kEqual : distribution, i + 1),
                              guards, one.shape.m);
    if (variant.takes_placed_groups() && guards > 0) {
      one.placement = i + 1;
      one.device_only = variant.groups != gemm::GroupForm::kPlacedKnown;
      if (variant.groups == gemm::GroupForm::kPlacedSizes) one.placement |= kOwnSizesPlaced;
      if (i == 0 && one.device_only) one.launches = 2;
    }
    one.why = fmt::format(
        "{}{}{}; {} SMs, {}", to_string(one.groups), one.placement != 0 ? ", anywhere in memory" : "",
        one.launches > 1 ? ", launched twice, elsewhere" : "", one.sms, k_tiles_of(variant, one.shape));
  }
}

/// A single tile whose K the CTAs of a cluster share, with the fewest k-tiles for each size of the cluster:
/// first those that do not share its columns evenly, in the 8 that an instruction's N is a multiple of. None
/// where its K is not shared.
std::vector<gemm::Shape> find_parts(const gemm::Step& step, const gemm::Variant& variant) {
  constexpr int kColumnsOfUnit = 8;
  set_sms(kSmsOfParts);
  if (check_facts(variant, shape_of(step, variant.tile, {1, 1, 1})).cluster > 1) return {};
  std::vector<int> sizes;
  std::vector<gemm::Shape> uneven, even;
  for (int k_tiles = 2; k_tiles <= kMostKTiles; k_tiles += k_tiles / 2) {
    const gemm::Shape shape = shape_of(step, variant.tile, {1, 1, k_tiles});
    const CheckFacts facts = check_facts(variant, shape);
    if (facts.splits || facts.cluster == 1 || facts.ctas == facts.tiles()) continue;
    if (std::find(sizes.begin(), sizes.end(), facts.cluster) != sizes.end()) continue;
    sizes.push_back(facts.cluster);
    (variant.tile.n / kColumnsOfUnit % facts.cluster != 0 ? uneven : even).push_back(shape);
  }
  uneven.insert(uneven.end(), even.begin(), even.end());
  return uneven;
}

/// The same for tiles beside each other or below each other: the fewest k-tiles at which CTAs share the K of
/// a tile, and CTAs of several tiles one cluster, so that a load may serve them. Two tiles, and three, of
/// which one has no mate. For the first of these also with so many k-tiles that each CTA's ring wraps.
std::vector<gemm::Shape> find_shared_parts(const gemm::Step& step, const gemm::Variant& variant) {
  set_sms(kSmsOfParts);
  std::vector<gemm::Shape> found;
  for (const auto& [m, n] : {std::pair{1, 2}, std::pair{2, 1}, std::pair{1, 3}, std::pair{3, 1}}) {
    bool has_fewest = false;
    for (int k_tiles = 2; k_tiles <= kMostKTiles; k_tiles += k_tiles / 2) {
      const gemm::Shape shape = shape_of(step, variant.tile, {m, n, k_tiles});
      const CheckFacts facts = check_facts(variant, shape);
      const int parts = facts.ctas / facts.tiles();
      if (facts.splits || parts < 2 || facts.cluster <= parts) continue;
      const bool wraps = k_tiles / parts > variant.stages;
      if (!has_fewest || wraps) found.push_back(shape);
      has_fewest = true;
      if (wraps || found.size() > 2) break;
    }
  }
  return found;
}

CheckCase case_at(const gemm::Variant& variant, const gemm::Shape& shape, int sms,
                  std::vector<Schedule> schedules, bool once = false) {
  set_sms(sms);
  const CheckFacts facts = check_facts(variant, shape);
  const int launches = facts.workspace && !once ? 2 : 1;
  CheckCase one{shape, sms, std::move(schedules), describe(variant, facts, sms, launches), launches};
  one.adds_parts = facts.workspace;
  const auto share_a_tile = static_cast<int>((facts.ctas + facts.tiles() - 1) / facts.tiles());
  if (facts.workspace) {
    one.parts = gemm::is_sum(variant.epilogues.reduction) ? 2 : std::max(2, share_a_tile);
  } else if (facts.cluster > 1 && share_a_tile > 1 && !gemm::is_sum(variant.epilogues.reduction)) {
    one.parts = share_a_tile;
  }
  return one;
}

/// What the cases are run with. GELU and SiLU of the exact pattern's large integers are these integers, or 0.
void use_inputs(const gemm::Variant& variant, bool brief, bool is_one_of_many,
                std::vector<CheckCase>& cases) {
  const bool sums = gemm::is_sum(variant.epilogues.reduction);
  // What only another tile or schedule is makes nothing else of a NaN.
  const gemm::EpilogueSupport& support = variant.epilogues;
  const bool treats_numbers = support.fixed || !support.activations.empty() || support.source ||
                              support.reduction != gemm::Reduction::kNone ||
                              support.auxiliary != gemm::Auxiliary::kNone || !variant.types.are_bf16();
  const auto fewer_parts = [](const CheckCase& a, const CheckCase& b) { return a.parts < b.parts; };
  const auto adds_parts = [](const CheckCase& one) { return one.adds_parts; };
  // The first case is the largest one.
  const auto small = cases.size() > 1 ? cases.begin() + 1 : cases.begin();
  const auto most_parts = std::max_element(small, cases.end(), fewer_parts);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CheckCase& one = cases[i];
    const bool exact = is_exact(Pattern::kExact, one.epilogue);
    // Sums of an epilogue without a workspace are added in the order in which CTAs finish.
    const CheckInputs rounded{Pattern::kNormal, 1, !sums || one.adds_parts};
    one.inputs = {{exact ? Pattern::kExact : Pattern::kNormal, one.schedules.size()}};
    if (i == 0 && !brief) {
      one.inputs.push_back(exact ? rounded : CheckInputs{Pattern::kUniform});
      one.inputs.push_back({exact ? Pattern::kUniform : Pattern::kExact});
    } else if (exact && one.parts > 0 && &one == &*most_parts && !is_one_of_many) {
      one.inputs.push_back({treats_numbers ? Pattern::kNormal : Pattern::kCancelling, 1, rounded.same_bits});
    }
    if (i == 0 && (!brief || treats_numbers)) one.inputs.push_back({Pattern::kSpecial});
  }
  const bool has_workspace = std::any_of(cases.begin(), cases.end(), adds_parts);
  if (brief && !has_workspace) return;
  auto smallest = has_workspace ? std::find_if(small, cases.end(), adds_parts) : small;
  if (smallest == cases.end()) smallest = cases.begin();
  smallest->inputs.front().in_streams = true;
  if (!brief && most_parts->adds_parts) most_parts->inputs.front().in_streams = true;
}

}  // namespace

std::vector<Schedule> schedules_of_bits(const CheckCase& one, const Schedule& first) {
  if (one.parts == 0) return {{first.seed, Completion::kLatest}};
  return {{first.seed, Completion::kEarliest, CtaOrder::kAscending},
          {first.seed, Completion::kEarliest, CtaOrder::kDescending}};
}

ProblemForm form_of(const CheckCase& one, const gemm::Variant& variant, ProblemForm form) {
  form.epilogue = one.epilogue;
  form.in_place = one.in_place;
  if (one.c_pitch > 0) form.c_pitch = one.c_pitch;
  if (one.aux_pitch > 0) form.aux_pitch = one.aux_pitch;
  form.has_bias = false;  // this epilogue's alone
  form.has_source = variant.epilogues.source;
  form.types = variant.types;
  form.groups = one.groups;
  form.capacity = one.capacity;
  form.placement = one.placement;
  form.device_only = one.device_only;
  return form;
}

CheckFacts check_facts(const gemm::Variant& variant, const gemm::Shape& shape) {
  const gemm::TileShape& tile = variant.tile;
  const auto launch = variant.launch_shape(shape);
  const auto many = variant.launch_shape({kManyTiles * tile.m, kManyTiles * tile.n, tile.k});
  CheckFacts facts;
  facts.tiles_m = gemm::ceil_div(shape.m, tile.m);
  facts.tiles_n = gemm::ceil_div(shape.n, tile.n);
  facts.k_tiles = gemm::ceil_div(shape.k, tile.k);
  facts.ctas = static_cast<std::int64_t>(launch.grid.count());
  facts.cluster = static_cast<int>(launch.cluster.count());
  facts.persistent = static_cast<std::int64_t>(many.grid.count()) < std::int64_t{kManyTiles} * kManyTiles;
  const std::int64_t workspace = variant.workspace_bytes == nullptr ? 0 : variant.workspace_bytes(shape);
  facts.workspace = workspace > 0;
  facts.splits = workspace >= kLeastPartials && !gemm::is_sum(variant.epilogues.reduction);
  return facts;
}

std::vector<CheckCase> plan_brief_check(const gemm::Step& step, const gemm::Variant& variant,
                                        std::uint64_t seed, bool quick) {
  set_sms(kSms);
  const CheckFacts first = check_facts(variant, barely(step, variant.tile, {3, 3, 2}));
  // Two clusters: what they do to each other is a mistake of its own.
  const int clusters = first.cluster > 1 ? 2 * first.cluster : 0;
  const int sms = first.persistent ? std::max(kSmsOfPersistent, clusters) : kSms;
  const int k_tiles = variant.stages + 1;
  int tiles = first.persistent || first.cluster > 1 ? 3 : 2;
  const auto with = [&](int each_way) { return barely(step, variant.tile, {each_way, each_way, k_tiles}); };
  set_sms(sms);
  // Several for each of two consumer groups, in clusters of many CTAs too.
  while (first.persistent && tiles < kMostTiles &&
         check_facts(variant, with(tiles)).tiles() < 4 * check_facts(variant, with(tiles)).ctas)
    ++tiles;
  const std::vector<Schedule> schedules = schedules_of(seed, quick ? Depth::kOne : Depth::kTwo);
  std::vector<CheckCase> cases{case_at(variant, with(tiles), sms, schedules)};
  // A tile of one k-tile, under all schedules: what warps then overtake is seen under few of them. Many
  // variants are tiles of one kernel, and try enough of them together.
  const std::vector<Schedule> one_schedule = schedules_of(seed, Depth::kOne);
  const bool is_one_of_many = step.variants.size() > kManyVariants;
  if (first.persistent)
    cases.push_back(case_at(variant, barely(step, variant.tile, {3, 3, 1}), std::max(kSms, clusters),
                            quick || is_one_of_many ? one_schedule : schedules_of(seed, Depth::kAll)));
  // Work that CTAs share so evenly that what one of them gets begins where a tile begins.
  if (first.persistent && variant.workspace_bytes != nullptr) {
    int each_way = 2;
    while (each_way * each_way < sms) each_way *= 2;
    cases.push_back(case_at(variant, whole_shape(variant.tile, {each_way, each_way, 2}), sms, one_schedule));
  }
  if (!is_one_of_many) cases.push_back(case_at(variant, nearly(step, variant), sms, one_schedule));
  if (!first.persistent && variant.workspace_bytes != nullptr) {
    const std::vector<gemm::Shape> parts = find_parts(step, variant);
    if (!parts.empty()) cases.push_back(case_at(variant, parts.front(), kSmsOfParts, one_schedule));
    const std::vector<gemm::Shape> sharing = find_shared_parts(step, variant);
    if (!sharing.empty()) cases.push_back(case_at(variant, sharing.front(), kSmsOfParts, one_schedule));
  }
  if (variant.epilogues.reduction != gemm::Reduction::kNone)
    cases.push_back(
        case_at(variant, smallest(step), sms, quick ? one_schedule : schedules_of(seed, Depth::kAll)));
  if (gemm::is_sum(variant.epilogues.reduction))
    cases.push_back(case_at(variant, long_sum(step, variant), sms, one_schedule));
  if (const Cut* cut = cut_of(step, variant)) {
    cases.push_back(case_at(variant, cut->shape, cut->sms, one_schedule));
    // Few tiles for many CTAs: ranges that begin inside a tile and end there.
    set_sms(kSmsOfFewTiles);
    const gemm::Shape few = shape_of(step, variant.tile, {3, 1, kKTilesOfFewTiles});
    const CheckFacts facts = check_facts(variant, few);
    if (is_one_of_many && facts.splits && facts.cluster == 1)
      cases.push_back(case_at(variant, few, kSmsOfFewTiles, schedules));
  }
  // The first of the largest tiles with a K so long that a model cuts tiles along it, too.
  const auto area = [](const gemm::Variant& one) { return one.tile.m * one.tile.n; };
  const auto largest =
      std::max_element(step.variants.begin(), step.variants.end(),
                       [&](const gemm::Variant& a, const gemm::Variant& b) { return area(a) < area(b); });
  if (!is_one_of_many && variant.workspace_bytes != nullptr && variant.name == largest->name) {
    const int few_sms = kSmsOfPersistent * first.cluster;
    set_sms(few_sms);
    const gemm::Shape deep = shape_of(step, variant.tile, {3, 1, kMostKTiles});
    const CheckFacts facts = check_facts(variant, deep);
    if (facts.splits && facts.tiles() > facts.ctas)
      cases.push_back(case_at(variant, deep, few_sms, schedules));
    gemm::Shape cut;
    if (find_cut(step, variant, first.cluster, cut))
      cases.push_back(case_at(variant, cut, kSms * first.cluster, one_schedule));
  }
  // A K that is too short for all CTAs of a cluster that share it.
  if (!first.persistent && (first.cluster > 1 || (is_one_of_many && variant.workspace_bytes != nullptr)))
    cases.push_back(case_at(variant, shape_of(step, variant.tile, {2, 1, 1}), sms, one_schedule));
  // CTAs that meet, and have counters for it: where no cluster divides the SMs, their tiles may go in strips.
  if (is_one_of_many && first.persistent && first.workspace && !first.splits) {
    for (const Tiles& of_strips : {Tiles{5, 9, 1}, Tiles{4, 4, 1}})
      cases.push_back(case_at(variant, barely(step, variant.tile, of_strips), kSmsOfStrips, one_schedule));
  }
  // More tiles than a raster group has rows, where the first variant has no such grid.
  set_sms(sms);
  if (first.persistent &&
      !check_facts(step.variants.front(), barely(step, variant.tile, {3, 3, 2})).persistent)
    cases.push_back(case_at(variant, shape_of(step, variant.tile, {2, kRowsOfGroups, 1}), sms, one_schedule));
  // A tile with one k-tile more than CTAs that share it: the first has two, the others one each, and some of
  // these lie between the k at which all would begin.
  if (!is_one_of_many && first.persistent && first.cluster == 1 && variant.workspace_bytes != nullptr) {
    set_sms(kSms);
    const gemm::Shape singles = shape_of(step, variant.tile, {1, 1, kSms + 1});
    if (check_facts(variant, singles).splits) cases.push_back(case_at(variant, singles, kSms, one_schedule));
  }
  for (CheckCase& one : cases) one.shape = fitting_shape(variant, one.shape);
  use_epilogues(variant, cases);
  use_groups(step, variant, true, cases);
  use_inputs(variant, true, is_one_of_many && !gemm::is_sum(variant.epilogues.reduction), cases);
  return cases;
}

std::vector<CheckCase> plan_check(const gemm::Step& step, const gemm::Variant& variant, std::uint64_t seed,
                                  bool quick) {
  const int k_tiles = 2 * variant.stages + 1;
  std::vector<CheckCase> cases;
  const auto add = [&](const gemm::Shape& shape, int sms, Depth depth, bool once = false) {
    const auto is_there = [&](const CheckCase& one) { return one.shape == shape && one.sms == sms; };
    if (std::any_of(cases.begin(), cases.end(), is_there)) return;
    cases.push_back(case_at(variant, shape, sms, schedules_of(seed, quick ? Depth::kOne : depth), once));
  };

  set_sms(kSms);
  gemm::Shape square = shape_of(step, variant.tile, {3, 3, k_tiles});
  const CheckFacts facts = check_facts(variant, square);
  // Two clusters: what they do to each other is a mistake of its own.
  const int two_clusters = 2 * facts.cluster;
  const int sms = facts.persistent ? std::max(kSmsOfPersistent, facts.cluster > 1 ? two_clusters : 0) : kSms;
  if (facts.persistent && 9 < 2 * sms) square = shape_of(step, variant.tile, {5, 5, k_tiles});
  if (facts.persistent && 25 < 2 * sms) square = shape_of(step, variant.tile, {7, 5, k_tiles});
  add(square, sms, Depth::kAll);

  if (variant.workspace_bytes != nullptr) {
    set_sms(sms);
    const CheckFacts at_square = check_facts(variant, square);
    gemm::Shape split;
    if (!(at_square.splits && at_square.tiles() > at_square.ctas) &&
        find_split(step, variant, k_tiles, split))
      add(split, sms, Depth::kAll);
    set_sms(kSms);
    const gemm::Shape few = shape_of(step, variant.tile, {1, 1, std::max(k_tiles, kSms + 1)});
    if (check_facts(variant, few).splits) add(few, kSms, Depth::kAll);
    gemm::Shape shared;
    if (find_shared(step, variant, k_tiles, facts.cluster, shared))
      add(shared, kSharingCtas * facts.cluster, Depth::kAll);
    gemm::Shape begun;
    if (find_begun(step, variant, facts.cluster, begun)) add(begun, kSms * facts.cluster, Depth::kOne);
    gemm::Shape cut;
    if (find_cut(step, variant, facts.cluster, cut)) add(cut, kSms * facts.cluster, Depth::kOne);
    Depth depth = Depth::kAll;
    for (const gemm::Shape& parts : find_parts(step, variant)) {
      add(parts, kSmsOfParts, depth);
      depth = Depth::kOne;
    }
    for (const gemm::Shape& shared_parts : find_shared_parts(step, variant))
      add(shared_parts, kSmsOfParts, Depth::kTwo);
  }
  if (facts.persistent || facts.cluster > 1)
    add(shape_of(step, variant.tile, {kRowsOfGroups, 2, 1}), sms, Depth::kOne);
  add(shape_of(step, variant.tile, {3, 3, 1}), facts.persistent ? std::max(kSms, two_clusters) : sms,
      Depth::kAll);

  // Whole tiles and an even number of k-tiles: nothing is an edge.
  add(whole_shape(variant.tile, {2, 2, 2}), sms, Depth::kTwo);
  // A single tile: a ring that is not filled once, CTAs with one tile or none; rows that are no whole
  // vectors.
  gemm::Shape single = shape_of(step, variant.tile, {1, 1, std::max(2, variant.stages - 1)});
  if (step.contract.k_multiple <= 4)
    single.k = half_vectors(std::max(single.k, 16), step.contract.k_multiple, 4);
  single.n = half_vectors(single.n, step.contract.n_multiple, 2);
  add(single, sms, Depth::kTwo);
  // Rows of whole vectors that end inside a tile, where rows may be of any length.
  if (step.contract.k_multiple < kVectorElements && step.contract.n_multiple < kVectorElements) {
    gemm::Shape vectors = shape_of(step, variant.tile, {1, 2, 3});
    vectors.n = std::max(vectors.n - vectors.n % kVectorElements, kVectorElements);
    vectors.k = std::max(vectors.k - vectors.k % kVectorElements, kVectorElements);
    add(vectors, sms, Depth::kOne);
  }
  // Rows of a mask without padding, and a last tile that is incomplete: a word behind N is the next row's.
  gemm::Shape filled;
  if (variant.epilogues.fixed && gemm::is_mask(gemm::with_fixed(variant.epilogues, {}).auxiliary)) {
    filled = shape_of(step, variant.tile, {2, 1, 1});
    while (filled.n <= variant.tile.n || filled.n % variant.tile.n == 0)
      filled.n = (filled.n / kBitsOfMaskPitch + 1) * kBitsOfMaskPitch;
    add(filled, sms, Depth::kOne);
  }
  // As many k-tiles as stages, and one more.
  add(whole_shape(variant.tile, {1, 1, variant.stages}), sms, Depth::kTwo);
  add(shape_of(step, variant.tile, {1, 2, variant.stages + 1}), sms, Depth::kTwo);
  add(nearly(step, variant), sms, Depth::kOne);
  // What lies outside of D is most of the tile, and larger than what lies inside.
  if (variant.epilogues.reduction != gemm::Reduction::kNone) add(smallest(step), sms, Depth::kAll);
  if (gemm::is_sum(variant.epilogues.reduction)) add(long_sum(step, variant), sms, Depth::kOne);
  // A tile with more k-tiles than a warp has lanes: some kernels hold in each lane what belongs to one.
  add(shape_of(step, variant.tile, {1, 1, kMoreThanLanes}), sms, Depth::kOne);
  // The smallest K of the contract; the last tiles and k-tile barely begun.
  gemm::Shape shortest = shape_of(step, variant.tile, {2, 1, 1});
  shortest.k = step.contract.k_multiple;
  add(shortest, sms, Depth::kOne);
  add(barely(step, variant.tile, {3, 3, 3}), sms, Depth::kTwo);
  std::stable_sort(cases.begin() + 1, cases.end(), [](const CheckCase& a, const CheckCase& b) {
    return static_cast<double>(a.shape.m) * a.shape.n * a.shape.k <
           static_cast<double>(b.shape.m) * b.shape.n * b.shape.k;
  });
  // Where a tile's place is computed, packed or handed on: the last ones are beyond what 16 bits hold. A
  // variant with a workspace would take ten times as long.
  if (facts.persistent && !facts.workspace && !quick) {
    const gemm::Contract& unit = step.contract;
    const auto beyond = [](int extent, int multiple) {
      return gemm::ceil_div(kBeyond16Bits + extent, multiple) * multiple;
    };
    const auto add_if_few = [&](const gemm::Shape& shape) {
      if (check_facts(variant, shape).tiles() <= kMostTilesBeyond) add(shape, kSms, Depth::kOne, true);
    };
    add_if_few({beyond(variant.tile.m, unit.m_multiple), unit.n_multiple, unit.k_multiple});
    if (!needs_whole_rows(variant))
      add_if_few({unit.m_multiple, beyond(variant.tile.n, unit.n_multiple), unit.k_multiple});
  }
  for (CheckCase& one : cases) one.shape = fitting_shape(variant, one.shape);
  use_epilogues(variant, cases);
  for (CheckCase& one : cases) {
    if (one.shape == filled) one.aux_pitch = 0;
  }
  use_groups(step, variant, false, cases);
  use_inputs(variant, false, false, cases);
  return cases;
}

}  // namespace harness
